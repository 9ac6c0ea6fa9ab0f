"""The volume of a vCluster that runs keeps its storage class and size."""

from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.fleet.chart_stores import CLAIM
from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.values import value_at
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity
from kai_fleet_policies.rules.vclusters import ANOTHER, amount, of_vcluster

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "Kubernetes changes no volume template of a StatefulSet: the update would fail each time, with"
    " all else that it was to do (C5)."
)
REMEDY = "Write what the volume has; a volume grows by its claim, as the message says."

# What the chart has of itself.
_DEFAULTS: Final = {"size": "5Gi", "storageClass": ""}


def check(cluster: DeclaredCluster) -> Problems:
    """The volume of each vCluster against the one that it was made with, where that is known."""
    for team in cluster.teams:
        runs = team.runs.store if team.runs is not None else None
        if runs is None or runs.type != team.store.type:
            continue  # vcluster-store says so
        for key, default in _DEFAULTS.items():
            before = runs.claim.get(key) or default
            after = team.store.claim.get(key) or default
            if not same_claim(key, before, after):
                yield _place(team, key).mandatory(_sentence(team, key, before, after))


def _place(team: DeclaredTeam, key: str) -> ProblemPlace:
    """Where the value is written."""
    claim = value_at(team.values, CLAIM)
    if isinstance(claim, Mapping) and key in claim:
        return of_vcluster(team, "values", CLAIM, key)
    return of_vcluster(team, *(("store", key) if team.store.type == "etcd" else (key,)))


def same_claim(key: str, before: Any, after: Any) -> bool:
    """Whether two values of `size` or `storageClass` mean the same."""
    if before == after:
        return True
    size = amount(before) if key == "size" else None
    return size is not None and size == amount(after)


def _sentence(team: DeclaredTeam, key: str, before: Any, after: Any) -> str:
    was, is_now = before or "the cluster's default class", after or "the cluster's default class"
    written = before or '""'
    says = f"changes from {was} to {is_now}, and the volume is made already; write {written}"
    if key == "size" and (amount(after) or 0) > (amount(before) or 0):
        etcds = [f"data-{team.name}-etcd-{n}" for n in range(team.store.members)]
        claims = " ".join(etcds) if team.store.type == "etcd" else f"data-{team.name}-0"
        grow = f'{{"spec":{{"resources":{{"requests":{{"storage":"{after}"}}}}}}}}'
        return (
            f"{says}, and have the volume itself grow where its class can: `kubectl -n"
            f" {team.namespace} patch pvc {claims} -p '{grow}'`"
        )
    return f"{says}. Another volume {ANOTHER}"
