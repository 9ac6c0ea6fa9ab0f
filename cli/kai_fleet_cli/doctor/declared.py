"""What a stack's file wants of each of its clusters, to hold the live ones against: its fleet."""

from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam, Fleet


def host_of(fleet: Fleet) -> DeclaredCluster:
    """The host cluster of a stack. Of a team stack's only the team's own queues are declared."""
    if not fleet.platform:
        return fleet.host
    team = fleet.teams[fleet.own_team]
    return DeclaredCluster(
        queues=team.host_queues if team.parent_queue else (),
        gpu_resource=fleet.host.gpu_resource,
        queues_key=f"{team.path}.queues",
    )


def found_team(name: str, namespace: str) -> DeclaredTeam:
    """A team that a cluster has and no stack file was given for."""
    return DeclaredTeam(name, namespace, path=f"kai-fleet:teams.{name}")
