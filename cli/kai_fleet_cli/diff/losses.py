"""What an update would lose of what is deployed, asked for by name before anything begins."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kai_fleet.names import PROVIDERS, RELEASE, STACK
from kai_fleet.values import get
from kai_fleet_cli.diff.changes import Item, difference, of_changes
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan.recorder import UNKNOWN, Registered
from kai_fleet_cli.recovery.state import Resource, State, provider_of

_RENAMED: Final = (
    "kai-fleet:cluster.name: the cluster of context {0} is {1}, and all in it would be made again"
    " beside itself; write name: {1}. For another name, destroy the stack first"
)


def losses(known: State, planned: Sequence[Registered]) -> list[Item]:
    """What goes, and what is another one, if a state becomes what is planned.

    Values that only the update knows count as unchanged. Raises UserError where the same cluster
    has another name: what is created again would meet what is there.
    """
    base = [_registered(urn, each) for urn, each in known.resources.items() if _is_ours(each)]
    after, replaced = {item.urn: item for item in planned}, set[str]()
    for item in base:  # in the order of dependence: a provider before what is made with it
        new = after.get(item.urn)
        if new and (item.provider in replaced or _is_another(item, new)):
            replaced.add(item.urn)
            context = item.inputs.get("context")
            if context and context == new.inputs.get("context"):
                raise UserError(_RENAMED.format(context, item.inputs["clusterIdentifier"]))
    changes = difference(base, planned, known.parents, replaced)
    return of_changes(each for each in changes if each.kind in ("deleted", "replaced"))["lost"]


def _is_ours(resource: Resource) -> bool:
    return resource["type"] != STACK and not (resource.get("external") or resource.get("delete"))


def _registered(urn: str, resource: Resource) -> Registered:
    names = (urn.rpartition("::")[2], str(resource.get("parent") or ""), provider_of(resource))
    return Registered(urn, str(resource["type"]), *names, dict(resource.get("inputs") or {}))


def _is_another(old: Registered, new: Registered) -> bool:
    """Whether an input differs by which a resource is known: the engine replaces it."""
    paths: list[tuple[str, ...]] = [("metadata", "name"), ("metadata", "namespace")]
    if old.type == RELEASE:
        paths = [("name",), ("namespace",)]
    elif old.type.startswith(PROVIDERS):
        paths = [("clusterIdentifier",)]
    pairs = ((_at(old.inputs, path), _at(new.inputs, path)) for path in paths)
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _at(inputs: Mapping[str, Any], path: tuple[str, ...]) -> str | None:
    value = get(inputs, *path)
    return value if isinstance(value, str) and value != UNKNOWN else None
