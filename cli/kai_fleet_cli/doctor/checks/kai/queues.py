"""Queues as they were declared: there, with their parents and amounts; and no strangers (K4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kai_fleet.fleet.queues import RESOURCES
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.declared import HOST
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.objects import name_of, spec

NAME = "queues"
_BY_CHART = ("default-parent-queue", "default-queue")
_FIELDS = ("parentQueue", "priority", "preemptMinRuntime", "reclaimMinRuntime", "displayName")
_AMOUNTS = ("quota", "limit", "overQuotaWeight")


def check(look: Snapshot) -> Iterator[Finding]:
    """Every cluster that runs KAI; without a stack's file only whether there are any."""
    for cluster in look.with_kai:
        if "queues" in cluster.unreadable:
            continue
        found = [*_none(cluster), *_declared(cluster), *_strangers(cluster)]
        yield from found
        if not found:
            yield cluster.well(NAME, f"{len(cluster.all('queues'))} queues")


def _none(cluster: ClusterState) -> Iterator[Finding]:
    """KAI schedules from queues only."""
    if cluster.all("queues") or cluster.wanted.queues:
        return
    whose = "the host" if cluster.name == HOST else f"team {cluster.name}"
    yield cluster.warning(
        NAME,
        f"queues of {whose}",
        "there is none: KAI runs, and schedules no pod",
        f"declare one at {cluster.wanted.queues_key}, then {cluster.update}",
    )


def _declared(cluster: ClusterState) -> Iterator[Finding]:
    there = {name_of(item): spec(item) for item in cluster.all("queues")}
    for name, wanted in cluster.wanted.queue_specs.items():
        if name not in there:
            cause = "it is not there: its pods, and those of the queues below it, stay Pending"
            yield cluster.broken(NAME, f"queue {name}", cause, cluster.update)
            continue
        differs = list(_differences(wanted, there[name]))
        if differs:
            yield cluster.broken(
                NAME,
                f"queue {name}",
                f"it is not as declared: {'; '.join(differs)}",
                f"{cluster.update}, or write what it has at {cluster.wanted.queues_key}",
            )


def _differences(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[str]:
    for field in _FIELDS:
        if wanted.get(field) != live.get(field):
            yield f"{field} is {_shown(live.get(field))}, not {_shown(wanted.get(field))}"
    for resource in RESOURCES:
        want = (wanted.get("resources") or {}).get(resource) or {}
        has = (live.get("resources") or {}).get(resource) or {}
        for amount in _AMOUNTS:
            if want.get(amount, 0) != has.get(amount, 0):
                yield f"{resource} {amount} is {has.get(amount, 0)}, not {want.get(amount, 0)}"


def _strangers(cluster: ClusterState) -> Iterator[Finding]:
    declared = cluster.wanted.queue_specs
    if not cluster.wanted.declared:
        return
    strange = [name_of(q) for q in cluster.all("queues") if name_of(q) not in declared]
    by_chart = [name for name in strange if name in _BY_CHART]
    if by_chart:
        yield cluster.warning(
            NAME,
            f"queues {', '.join(by_chart)}",
            "KAI's chart made them, with a quota of 0: they take their part of what others leave",
            f"`{cluster.kubectl} delete queue {' '.join(sorted(by_chart))}`; leave"
            " defaultQueue.createDefaultQueue out of the values",
        )
    others = [name for name in strange if name not in _BY_CHART]
    if others:
        yield cluster.warning(
            NAME,
            f"queues {', '.join(sorted(others))}",
            "somebody made them by hand: the stack does not declare them",
            f"declare them at {cluster.wanted.queues_key}, or delete them:"
            f" `{cluster.kubectl} delete queue {' '.join(_children_first(cluster, others))}`",
        )


def _children_first(cluster: ClusterState, names: list[str]) -> list[str]:
    """KAI does not take back a queue that has children."""
    parents = {name_of(item): spec(item).get("parentQueue") for item in cluster.all("queues")}

    def depth(name: str) -> int:
        above: list[str] = []
        while (parent := parents.get(name)) and parent not in above:
            above.append(parent)
            name = parent
        return len(above)

    return sorted(names, key=lambda name: (-depth(name), name))


def _shown(value: object) -> str:
    return "unset" if value is None else str(value)
