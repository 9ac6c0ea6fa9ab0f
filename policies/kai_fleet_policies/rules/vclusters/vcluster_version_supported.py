"""vCluster lines that still get fixes."""

from collections.abc import Iterator
from datetime import date

from kai_fleet.fleet.model import DeclaredCluster
from kubectl_fleet.releases import DEFAULT_VCLUSTER, VCLUSTER, advice, vcluster_support
from kubectl_fleet.rules.problem import Level, Problem, Severity, advisory, vcluster_subject

NAME = "vcluster-version-supported"
LEVEL = Level.ADVISORY
SEVERITY = Severity.MEDIUM
WHY = "A line past its end of life gets no more fixes, security fixes included."
REMEDY = "Go up one line at a time, to one that gets fixes."


def check(cluster: DeclaredCluster, today: date | None = None) -> Iterator[Problem]:
    """The end of life of each known version against `today`."""
    for team in cluster.virtual_clusters:
        version = str(team.version or DEFAULT_VCLUSTER)
        if version in VCLUSTER and not (support := vcluster_support(version, today)).maintained:
            path = team.written_at("vcluster", "version")
            message = f"is {version}: {support.words}; {advice(VCLUSTER, version, today)}"
            yield advisory(vcluster_subject(team), path, message)
