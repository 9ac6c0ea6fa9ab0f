"""Who has, or may have, a part of a host: its teams, and the grants of team stacks."""

from __future__ import annotations

from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam


def claims(cluster: DeclaredCluster) -> list[DeclaredTeam]:
    """The teams of a host's stack, then what is granted, then the team of a team stack.

    A grant leaves the mode open: it counts as the one that needs nodes of its own.
    """
    own = [team for team in cluster.virtual_clusters if team.own_stack]
    moved = {team.name for team in own}
    granted = [grant for grant in cluster.grants if grant.name not in moved]
    return [*(t for t in cluster.virtual_clusters if not t.own_stack), *granted, *own]
