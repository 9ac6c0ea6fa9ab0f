"""What an update would lose of what is deployed; it asks for it by name before it begins."""

from collections.abc import Iterable, Sequence
from typing import Final

from kai_fleet.names import RELEASE, STACK
from kai_fleet.urns import read_urn
from kai_fleet.values import get
from kai_fleet_cli.diff.changes import Change, SummaryLine, difference, summary_of_changes
from kai_fleet_cli.plan.recorder import UNKNOWN, Registered
from kai_fleet_cli.recovery.state import Resource, State, provider_of

# The inputs that name an object in a cluster. Another value is another object.
_IDENTITY_OF_RELEASE: Final = (("name",), ("namespace",))
_IDENTITY_OF_OBJECT: Final = (("metadata", "name"), ("metadata", "namespace"))


def lost_lines(state: State, planned: Sequence[Registered]) -> list[SummaryLine]:
    """What an update from `state` to `planned` loses: lines of the section `lost`.

    They are about resources that are deleted or replaced, and about upgrades of GPU drivers. Only
    deletions that consequences.yaml calls a loss have a line. Values that only the update can tell
    count as unchanged.
    """
    live = [(urn, resource) for urn, resource in state.resources.items() if _is_live(resource)]
    base = [_registered(urn, resource) for urn, resource in live]
    changes = difference(
        base,
        planned,
        above=state.parents,
        replaced=_replaced_urns(base, planned),
    )
    return summary_of_changes(change for change in changes if _may_lose(change))["lost"]


def _is_live(resource: Resource) -> bool:
    """Whether a deletion of the resource is one in a cluster.

    It is not for the stack itself, for a resource that was only read, and for an old resource that
    is still to be deleted after its replacement.
    """
    if resource["type"] == STACK:
        return False
    if resource.get("external"):
        return False
    return not resource.get("delete")


def _registered(urn: str, resource: Resource) -> Registered:
    return Registered(
        urn=urn,
        type=str(resource["type"]),
        name=read_urn(urn).name,
        parent=str(resource.get("parent") or ""),
        provider=provider_of(resource),
        inputs=dict(resource.get("inputs") or {}),
    )


def _replaced_urns(base: Iterable[Registered], planned: Iterable[Registered]) -> set[str]:
    """URNs of resources in both lists that the engine replaces, because their objects differ."""
    after = {resource.urn: resource for resource in planned}
    replaced = set[str]()
    for old in base:
        new = after.get(old.urn)
        if new is not None and _is_another_object(old, new):
            replaced.add(old.urn)
    return replaced


def _is_another_object(old: Registered, new: Registered) -> bool:
    """Whether a field that identifies the object changed, so that the engine replaces it."""
    paths = _IDENTITY_OF_RELEASE if old.type == RELEASE else _IDENTITY_OF_OBJECT
    for path in paths:
        old_value = _known_text(old, path)
        new_value = _known_text(new, path)
        if None not in (old_value, new_value) and old_value != new_value:
            return True
    return False


def _known_text(resource: Registered, path: Sequence[str]) -> str | None:
    """The text at a path of the inputs; None if there is none, or only the update can tell it."""
    value = get(resource.inputs, *path)
    if not isinstance(value, str) or value == UNKNOWN:
        return None
    return value


def _may_lose(change: Change) -> bool:
    return change.kind in ("deleted", "replaced") or change.ends_gpu_pods
