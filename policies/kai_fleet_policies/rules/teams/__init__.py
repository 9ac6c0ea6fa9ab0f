"""Rules about teams: the claims to a host, and their node pools in words."""

from collections.abc import Mapping

from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import called


def claims(cluster: DeclaredCluster) -> list[DeclaredTeam]:
    """The teams of a host's stack, then what is granted, then the team of a team stack.

    A grant leaves the mode open: it counts as the one that needs nodes of its own.
    """
    own = [team for team in cluster.teams if team.own_stack]
    moved = {team.name for team in own}
    granted = [grant for grant in cluster.grants if grant.name not in moved]
    return [*(t for t in cluster.teams if not t.own_stack), *granted, *own]


def labels(pool: Mapping[str, str]) -> str:
    """A node pool as a stack file writes it: `{kai-fleet/pool: vision}`."""
    words = {key: called(value) if value is UNKNOWN else value for key, value in pool.items()}
    return "{" + ", ".join(f"{key}: {value}" for key, value in sorted(words.items())) + "}"
