"""What the containers of a pod ask for together, as Kubernetes and KAI add it up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kai_fleet.settings.quantities import parse_quantity


def requests_of(spec: Mapping[str, Any]) -> dict[str, float]:
    """By resource, in its base unit: the sum of the containers, or the most that starting needs.

    Containers that start first and stay (`restartPolicy: Always`) add to the sum. A limit stands
    for a request that is not written, as the API server has it.
    """
    found: dict[str, float] = {}
    for container in spec.get("containers") or ():
        _add(found, _asked(container))
    starting = spec.get("initContainers")
    if starting:
        staying: dict[str, float] = {}
        most: dict[str, float] = {}
        for container in starting:
            asked = _asked(container)
            _add(asked, staying)
            if container.get("restartPolicy") == "Always":
                staying = asked
            for name, amount in asked.items():
                most[name] = max(most.get(name, 0.0), amount)
        _add(found, staying)
        for name, amount in most.items():
            found[name] = max(found.get(name, 0.0), amount)
    if spec.get("overhead"):
        _add(found, {name: _number(text) for name, text in spec["overhead"].items()})
    return found


def _asked(container: Mapping[str, Any]) -> dict[str, float]:
    resources = container.get("resources")
    if not resources:
        return {}
    both = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: _number(text) for name, text in both.items()}


def _add(total: dict[str, float], more: Mapping[str, float]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0.0) + amount


@lru_cache(maxsize=4096)  # pods of one workload ask for the same
def _number(text: str) -> float:
    try:
        return float(parse_quantity(text))
    except ValueError:
        return 0.0
