"""No more and no fewer levels of queues than the KAI version can schedule from."""

from kai_fleet import releases
from kai_fleet.fleet.cluster import Cluster
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity, of_queue

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "Through v0.12 KAI schedules only from the second level: never from the top, never deeper (Q6)."
)
REMEDY = "For such versions build exactly two levels, or use v0.14 or newer."


def check(cluster: Cluster) -> Problems:
    """The level of every leaf against the oldest KAI of the cluster."""
    tree = cluster.tree
    known = [releases.KAI[str(r.version)] for r in cluster.kai if str(r.version) in releases.KAI]
    strict = [r for r in known if not r.top_level_queues_schedule]
    bounded = [r for r in known if r.max_queue_depth is not None]
    levels = tree.levels()
    if not (strict or bounded):
        if any(release.version is UNKNOWN for release in cluster.kai) and any(
            level > 2 or (level == 1 and tree.is_leaf(name)) for name, level in levels.items()
        ):
            until = "the KAI version is known: through v0.12 only two levels of queues work"
            yield ProblemPlace(f"queues of {cluster.name}", cluster.path).undecided(until)
        return
    for name, level in sorted(levels.items()):
        place = of_queue(tree.by_name[name], cluster)
        if strict and level == 1 and tree.is_leaf(name):
            if tree.unknown_parents:
                until = f"all parents are known: {name} may have children"
                yield place.undecided(until)
                continue
            yield place.mandatory(
                f"is a top-level queue without children, and KAI {strict[0].version} never"
                f" schedules pods from those; add a child queue below {name} and let pods"
                " name that one"
            )
        for release in bounded:
            deepest = release.max_queue_depth
            if deepest is not None and level == deepest + 1:
                yield place.mandatory(
                    f"is on level {level}, and KAI {release.version} schedules from {deepest}"
                    " levels only; hang it below a top-level queue, or use KAI v0.14 or newer"
                )
                break
