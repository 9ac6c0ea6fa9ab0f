"""Node pools whose every node has a taint that their team does not tolerate."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.values import value_at

Taint = Mapping[str, Any]


def closed_pool(team: DeclaredTeam, nodes: Sequence[Iterable[Taint]]) -> tuple[str, str] | None:
    """What is wrong and what to write, where no node of a team's pool takes its pods.

    `nodes` are the taints of each node of the pool. Taints of Kubernetes' own come and go.
    """
    foreign = [
        [
            taint
            for taint in taints
            if taint.get("effect") in ("NoSchedule", "NoExecute")
            and not str(taint["key"]).startswith("node.kubernetes.io/")
            and not any(
                it.tolerates(taint["key"], taint.get("value", ""), taint["effect"])
                for it in team.tolerations
            )
        ]
        for taints in nodes
    ]
    if team.granted or not nodes or not all(foreign):
        return None
    if value_at(team.values, "sync.toHost.pods.enforceTolerations"):
        return None
    taint = foreign[0][0]
    place = f"kai-fleet:teamStacks.{team.name} of the platform" if team.own_stack else team.path
    keys = ("key", "value", "effect")
    written = ", ".join(f"{key}: {json.dumps(taint[key])}" for key in keys if taint.get(key))
    return (
        f"each of its {len(nodes)} nodes has a taint ({taint['key']}) that the team does not"
        " tolerate: only pods that tolerate it themselves run there, its DNS not among them",
        f"write tolerations: [{{{written}}}] at {place}",
    )
