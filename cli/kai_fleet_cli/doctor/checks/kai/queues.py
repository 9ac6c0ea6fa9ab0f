"""Queues as they were declared: there, with their parents and amounts; and no strangers (K4)."""

from collections.abc import Iterator, Mapping
from typing import Any

from kai_fleet.fleet.model import HOST
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot
from kubectl_fleet.declared.queues import RESOURCES, UNLIMITED
from kubectl_fleet.paths import value_at
from kubectl_fleet.wording import counted

_BY_CHART = ("default-parent-queue", "default-queue")
_FIELDS = ("parentQueue", "priority", "preemptMinRuntime", "reclaimMinRuntime", "displayName")
_AMOUNTS = ("quota", "limit", "overQuotaWeight")


def check(snapshot: Snapshot) -> Findings:
    """Every cluster that runs KAI; without a stack's file only whether there are any."""
    for cluster in snapshot.with_kai:
        if "queues" not in cluster.unreadable:
            problems = (*_none(cluster), *_declared(cluster), *_strangers(cluster))
            yield from cluster.or_well(problems, counted(len(cluster.all("queues")), "queue"))


def _none(cluster: ClusterState) -> Findings:
    """KAI schedules from queues only."""
    if not cluster.all("queues") and not cluster.wanted.queues:
        whose = "the host" if cluster.name == HOST else f"team {cluster.name}"
        yield cluster.warning(
            f"queues of {whose}",
            "there is none: KAI runs, and schedules no pod",
            f"declare one at {cluster.wanted.queues_key}, then {cluster.apply}",
        )


def _declared(cluster: ClusterState) -> Findings:
    for name, wanted in cluster.wanted.queue_specs.items():
        item = cluster.named("queues", name)
        if item is None:
            cause = "it is not there: its pods, and those of the queues below it, stay Pending"
            yield cluster.broken(f"queue {name}", cause)
        elif differences := "; ".join(_differences(wanted, item.spec)):
            yield cluster.broken(
                f"queue {name}",
                f"it is not as declared: {differences}",
                f"{cluster.update}, or write what it has at {cluster.wanted.queues_key}",
            )


def _differences(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[str]:
    for field in _FIELDS:
        want, has = wanted.get(field), live.get(field)
        if want != has:
            yield f"{field} is {_or_unset(has)}, not {_or_unset(want)}"
    for resource in RESOURCES:
        shares = [value_at(spec, f"resources.{resource}") or {} for spec in (wanted, live)]
        for amount in _AMOUNTS:
            want, has = (share.get(amount, 0) for share in shares)
            if want != has:
                yield f"{resource} {amount} is {_amount(has)}, not {_amount(want)}"


def _amount(value: object) -> str:
    return "unlimited" if value == UNLIMITED else str(value)


def _or_unset(value: object) -> str:
    return "unset" if value is None else str(value)


def _strangers(cluster: ClusterState) -> Findings:
    if not cluster.wanted.declared:
        return
    names = [it.name for it in cluster.all("queues") if it.name not in cluster.wanted.queue_specs]
    by_chart = [name for name in names if name in _BY_CHART]
    by_hand = [name for name in names if name not in _BY_CHART]
    delete = f"`{cluster.kubectl} delete queue"
    if by_chart:
        yield cluster.warning(
            f"queues {', '.join(by_chart)}",
            "KAI's chart made them, with a quota of 0: they take their part of what others leave",
            f"{delete} {' '.join(sorted(by_chart))}`; leave defaultQueue.createDefaultQueue out of"
            " the values",
        )
    if by_hand:
        yield cluster.warning(
            f"queues {', '.join(sorted(by_hand))}",
            "somebody made them by hand: the stack does not declare them",
            f"declare them at {cluster.wanted.queues_key}, or delete them:"
            f" {delete} {' '.join(_children_first(cluster, by_hand))}`",
        )


def _children_first(cluster: ClusterState, names: list[str]) -> list[str]:
    """KAI does not take back a queue that has children."""
    parents = {item.name: item.spec.get("parentQueue") for item in cluster.all("queues")}

    def depth(name: str) -> int:
        above: list[str] = []
        while (parent := parents.get(name)) and parent not in above:
            above.append(parent)
            name = parent
        return len(above)

    return sorted(names, key=lambda name: (-depth(name), name))
