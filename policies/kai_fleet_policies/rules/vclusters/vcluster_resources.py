"""A control plane's requests are within its limits, and within what its team may have."""

from decimal import Decimal
from typing import Any, Final

from kai_fleet.fleet import chart_stores
from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.releases import DEFAULT_VCLUSTER
from kai_fleet.releases.chart_values import merged
from kai_fleet.values import UNKNOWN, mapping, number, pairs, value_at
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity
from kai_fleet_policies.rules.vclusters import amount, of_vcluster

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "Kubernetes makes no pod that asks for more than its limit, or than its namespace's quota has"
    " left: the control plane would not start, and an update waits for it in vain."
)
REMEDY = "Write a larger limit or bound, or ask for less."

# The names of resources in a pod, and in a stack file.
_NAMES: Final = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "ephemeralStorage"}


def check(cluster: DeclaredCluster) -> Problems:
    """What each control plane asks for."""
    for team in cluster.teams:
        values, version = team.chart_values, team.version or DEFAULT_VCLUSTER
        if values is UNKNOWN or version is UNKNOWN or not isinstance(version, str):
            continue  # other rules say so
        own = mapping(value_at(values, chart_stores.RESOURCES))
        if own is UNKNOWN:
            continue
        resources = merged(chart_stores.default_resources(version), own)
        requests, limits = (mapping(resources.get(it)) for it in ("requests", "limits"))
        if requests is UNKNOWN or limits is UNKNOWN:
            continue
        for name, key in _NAMES.items():
            asked, most = amount(requests.get(name)), amount(limits.get(name))
            if asked is None:
                continue
            place = of_vcluster(team, "resources", "requests", key)
            if most is not None and asked > most:
                yield place.mandatory(
                    f"is {requests[name]}, above its limit of {limits[name]}; write limits:"
                    f" {{{key}: {requests[name]}}} or more beside requests"
                )
            yield from _within_bounds(team, values, name, asked, place)


def _within_bounds(
    team: DeclaredTeam, values: Any, name: str, asked: Decimal, place: ProblemPlace
) -> Problems:
    """All pods of a control plane against the team's quota, which counts them."""
    bound = amount(team.bounds.get(name))
    if bound is None:
        return
    replicas = number(value_at(values, chart_stores.REPLICAS)) or 1
    if replicas is UNKNOWN:
        return
    store = chart_stores.store_of(values)
    whole = asked * int(replicas)
    if store.type == "etcd":
        own = pairs(value_at(values, f"{chart_stores.ETCD}.statefulSet.resources.requests"))
        chart = {**chart_stores.ETCD_REQUESTS, **own}
        whole += (amount(chart.get(name)) or 0) * store.members
    if whole > bound:
        yield place.mandatory(
            f"makes {_shown(name, whole)} of {_NAMES[name]} for all pods of the control plane, and"
            f" the team may have {_shown(name, bound)} with all that it runs: Kubernetes would make"
            f" none; ask for less, or raise isolation.bounds.{_NAMES[name]}"
        )


def _shown(name: str, quantity: Decimal) -> str:
    return f"{quantity.normalize():f}" if name == "cpu" else f"{quantity / 2**20:.0f}Mi"
