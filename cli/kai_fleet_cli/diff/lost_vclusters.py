"""vClusters that were created again since the last update: what was in the old one is lost.

The UID of a vCluster's namespace `kube-system` tells. A vCluster that does not answer counts as the
same one.
"""

from collections.abc import Iterable, Mapping

from pulumi.automation.events import StepEventMetadata

from kai_fleet.cluster.kube.identity import ANOTHER
from kai_fleet.names import IDENTITY, QUEUES, RELEASE
from kai_fleet.urns import read_urn
from kai_fleet.values import get, pairs
from kai_fleet.wording import listed, plural
from kai_fleet_cli.diff.changes import SummaryLine
from kai_fleet_cli.recovery.state import Resource, State, urns_within

WORDS = f"{ANOTHER}: its store is new, and everything that was in the old one is lost: "
_ADVICE = ". If there is a backup, restore that first; else this one is filled"


def lost_contents(state: State, uids: Mapping[str, str]) -> dict[str, str]:
    """The contents of the old vCluster, in words, by the name of each that was created again.

    `uids` are the UIDs as they are now, by vCluster, of those that answer.

    Raises one of MALFORMED for a wait that kai-fleet did not write.
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

    Raises one of MALFORMED for a wait that kai-fleet did not write.
    """
    uids = dict[str, str]()
    for step in steps:
        name = read_urn(step.urn).name
        if step.new is None or not name.endswith(IDENTITY):
            continue
        (uid,) = pairs(step.new.inputs)["triggers"]
        uids[name.removesuffix(IDENTITY)] = uid
    return lost_contents(state, uids)


def summary_lines(lost: Mapping[str, str], advice: str = _ADVICE) -> list[SummaryLine]:
    """A line for each vCluster in `lost`, with its contents in words; `advice` ends each line."""
    return [
        SummaryLine(name, f"vCluster {name}", f"{WORDS}{contents}{advice}")
        for name, contents in lost.items()
    ]


def contents_inside(state: State, vcluster: str) -> str:
    """What the state has in a vCluster, in words: its KAI, its queues and its workloads, as in
    `Deployment demo/web`. A part that is not there is left out.

    `vcluster` is the URN of the vCluster's component. The words end in "and all that its users
    made", which no state has.
    """
    # Resources whose provider, or whose `deletedWith`, is a child of the component.
    children = {urn for urn, parent in state.parents.items() if parent == vcluster}
    inside = [state.resources[urn] for urn in urns_within(children, state.resources)]
    phrases = [
        f"KAI {get(resource, 'inputs', 'version')}"
        for resource in inside
        if resource["type"] == RELEASE
    ]
    queues = sorted(_queues_in(inside))
    if queues:
        phrases.append(f"{plural(len(queues), 'queue')} {listed(queues, 'and')}")
    workloads = sorted(filter(None, map(_workload, inside)))
    if workloads:
        phrases.append(listed(workloads, "and"))
    phrases.append("and all that its users made")
    return ", ".join(phrases)


def _queues_in(resources: Iterable[Resource]) -> set[str]:
    """The names of the queues in those of the resources that are queue trees."""
    names = set[str]()
    for resource in resources:
        if resource["type"] == QUEUES:
            names.update(map(str, pairs(get(resource, "inputs", "queues"))))
    return names


def _workload(resource: Resource) -> str:
    """Kind and name of an object of a manifest: `Deployment demo/web`; "" for another resource.

    Only the names of these have a slash, behind the team.
    """
    _, slash, name = read_urn(resource["urn"]).name.partition("/")
    if not slash or not resource["type"].startswith("kubernetes:"):
        return ""
    kind = resource["type"].rpartition(":")[2]
    return f"{kind} {name}"
