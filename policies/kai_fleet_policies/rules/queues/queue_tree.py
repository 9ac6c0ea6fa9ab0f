"""Every queue hangs in one tree: unique names, existing parents, no cycles."""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.problem import (
    Level,
    Problem,
    Severity,
    at,
    mandatory,
    queue_subject,
    undecided,
)
from kai_fleet_policies.unknown import UNKNOWN

NAME = "queue-tree"
LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "KAI checks none of this: it drops a queue whose parent is absent, or that is in a cycle, with"
    " everything below it, and says nothing (Q5)."
)
REMEDY = "Give every queue a name of its own and an existing parent, or none for a top-level queue."


def check(cluster: DeclaredCluster) -> Iterator[Problem]:
    """Names, parents and cycles of the queues of one cluster."""
    tree = cluster.tree
    seen: set[str] = set()
    for queue in tree.queues:
        subject, parent_path = queue_subject(queue.name, cluster), at(queue.path, "parent")
        if queue.name is UNKNOWN:
            yield undecided(subject, queue.path, "the name of the queue is known")
        elif queue.name in seen:
            yield mandatory(
                subject,
                queue.path,
                f"is declared twice: queues are cluster-wide, and the later one overwrites the"
                f" first; rename one of the two queues {queue.name}",
            )
        else:
            seen.add(queue.name)
        parent = queue.parent
        if parent is UNKNOWN:
            yield undecided(subject, parent_path, "the name of its parent is known")
        elif parent is not None and parent == queue.name:
            yield mandatory(
                subject,
                parent_path,
                "is its own parent; leave the parent out for a top-level queue, or name another",
            )
        elif parent is not None and parent not in tree.by_name:
            if tree.unknown_names:
                yield undecided(subject, parent_path, "all queue names are known")
                continue
            others = [name for name in tree.by_name if name != queue.name]
            choice = listed(nearest_first(parent, others))
            hint = f"write {choice}, or declare {parent}" if choice else f"declare {parent}"
            yield mandatory(
                subject,
                parent_path,
                f"has the parent {parent}, which is not declared in {cluster.name};"
                f" {hint} with no parent of its own",
            )
    for ring in tree.cycles():
        circle = " → ".join((*ring, ring[0]))
        yield mandatory(
            queue_subject(ring[0], cluster),
            at(tree.by_name[ring[0]].path, "parent"),
            f"is below itself ({circle}); leave the parent of {listed(ring)} out, which then is"
            " the top of the others",
        )
