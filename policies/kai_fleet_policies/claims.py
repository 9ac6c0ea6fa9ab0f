"""Who has, or may have, a part of a host: its teams, and the grants of team stacks."""

from __future__ import annotations

from kai_fleet_policies.model import Cluster, Mode, VirtualCluster


def claims(cluster: Cluster) -> list[VirtualCluster]:
    """The teams of a host's stack, then what is granted, then the team of a team stack.

    A grant leaves the mode open: it counts as the one that needs nodes of its own.
    """
    mode: Mode = "host" if cluster.kai else "virtual"
    own = [team for team in cluster.virtual_clusters if team.own_stack]
    granted = [
        VirtualCluster(
            grant.name,
            namespace=f"team-{grant.name}",
            node_pool=grant.node_pool,
            gpus=grant.gpus,
            mode=mode,
            path=grant.path,
            granted=True,
        )
        for grant in cluster.grants
        if not any(team.name == grant.name for team in own)
    ]
    return [*(t for t in cluster.virtual_clusters if not t.own_stack), *granted, *own]
