"""What happens to the queues of one cluster, in words."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from kai_fleet.fleet.amounts import written
from kai_fleet.values import value_at
from kai_fleet.wording import agreeing, counted, listed, plural
from kai_fleet_cli.diff.changes import UNSET, Difference, FieldChange, ResourceChange
from kai_fleet_cli.diff.consequences import Hazard, Part

_MOST: Final = 20  # more sentences about queues than this are not read
_SHARE: Final = re.compile(r"spec\.resources\.(cpu|memory|gpu)\.(quota|limit|overQuotaWeight)")
_WORDS: Final = {"quota": "quota", "limit": "limit", "overQuotaWeight": "weight"}


def queue_sentences(queues: Difference) -> Iterator[Part]:
    """What is made, removed, renamed or changed of these queues, a part of a sentence each.

    A queue that goes and one that comes in the same place with the same shares are one renamed.
    """
    created, deleted = _by_spec(queues.created), _by_spec(queues.deleted)
    # Pairs that can be only one another's: the same spec, and no third one like them.
    renames = {
        spec: (deleted[spec][0], created[spec][0])
        for spec in created.keys() & deleted.keys()
        if len(created[spec]) == len(deleted[spec]) == 1
    }
    for old, new in sorted(renames.values()):
        yield Part(
            f"queue {old} becomes {new} (KAI has no renames: one is deleted and the other created,"
            f" and pods that name {old} are no longer scheduled, until they name {new})",
            Hazard.LOST,
        )
    gone, come = (
        sorted(name for spec, names in part.items() if spec not in renames for name in names)
        for part in (deleted, created)
    )
    if gone:
        them = "it" if len(gone) == 1 else "them"
        yield Part(
            f"{_queues(gone)} deleted, and pods that name {them} are no longer scheduled",
            Hazard.LOST,
        )
    if come:
        yield Part(f"{_queues(come)} created")
    for change in queues.changed[:_MOST]:
        parts = [_field(item) for item in sorted(change.fields, key=_importance)]
        yield Part(f"queue {_name(change)}: {', '.join(parts)}")
    if len(queues.changed) > _MOST:
        yield Part(f"{counted(len(queues.changed) - _MOST, 'more queue')} changed")


def _queues(names: list[str]) -> str:
    number = len(names)
    return f"{plural(number, 'queue')} {listed(names, 'and')} {agreeing(number, 'is')}"


def _by_spec(changes: tuple[ResourceChange, ...]) -> dict[str, list[str]]:
    by_spec = defaultdict[str, list[str]](list)
    for change in changes:
        spec = repr(change.inputs.get("spec")) + change.urn.rpartition("::")[0]
        by_spec[spec].append(_name(change))
    return by_spec


def _name(change: ResourceChange) -> str:
    return str(value_at(change.inputs, "metadata.name") or change.name)


def _importance(item: FieldChange) -> tuple[int, str]:
    """Quotas first, then limits, then weights, then the rest."""
    last = item.path.rpartition(".")[2]
    return [*_WORDS, last].index(last), item.path


def _field(item: FieldChange) -> str:
    if item.path == "spec.parentQueue":
        return f"moves from under {item.old or 'the top'} to under {item.new or 'the top'}"
    if found := _SHARE.fullmatch(item.path):
        resource, key = found.groups()
        old, new = (_amount(resource, key, value) for value in (item.old, item.new))
        return f"{resource} {_WORDS[key]} {old} → {new}"
    old, new = item.shown()
    return f"{item.path.removeprefix('spec.')} {old} → {new}"


def _amount(resource: Any, key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return UNSET if value is None else str(value)
    return f"{value:g}" if key == "overQuotaWeight" else written(resource, float(value), "")
