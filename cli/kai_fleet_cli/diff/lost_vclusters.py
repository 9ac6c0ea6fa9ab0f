"""vClusters that were created again since the last update: what was in the old one is lost.

The UID of a vCluster's namespace `kube-system` tells. A vCluster that does not answer counts as the
same one.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pulumi.automation.events import StepEventMetadata

from kai_fleet.cluster.kube.identity import ANOTHER
from kai_fleet.names import IDENTITY, QUEUES, RELEASE
from kai_fleet.urns import read_urn
from kai_fleet.values import get, pairs
from kai_fleet.wording import listed, plural
from kai_fleet_cli.diff.changes import SummaryLine
from kai_fleet_cli.recovery.state import Resource, State, clusters_of

WORDS: Final = f"{ANOTHER}: its store is new, and everything that was in the old one is lost: "
_ADVICE: Final = ". If there is a backup, restore that first; else this one is filled"


def lost_contents(state: State, uids: Mapping[str, str]) -> dict[str, str]:
    """The contents of the old vCluster, in words, by the name of each that was created again.

    `uids` are the UIDs as they are now, by vCluster, of those that answer.
    """
    return {
        name: contents_inside(state, vcluster.urn)
        for name, vcluster in state.vclusters.items()
        if uids.get(name, vcluster.uid) != vcluster.uid
    }


def refilled_contents(state: State, steps: Iterable[StepEventMetadata]) -> dict[str, str]:
    """The contents of the old vCluster, in words, by the name of each that was created again and
    that an update with these steps filled.

    `state` is the state before that update. Before it, a vCluster whose namespace was deleted does
    not answer, so nothing tells that it will be another one.
    """
    uids = dict[str, str]()
    for step in steps:
        name = read_urn(step.urn).name
        if step.new is None or not name.endswith(IDENTITY):
            continue
        (uid,) = pairs(step.new.inputs)["triggers"]
        vcluster = name.removesuffix(IDENTITY)
        uids[vcluster] = uid
    return lost_contents(state, uids)


def summary_lines(lost: Mapping[str, str], advice: str = _ADVICE) -> list[SummaryLine]:
    """A line for each vCluster in `lost`, with its contents in words; `advice` ends each line."""
    return [
        SummaryLine(name, f"vCluster {name}", f"{WORDS}{contents}{advice}")
        for name, contents in lost.items()
    ]


def contents_inside(state: State, vcluster: str) -> str:
    """What the state has in a vCluster, in words: its KAI, its queues and its workloads.

    `vcluster` is the URN of the vCluster's component.
    """
    inside = _resources_inside(state, vcluster)
    phrases = [
        f"KAI {get(resource, 'inputs', 'version')}"
        for resource in inside
        if resource["type"] == RELEASE
    ]
    queues = sorted(_queues_in(inside))
    if queues:
        phrases.append(f"{plural(len(queues), 'queue')} {listed(queues, 'and')}")
    workloads = sorted(_label(resource) for resource in inside if _is_workload(resource))
    if workloads:
        phrases.append(listed(workloads, "and"))
    phrases.append("and all that its users made")
    return ", ".join(phrases)


def _resources_inside(state: State, vcluster: str) -> list[Resource]:
    """Resources whose provider, or whose `deletedWith`, is a child of the vCluster's component."""
    children = {urn for urn, parent in state.parents.items() if parent == vcluster}
    resources = state.resources.values()
    return [resource for resource in resources if clusters_of(resource) & children]


def _queues_in(resources: Iterable[Resource]) -> set[str]:
    """The names of all queues in queue trees."""
    names = set[str]()
    for resource in resources:
        if resource["type"] == QUEUES:
            queues = pairs(get(resource, "inputs", "queues"))
            names.update(map(str, queues))
    return names


def _is_workload(resource: Resource) -> bool:
    """Whether it is an object of a manifest: only their names have a slash."""
    if not resource["type"].startswith("kubernetes:"):
        return False
    return "/" in read_urn(resource["urn"]).name


def _label(workload: Resource) -> str:
    """Kind, namespace and name, as in `Deployment demo/web`. The team in front is left out."""
    _, _, kind = workload["type"].rpartition(":")
    _, _, name = read_urn(workload["urn"]).name.partition("/")
    return f"{kind} {name}"
