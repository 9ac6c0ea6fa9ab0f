"""What host mode costs: pods of one job are no longer started together."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet_policies.problem import Level, Problems, Severity, of_team

LEVEL = Level.ADVISORY
SEVERITY = Severity.LOW
WHY = (
    "The host sees a team's pods but not the Jobs that own them, so each pod is a group of its own"
    " (V15)."
)
REMEDY = "Use mode virtual for teams that train on several pods at once."


def check(cluster: DeclaredCluster) -> Problems:
    """Each team in host mode."""
    for team in cluster.teams:
        if team.mode == "host":
            yield of_team(team, "scheduler", "mode").advisory(
                "is in host mode, where KAI schedules the pods of a job one by one, not as a gang;"
                " write mode virtual if its training jobs need all their pods at once"
            )
