"""Nodes by their labels: what is free for a new team, and whether its own are there."""

from collections.abc import Mapping, Sequence
from typing import Any

from kai_fleet.kube.objects import in_pool
from kai_fleet.settings.files.project import update_command
from kai_fleet.wording import counted
from kai_fleet_cli.cluster_reader import labels, node_gpus, ready
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.teams.connect import Connected
from kai_fleet_cli.teams.lookup import PlatformFile


def pairs_text(pool: Mapping[str, str], between: str = ", ") -> str:
    """Node labels for a sentence: `pool=ml, zone=a`."""
    return between.join(f"{key}={value}" for key, value in pool.items())


def pool_key(platform: PlatformFile) -> str:
    """The label key that most of a platform's teams have in their node pool."""
    keys = [key for place in platform.teams.values() for key in map(str, place.node_pool)]
    return max(keys, key=keys.count) if keys else "kai-fleet/pool"


def free_pools(platform: PlatformFile, nodes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The values of that label on nodes with GPUs that no team names: `{"pool=ml": "1 node, …"}`"""
    key = pool_key(platform)
    taken = {str(place.node_pool.get(key)) for place in platform.teams.values()}
    gpus: dict[str, list[float]] = {}
    for node in nodes:
        value = labels(node).get(key)
        if value and value not in taken and node_gpus(node):
            gpus.setdefault(f"{key}={value}", []).append(node_gpus(node))
    return {
        pool: f"{counted(len(each), 'node')}, {counted(int(sum(each)), 'GPU')}"
        for pool, each in sorted(gpus.items())
    }


def check_pool(platform: PlatformFile, pool: Mapping[str, str], connected: Connected) -> None:
    """Raise UserError, with the pools that are free, where nodes answer and none that is Ready has
    these labels.

    Without one a vCluster cannot start its DNS, and its update would wait in vain (V16).
    """
    nodes = connected.nodes() if pool else None
    if nodes is None or any(ready(node) and in_pool(labels(node), pool) for node in nodes):
        return
    free = ", ".join(f"{key} ({what})" for key, what in free_pools(platform, nodes).items())
    raise UserError(
        f"no Ready node has {pairs_text(pool, ' and ')}, and without one the vCluster cannot start;"
        f" {f'free are: {free}' if free else 'no labelled pool is free'}. Write another --pool, or"
        f" label nodes first: kubectl label node <node> {pairs_text(pool, ' ')} --overwrite. Where"
        f" nodes come later, write --no-up, and run {update_command(platform.stack)} then"
    )
