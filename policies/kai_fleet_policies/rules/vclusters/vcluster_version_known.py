"""Only vCluster versions of the release table."""

from kai_fleet import releases
from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.vclusters import of_vcluster

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = "The keys of vCluster's chart differ by version, its virtual scheduler's among them (V2)."
REMEDY = "Write one of the versions that the message names."


def check(cluster: DeclaredCluster) -> Problems:
    """The version of each vCluster on this host; one that names none gets the newest known."""
    for team in cluster.teams:
        place = of_vcluster(team, "version")
        if team.version is UNKNOWN:
            yield place.undecided("its version is known")
        elif not team.version:
            continue
        elif team.untested and (newest := releases.taken_for(releases.VCLUSTER, team.version)):
            untried = f"is {team.version}, which nobody tried with this program"
            yield place.advisory(f"{untried}; it is taken for {newest}")
        elif team.version not in releases.VCLUSTER:
            write = releases.instead(releases.VCLUSTER, team.version)
            known = ", ".join(releases.VCLUSTER)
            yield place.mandatory(
                f"has version {team.version}, which is not supported here; write {write}"
                f" (all: {known})"
            )
