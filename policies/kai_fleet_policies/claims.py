"""The claims to a host: its teams, the grants of team stacks, and their node pools in words."""

from __future__ import annotations

from collections.abc import Mapping

from kai_fleet_policies.model import UNKNOWN, Cluster, Mode, Text, VirtualCluster, called


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


def labels(pool: Mapping[str, Text]) -> str:
    """A node pool as a stack file writes it: `{kai-fleet/pool: vision}`."""
    words = {key: called(value) if value is UNKNOWN else value for key, value in pool.items()}
    return "{" + ", ".join(f"{key}: {value}" for key, value in sorted(words.items())) + "}"
