"""Shards, fairness over time and topologies only where the KAI version has them."""

from kai_fleet import releases
from kai_fleet.fleet.model import DeclaredCluster, KaiFeature
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "Before v0.10 a SchedulingShard is a second scheduler beside the chart's own, and no scheduler"
    " knows of usage over time; before v0.12 KAI reads Kueue's topologies, not its own."
)
REMEDY = "Use a version that has it, or leave the key out."


def check(cluster: DeclaredCluster) -> Problems:
    """Each feature against the KAI of the cluster."""
    for feature in cluster.features:
        place = ProblemPlace(f"{feature.kind} of {cluster.name}", feature.path)
        since = "v0.12" if feature.kind == "topologies" else "v0.10"
        having = [version for version, it in releases.KAI.items() if _has(it, feature)]
        for release in cluster.kai:
            version = release.version
            if version is UNKNOWN:
                yield place.undecided(f"the KAI version is known: {feature.kind} come with {since}")
            elif version in releases.KAI and version not in having:
                to = releases.advised(releases.KAI, having[0])
                wanted = f"{to} ({having[0]} is the first here)" if to else having[0]
                yield place.mandatory(
                    f"needs KAI {since} or newer, and the version is {version};"
                    f" write version: {wanted}, or drop {feature.kind}"
                )


def _has(release: releases.KaiRelease, feature: KaiFeature) -> bool:
    return release.has_topologies if feature.kind == "topologies" else release.has_shards
