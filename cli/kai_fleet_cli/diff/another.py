"""vClusters that are other ones than the last update saw: what was in them is lost.

The UID of a vCluster's namespace `kube-system` tells it. One that does not answer says nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kai_fleet.cluster.kube.identity import ANOTHER
from kai_fleet.names import IDENTITY, QUEUES, RELEASE
from kai_fleet.urns import read_urn
from kai_fleet.values import get, pairs
from kai_fleet.wording import listed, plural
from kai_fleet_cli.diff.changes import Item
from kai_fleet_cli.recovery.state import Resource, State, clusters_of

WORDS: Final = f"{ANOTHER}: its store is new, and everything that was in the old one is lost: "
_ADVICE: Final = ". If there is a backup, restore that first; else this one is filled"


def losses(known: State, uids: Mapping[str, str]) -> dict[str, str]:
    """By vCluster, of those that answer with another UID than the state has, what was in them."""
    return {
        name: contents(known, vcluster.urn)
        for name, vcluster in known.vclusters.items()
        if uids.get(name, vcluster.uid) != vcluster.uid
    }


def filled(known: State, steps: Iterable[Any]) -> dict[str, str]:
    """The same of those that an update with these steps has filled: `known` is the state before.

    A vCluster whose namespace was deleted answers nothing before it.
    """
    now = dict[str, str]()
    for step in steps:
        name = read_urn(step.urn).name
        if name.endswith(IDENTITY) and step.new is not None:
            (now[name.removesuffix(IDENTITY)],) = step.new.inputs["triggers"]
    return losses(known, now)


def items(lost: Mapping[str, str], advice: str = _ADVICE) -> list[Item]:
    """A line for each of these vClusters."""
    return [
        Item(name, f"vCluster {name}", f"{WORDS}{contents}{advice}")
        for name, contents in lost.items()
    ]


def contents(known: State, vcluster: str) -> str:
    """What the state has in a vCluster, the URN of whose component this is, in words."""
    parts_of_it = {urn for urn, above in known.parents.items() if above == vcluster}
    inside = [item for item in known.resources.values() if clusters_of(item) & parts_of_it]
    parts = [f"KAI {get(item, 'inputs', 'version')}" for item in inside if item["type"] == RELEASE]
    if queues := sorted(_queues(inside)):
        parts.append(f"{plural(len(queues), 'queue')} {listed(queues, 'and')}")
    workloads = sorted(_label(item) for item in inside if _is_workload(item))
    parts += [listed(workloads, "and")] if workloads else []
    return ", ".join([*parts, "and all that its users made"])


def _queues(resources: Iterable[Resource]) -> set[str]:
    trees = (pairs(get(item, "inputs", "queues")) for item in resources if item["type"] == QUEUES)
    return {str(name) for tree in trees for name in tree}


def _is_workload(item: Resource) -> bool:
    """Whether it is an object of a manifest: only those have a slash in their names."""
    return str(item["type"]).startswith("kubernetes:") and "/" in read_urn(str(item["urn"])).name


def _label(item: Resource) -> str:
    """Kind and name, as in `Deployment demo/web`."""
    name = read_urn(str(item["urn"])).name.partition("/")[2]
    return f"{str(item['type']).rpartition(':')[2]} {name}"
