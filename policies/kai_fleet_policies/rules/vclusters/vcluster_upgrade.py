"""vCluster goes up one minor version at a time, and never down."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.releases.transitions import vcluster_refusal
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.vclusters import of_vcluster

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "Larger steps are untested, and a downgrade does not undo what the newer version wrote to its"
    " volume: the team's whole Kubernetes may not start again (V12)."
)
REMEDY = "Take the steps that the message names, one update each."


def check(cluster: DeclaredCluster) -> Problems:
    """Each vCluster's version against the one that runs now, where that is known."""
    for team in cluster.teams:
        before = team.runs.version if team.runs is not None else None
        if before is None or not isinstance(team.version, str):
            continue
        refusal = vcluster_refusal(before, team.version)
        if refusal is not None:
            yield of_vcluster(team, "version").mandatory(refusal)
