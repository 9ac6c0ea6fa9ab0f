"""What KAI's queue controller writes on Queues: for whoever may list those and not all pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kai_fleet.kai.keys import GPU_RESOURCES
from kai_fleet_cli.gpu_usage.amounts import Amounts, rounded
from kai_fleet_cli.gpu_usage.queues import Held
from kai_fleet_cli.gpu_usage.requests import requests_of


def by_status(items: Sequence[Mapping[str, Any]]) -> dict[str, Held]:
    """What the leaves of a tree hold and wait for; how many pods do is not in a status.

    `requested` is of all pods that are not ended, so what waits is the rest of it. Of a share of
    GPU memory it names the memory only: that waits for no GPU here.
    """
    parents = {(item.get("spec") or {}).get("parentQueue") for item in items}
    found = {}
    for item in items:
        if item["metadata"]["name"] not in parents:
            status = item.get("status") or {}
            held, asked = _amounts(status.get("allocated")), _amounts(status.get("requested"))
            waiting = Amounts(*(rounded(max(0.0, a - h)) for a, h in zip(asked, held, strict=True)))
            found[item["metadata"]["name"]] = Held(Amounts(*held), waiting)
    return found


def _amounts(resources: Mapping[str, str] | None) -> tuple[float, float, float]:
    asked = requests_of({"containers": [{"resources": {"requests": resources or {}}}]})
    return (
        rounded(asked.get("cpu", 0.0) * 1000),
        rounded(asked.get("memory", 0.0) / 10**6),
        rounded(sum(asked.get(name, 0.0) for name in GPU_RESOURCES)),
    )
