"""Whether there are nodes for a second team, and which to take where there are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kai_fleet_cli import cluster_reader
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.teams.blue_green.trial import labelling
from kai_fleet_cli.teams.lookup import Place


def check(
    place: Place, pool: Mapping[str, str], gpus: int, nodes: Sequence[Mapping[str, Any]]
) -> None:
    """Raise UserError unless Ready nodes of the pool have that many GPUs together.

    Without a Ready node a vCluster cannot start its DNS, and its update would wait in vain (V16).
    """
    there = [node for node in nodes if _has(node, pool)]
    found = sum(cluster_reader.node_gpus(node) for node in there)
    if found >= gpus:
        return
    mine = place.raw.get("nodePool")
    own = [n for n in nodes if isinstance(mine, Mapping) and _has(n, mine)]
    chosen = smallest(own, gpus - found)
    what = " and ".join(f"{key}={value}" for key, value in pool.items())
    if not chosen:
        raise UserError(
            f"Ready nodes with {what} have {found:g} GPUs of {gpus}, and team {place.name}'s own"
            " have not enough to fill up; write a smaller --gpus"
        )
    raise UserError(
        f"Ready nodes with {what} have {found:g} GPUs of {gpus}; take nodes of team {place.name}'s,"
        f" after its pods there are gone (kubectl drain): {labelling(chosen, pool)}"
    )


def smallest(nodes: Sequence[Mapping[str, Any]], gpus: float) -> list[str]:
    """Names of few nodes with that many GPUs; none where they have not, or all would be taken."""
    ordered = sorted(nodes, key=lambda n: (cluster_reader.node_gpus(n), str(n.get("metadata", {}))))
    for node in ordered:
        if cluster_reader.node_gpus(node) >= gpus and len(nodes) > 1:
            return [str(node["metadata"]["name"])]
    chosen: list[str] = []
    for node in reversed(ordered):
        if gpus <= 0:
            break
        chosen.append(str(node["metadata"]["name"]))
        gpus -= cluster_reader.node_gpus(node)
    return chosen if gpus <= 0 and len(chosen) < len(nodes) else []


def _has(node: Mapping[str, Any], pool: Mapping[str, str]) -> bool:
    return pool.items() <= cluster_reader.labels(node).items()
