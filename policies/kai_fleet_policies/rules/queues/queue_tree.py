"""Every queue hangs in one tree: unique names, existing parents, no cycles."""

from typing import Final

from kai_fleet.fleet.cluster import Cluster
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.problem import Level, Problems, Severity, of_queue

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "KAI checks none of this: it drops a queue whose parent is absent, or that is in a cycle, with"
    " everything below it, and says nothing (Q5)."
)
EXISTING_QUEUES: Final = "existingQueues"
CHART_PARENT: Final = "default-parent-queue"  # which KAI's chart makes from v0.10
REMEDY = "Give every queue a name of its own and an existing parent, or none for a top-level queue."


def check(cluster: Cluster) -> Problems:
    """Names, parents and cycles of the queues of one cluster."""
    tree = cluster.tree
    seen: set[str] = set()
    for queue in tree.queues:
        place = of_queue(queue, cluster)
        above = place.at("parent")
        if queue.name is UNKNOWN:
            yield place.undecided("the name of the queue is known")
        elif queue.name in seen:
            yield place.mandatory(
                f"is declared twice: queues are cluster-wide, and the later one overwrites the"
                f" first; rename one of the two queues {queue.name}"
            )
        else:
            seen.add(queue.name)
        parent = queue.parent
        if parent is UNKNOWN:
            yield above.undecided("the name of its parent is known")
        elif parent is not None and parent == queue.name:
            yield above.mandatory(
                "is its own parent; leave the parent out for a top-level queue, or name another"
            )
        elif parent is not None and parent not in tree.by_name:
            if tree.unknown_names:
                yield above.undecided("all queue names are known")
            elif _made_elsewhere(parent, cluster):
                yield above.undecided(
                    f"it is known that its parent {parent}, which nothing here declares, is in"
                    f" {cluster.name}; {EXISTING_QUEUES}: [{parent}] in the pack's configuration of"
                    " queue-tree says so"
                )
            else:
                others = [name for name in tree.by_name if name != queue.name]
                yield above.mandatory(
                    f"has the parent {parent}, which is not declared in {cluster.name};"
                    f" {_instead(parent, others, cluster)}"
                )
    for ring in tree.cycles():
        circle = " → ".join((*ring, ring[0]))
        yield of_queue(tree.by_name[ring[0]], cluster, "parent").mandatory(
            f"is below itself ({circle}); leave the parent of {listed(ring)} out, which then is"
            " the top of the others"
        )


def _instead(parent: str, others: list[str], cluster: Cluster) -> str:
    choice = listed(nearest_first(parent, others))
    if cluster.declared or cluster.kai:  # then all its queues are at hand
        declare = f"declare {parent} with no parent of its own"
    else:
        declare = (
            f"list {parent} in {EXISTING_QUEUES} of the pack's configuration of queue-tree if"
            " another program makes it"
        )
    return f"write {choice}, or {declare}" if choice else declare


def _made_elsewhere(parent: str, cluster: Cluster) -> bool:
    """Whether what makes the parent may stand in another program.

    KAI's chart makes one parent, unless it is told not to. Others are elsewhere if no queue here is
    the top of a tree; beside a top one, an absent parent is taken for a slip.
    """
    if cluster.declared:
        return False
    if parent == CHART_PARENT and cluster.kai:
        return any(not isinstance(kai.version, str) or kai.values is UNKNOWN for kai in cluster.kai)
    if parent == CHART_PARENT:
        return True
    return not cluster.kai and all(queue.parent is not None for queue in cluster.tree.queues)
