"""Shards, fairness over time and topologies only where the KAI version has them."""

from typing import Final

from kai_fleet import releases
from kai_fleet.fleet.cluster import Cluster
from kai_fleet.values import UNKNOWN, at
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "Before v0.10 a SchedulingShard is a second scheduler beside the chart's own, and no scheduler"
    " knows of usage over time; before v0.12 KAI reads Kueue's topologies, not its own."
)
REMEDY = "Use a version that has it, or leave the key out."


_SINCE: Final = {"shards": "v0.10", "fairshare": "v0.10", "topologies": "v0.12"}


def check(cluster: Cluster) -> Problems:
    """Each feature against the KAI of the cluster."""
    for kai in cluster.kai:
        for kind, since in _SINCE.items():
            used = getattr(kai, kind)
            if used is UNKNOWN or not used:
                continue
            pools = kind == "shards" and cluster.pools
            path = at(cluster.path, "pools") if pools else at(kai.path, kind)
            place = ProblemPlace(f"{kind} of {cluster.name}", path)
            having = [version for version, release in releases.KAI.items() if _has(release, kind)]
            if kai.version is UNKNOWN:
                yield place.undecided(f"the KAI version is known: {kind} come with {since}")
            elif kai.version in releases.KAI and kai.version not in having:
                to = releases.advised(releases.KAI, having[0])
                advice = f"{to} ({having[0]} is the first here)" if to else having[0]
                yield place.mandatory(
                    f"needs KAI {since} or newer, and the version is {kai.version};"
                    f" write version: {advice}, or drop {kind}"
                )


def _has(release: releases.KaiRelease, kind: str) -> bool:
    return release.has_topologies if kind == "topologies" else release.has_shards
