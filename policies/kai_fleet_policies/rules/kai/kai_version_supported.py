"""KAI lines that still get fixes."""

from datetime import date

from kai_fleet import releases
from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.kai import of_kai

LEVEL = Level.ADVISORY
SEVERITY = Severity.MEDIUM
WHY = "A line out of support gets no more fixes, security fixes included (K18)."
REMEDY = "Move to the maintained version that the message names."


def check(cluster: DeclaredCluster, today: date | None = None) -> Problems:
    """The support end of each known version against `today`."""
    for release in cluster.kai:
        version = str(release.version)
        if version not in releases.KAI or (support := releases.support(version, today)).maintained:
            continue
        yield of_kai(release, cluster, "version").advisory(
            f"is {version}, and {support.words}; {releases.advice(releases.KAI, version, today)}"
        )
