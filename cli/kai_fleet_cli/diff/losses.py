"""What an update would lose of what is deployed, asked for by name before anything begins."""

from collections.abc import Mapping, Sequence
from typing import Any

from kai_fleet.names import RELEASE, STACK
from kai_fleet.urns import read_urn
from kai_fleet.values import get
from kai_fleet_cli.diff.changes import Item, difference, of_changes
from kai_fleet_cli.plan.recorder import UNKNOWN, Registered
from kai_fleet_cli.recovery.state import Resource, State, provider_of


def losses(known: State, planned: Sequence[Registered]) -> list[Item]:
    """What goes, and what is another one, if a state becomes what is planned.

    Values that only the update knows count as unchanged.
    """
    base = [_registered(urn, each) for urn, each in known.resources.items() if _is_ours(each)]
    after = {item.urn: item for item in planned}
    both = ((item, after[item.urn]) for item in base if item.urn in after)
    replaced = {item.urn for item, new in both if _is_another(item, new)}
    changes = difference(base, planned, known.parents, replaced)
    ends = ("deleted", "replaced")
    return of_changes(each for each in changes if each.kind in ends or each.ends_gpu_pods)["lost"]


def _is_ours(resource: Resource) -> bool:
    return resource["type"] != STACK and not (resource.get("external") or resource.get("delete"))


def _registered(urn: str, resource: Resource) -> Registered:
    names = (read_urn(urn).name, str(resource.get("parent") or ""), provider_of(resource))
    return Registered(urn, str(resource["type"]), *names, dict(resource.get("inputs") or {}))


def _is_another(old: Registered, new: Registered) -> bool:
    """Whether an input differs by which a resource is known: the engine replaces it."""
    paths: list[tuple[str, ...]] = [("metadata", "name"), ("metadata", "namespace")]
    if old.type == RELEASE:
        paths = [("name",), ("namespace",)]
    pairs = ((_at(old.inputs, path), _at(new.inputs, path)) for path in paths)
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _at(inputs: Mapping[str, Any], path: tuple[str, ...]) -> str | None:
    value = get(inputs, *path)
    return value if isinstance(value, str) and value != UNKNOWN else None
