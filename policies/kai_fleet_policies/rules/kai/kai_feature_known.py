"""Shards, fairness over time and topologies only where the KAI version has them."""

from collections.abc import Iterator

from kai_fleet.fleet.model import DeclaredCluster, DeclaredKai, KaiFeature
from kubectl_fleet import releases
from kubectl_fleet.declared.unknown import UNKNOWN
from kubectl_fleet.rules.problem import Level, Problem, ProblemPlace, Severity

NAME = "kai-feature-known"
LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "Before v0.10 a SchedulingShard is a second scheduler beside the chart's own, and no scheduler"
    " knows of usage over time; before v0.12 KAI reads Kueue's topologies, not its own."
)
REMEDY = "Use a version that has it, or leave the key out."


def check(cluster: DeclaredCluster) -> Iterator[Problem]:
    """Each feature against the KAI of the cluster."""
    for feature in cluster.features:
        place = ProblemPlace(f"{feature.kind} of {cluster.name}", feature.path)
        for release in cluster.kai:
            if release.version is UNKNOWN:
                until = f"the KAI version is known: {feature.kind} come with {_since(feature)}"
                yield place.undecided(until)
                continue
            known = releases.KAI.get(str(release.version))
            if known is not None and not _has(known, feature):
                yield place.mandatory(_message(release, feature))


def _has(release: releases.KaiRelease, feature: KaiFeature) -> bool:
    return release.has_topologies if feature.kind == "topologies" else release.has_shards


def _message(release: DeclaredKai, feature: KaiFeature) -> str:
    first = next(v for v, entry in releases.KAI.items() if _has(entry, feature))
    to = releases.advised(releases.KAI, first)
    wanted = f"{to} ({first} is the first here)" if to else first
    return (
        f"needs KAI {_since(feature)} or newer, and the version is {release.version};"
        f" write version: {wanted}, or drop {feature.kind}"
    )


def _since(feature: KaiFeature) -> str:
    return "v0.12" if feature.kind == "topologies" else "v0.10"
