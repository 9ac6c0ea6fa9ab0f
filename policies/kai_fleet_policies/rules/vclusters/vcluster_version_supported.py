"""vCluster lines that still get fixes."""

from datetime import date

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.releases import DEFAULT_VCLUSTER, VCLUSTER, advice, vcluster_support
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.vclusters import of_vcluster

LEVEL = Level.ADVISORY
SEVERITY = Severity.MEDIUM
WHY = "A line past its end of life gets no more fixes, security fixes included."
REMEDY = "Go up one line at a time, to one that gets fixes."


def check(cluster: DeclaredCluster, today: date | None = None) -> Problems:
    """The end of life of each known version against `today`."""
    for team in cluster.teams:
        version = str(team.version or DEFAULT_VCLUSTER)
        if version in VCLUSTER and not (support := vcluster_support(version, today)).maintained:
            message = f"is {version}: {support.words}; {advice(VCLUSTER, version, today)}"
            yield of_vcluster(team, "version").advisory(message)
