"""Queues as they were declared: there, with their parents and amounts; and no strangers (K4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleet.doctor.finding import Finding
from fleet.doctor.objects import name_of, spec
from fleet.doctor.seen import Look, Seen
from policies.model import RESOURCES

NAME = "queues"
_BY_CHART = ("default-parent-queue", "default-queue")
_FIELDS = ("parentQueue", "priority", "preemptMinRuntime", "reclaimMinRuntime", "displayName")
_AMOUNTS = ("quota", "limit", "overQuotaWeight")


def check(look: Look) -> Iterator[Finding]:
    """Every cluster whose queues a stack declares."""
    for cluster in look.clusters:
        if cluster.kai is None or not cluster.wanted.declared or "queues" in cluster.unreadable:
            continue
        found = [*_declared(cluster), *_strangers(cluster)]
        yield from found
        if not found:
            yield cluster.well(NAME, f"{len(cluster.wanted.queues)} queues")


def _declared(cluster: Seen) -> Iterator[Finding]:
    there = {name_of(item): spec(item) for item in cluster.all("queues")}
    for name, wanted in cluster.wanted.queues.items():
        if name not in there:
            yield cluster.broken(
                NAME,
                f"queue {name}",
                "it is not there: its pods, and those of the queues below it, stay Pending",
                cluster.update,
            )
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


def _strangers(cluster: Seen) -> Iterator[Finding]:
    declared = cluster.wanted.queues
    strange = [name_of(q) for q in cluster.all("queues") if name_of(q) not in declared]
    by_chart = [name for name in strange if name in _BY_CHART]
    if by_chart:
        yield cluster.warning(
            NAME,
            f"queues {', '.join(by_chart)}",
            "KAI's chart made them, with a quota of 0: they take their part of what others leave",
            f"{cluster.kubectl} delete queue {' '.join(sorted(by_chart))}; leave"
            " defaultQueue.createDefaultQueue out of the values",
        )
    others = [name for name in strange if name not in _BY_CHART]
    if others:
        yield cluster.warning(
            NAME,
            f"queues {', '.join(sorted(others)[:5])}",
            "somebody made them by hand: the stack does not declare them",
            f"declare them at {cluster.wanted.queues_key}, or delete them:"
            f" {cluster.kubectl} delete queue {others[0]}",
        )


def _shown(value: object) -> str:
    return "unset" if value is None else str(value)
