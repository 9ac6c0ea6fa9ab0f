"""What an update would lose of what is deployed. `fleet up` asks for consent before it begins."""

from collections.abc import Sequence

from kai_fleet.names import RELEASE, STACK
from kai_fleet.values import value_at
from kai_fleet_cli.diff.changes import SummaryLine, difference, registered, summary_of_changes
from kai_fleet_cli.plan.recorder import UNKNOWN, Registered
from kai_fleet_cli.recovery.state import Resource, State

# The inputs that name an object in a cluster. Another value is another object.
_IDENTITY_OF_RELEASE = ("name", "namespace")
_IDENTITY_OF_OBJECT = ("metadata.name", "metadata.namespace")


def lost_lines(state: State, planned: Sequence[Registered]) -> list[SummaryLine]:
    """What an update from `state` to `planned` loses: lines of the section `lost`.

    They are about resources that are deleted or replaced, and about upgrades of GPU drivers. Only
    what consequences.yaml calls a loss has a line. A resource counts as replaced if its name or
    namespace changes, and not if only the update can tell that.
    """
    base = {
        urn: registered(urn, str(resource["type"]), resource)
        for urn, resource in state.resources.items()
        if _is_live(resource)
    }
    replaced = {
        new.urn for new in planned if new.urn in base and _is_another_object(base[new.urn], new)
    }
    losing = [
        change
        for change in difference([*base.values()], planned, state.parents, replaced)
        if change.kind in ("deleted", "replaced") or change.ends_gpu_pods
    ]
    return summary_of_changes(losing)["lost"]


def _is_live(resource: Resource) -> bool:
    """Whether the resource counts as deployed.

    Not the stack itself, a resource that was only read, and an old resource that is still to be
    deleted after its replacement.
    """
    if resource["type"] == STACK:
        return False
    if resource.get("external"):
        return False
    return not resource.get("delete")


def _is_another_object(old: Registered, new: Registered) -> bool:
    """Whether a field that identifies the object changed, so that the engine replaces it.

    What is no text, or what only the update can tell, is no change.
    """
    paths = _IDENTITY_OF_RELEASE if old.type == RELEASE else _IDENTITY_OF_OBJECT
    for path in paths:
        values = [value_at(resource.inputs, path) for resource in (old, new)]
        names = {value for value in values if isinstance(value, str) and value != UNKNOWN}
        if len(names) > 1:
            return True
    return False
