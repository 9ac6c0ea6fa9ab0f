"""What happens to the queues of one cluster, in words."""

from collections.abc import Iterator
from typing import Any

from kai_fleet_cli.diff.changes import Difference, FieldChange, ResourceChange
from kai_fleet_cli.diff.hazards import Hazard, Part
from kai_fleet_policies.amounts import written
from kubectl_fleet.declared.queues import RESOURCES, UNLIMITED, Resource
from kubectl_fleet.wording import agreeing, counted, listed, plural

MOST = 20  # more sentences about queues than this are not read
_RESOURCES = "spec.resources."
_WORDS = {"quota": "quota", "limit": "limit", "overQuotaWeight": "weight"}


def queue_sentences(queues: Difference) -> Iterator[Part]:
    """What is made, removed, renamed or changed of these queues, a part of a sentence each.

    A queue that goes and one that comes in the same place with the same shares are one renamed.
    """
    renames = sorted(_renames(queues))
    created = {_queue_name(change) for change in queues.created} - {new for _, new in renames}
    deleted = {_queue_name(change) for change in queues.deleted} - {old for old, _ in renames}
    for old, new in renames:
        yield Part(
            f"queue {old} becomes {new} (KAI has no renames: one is deleted and the other created,"
            f" and pods that name {old} are no longer scheduled, until they name {new})",
            Hazard.LOST,
        )
    if deleted:
        them = "it" if len(deleted) == 1 else "them"
        yield Part(
            f"{_queues(deleted)} deleted, and pods that name {them} are no longer scheduled",
            Hazard.LOST,
        )
    if created:
        yield Part(f"{_queues(created)} created")
    for change in queues.changed[:MOST]:
        parts = [_field(item) for item in sorted(change.fields, key=_importance)]
        yield Part(f"queue {_queue_name(change)}: {', '.join(parts)}")
    if len(queues.changed) > MOST:
        yield Part(f"{counted(len(queues.changed) - MOST, 'more queue')} changed")


def _queues(names: set[str]) -> str:
    number = len(names)
    return f"{plural(number, 'queue')} {listed(sorted(names), 'and')} {agreeing(number, 'is')}"


def _renames(queues: Difference) -> Iterator[tuple[str, str]]:
    """Pairs that can be only one another's: the same spec, and no third one like them."""
    gone = _by_spec(queues.deleted)
    come = _by_spec(queues.created)
    for spec in gone.keys() & come.keys():
        if len(gone[spec]) == len(come[spec]) == 1:
            yield gone[spec][0], come[spec][0]


def _by_spec(changes: tuple[ResourceChange, ...]) -> dict[str, list[str]]:
    by_spec: dict[str, list[str]] = {}
    for change in changes:
        spec = repr(change.inputs.get("spec")) + change.urn.rpartition("::")[0]
        by_spec.setdefault(spec, []).append(_queue_name(change))
    return by_spec


def _queue_name(change: ResourceChange) -> str:
    metadata = change.inputs.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return str(name or change.name)


def _importance(item: FieldChange) -> tuple[int, str]:
    """Quotas first, then limits, then weights, then the rest."""
    last = item.path.rpartition(".")[2]
    return (list(_WORDS).index(last) if last in _WORDS else len(_WORDS), item.path)


def _field(item: FieldChange) -> str:
    if item.path == "spec.parentQueue":
        return f"moves from under {item.old or 'the top'} to under {item.new or 'the top'}"
    for resource in RESOURCES:
        for key, word in _WORDS.items():
            if item.path == f"{_RESOURCES}{resource}.{key}":
                old, new = (_amount(resource, key, value) for value in (item.old, item.new))
                return f"{resource} {word} {old} → {new}"
    name = item.path.removeprefix("spec.")
    return f"{name} {_plain(item.old)} → {_plain(item.new)}"


def _amount(resource: Resource, key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _plain(value)
    if key == "overQuotaWeight":
        return f"{value:g}"
    return "unlimited" if value == UNLIMITED else written(resource, float(value), "")


def _plain(value: Any) -> str:
    return "unset" if value is None else str(value)
