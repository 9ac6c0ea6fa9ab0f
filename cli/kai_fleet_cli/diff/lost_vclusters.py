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
from kai_fleet_cli.recovery.state import State, clusters_of

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

    Raises KeyError or ValueError for a wait that kai-fleet did not write.
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
    """What the state has in a vCluster, in words: its KAI, its queues and its workloads, as in
    `Deployment demo/web`.

    `vcluster` is the URN of the vCluster's component. The words end in "and all that its users
    made", which no state has.
    """
    phrases = list[str]()
    queues = set[str]()
    workloads = list[str]()
    # What is inside has a provider, or a `deletedWith`, that is a child of the component.
    children = {urn for urn, parent in state.parents.items() if parent == vcluster}
    for resource in state.resources.values():
        if not clusters_of(resource) & children:
            continue
        resource_type = resource["type"]
        if resource_type == RELEASE:
            phrases.append(f"KAI {get(resource, 'inputs', 'version')}")
        if resource_type == QUEUES:
            queues.update(map(str, pairs(get(resource, "inputs", "queues"))))
        # Only the names of objects of manifests have a slash, behind the team.
        _, slash, name = read_urn(resource["urn"]).name.partition("/")
        if slash and resource_type.startswith("kubernetes:"):
            kind = resource_type.rpartition(":")[2]
            workloads.append(f"{kind} {name}")
    if queues:
        phrases.append(f"{plural(len(queues), 'queue')} {listed(sorted(queues), 'and')}")
    if workloads:
        phrases.append(listed(sorted(workloads), "and"))
    phrases.append("and all that its users made")
    return ", ".join(phrases)
