"""Queues as they were declared: there, with their parents and amounts; and no strangers (K4)."""

from collections.abc import Iterator, Mapping
from typing import Any

from kai_fleet.fleet.model import HOST
from kai_fleet.fleet.queues import RESOURCES, UNLIMITED, QueueIndex
from kai_fleet.values import value_at
from kai_fleet.wording import counted
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot
from kai_fleet_cli.usage import queue_of

_BY_CHART = ("default-parent-queue", "default-queue")
_FIELDS = ("parentQueue", "priority", "preemptMinRuntime", "reclaimMinRuntime", "displayName")
_AMOUNTS = ("quota", "limit", "overQuotaWeight")


def check(snapshot: Snapshot) -> Findings:
    """Every cluster that runs KAI; without a stack's file only whether there are any."""
    for cluster in snapshot.with_kai:
        if "queues" not in cluster.unreadable:
            problems = (
                *_none(cluster),
                *_declared(cluster),
                *_strangers(cluster),
                *_of_before(cluster),
            )
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


def _of_team_stacks(cluster: ClusterState) -> dict[str, str]:
    """The team of each queue that its own stack may make: by name, below one that it is granted."""
    below = QueueIndex(map(queue_of, cluster.all("queues"))).children
    found: dict[str, str] = {}
    for grant in cluster.wanted.grants:
        todo = list(below.get(grant.parent_queue, ())) if grant.parent_queue else []
        while todo:
            name = todo.pop().name
            own = name == grant.name or name.startswith(f"{grant.name}-")
            if own and name not in found:  # a queue has one above it: only a ring comes back
                found[name] = grant.name
                todo += below.get(name, ())
    return found


def _of_before(cluster: ClusterState) -> Findings:
    """The host's policy sees one queue at a time: longer names downwards keep off rings."""
    of_team_stacks = _of_team_stacks(cluster)
    for item in cluster.all("queues"):
        above = str(item.spec.get("parentQueue") or "")
        team = of_team_stacks.get(item.name)
        if team and above in of_team_stacks and len(item.name) <= len(above):
            yield cluster.warning(
                f"queue {item.name}",
                f"it is below {above}, whose name is not shorter, as the host refuses it now: by it"
                f" the account of team {team} can close a ring, which stops KAI on the host",
                f"have the stack of team {team} name it {above}-…, or another above it",
            )


def _strangers(cluster: ClusterState) -> Findings:
    if not cluster.wanted.declared:
        return
    known = {*cluster.wanted.queue_specs, *_of_team_stacks(cluster)}
    names = [it.name for it in cluster.all("queues") if it.name not in known]
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
    depths: dict[str, int] = {}
    for name in names:
        chain: dict[str, None] = {}
        here: str | None = name
        while here and here not in depths and here not in chain:
            chain[here] = None
            here = parents.get(here)
        depth = depths.get(here or "", 0)
        for above in reversed(chain):
            depths[above] = depth = depth + 1
    return sorted(names, key=lambda name: (-depths[name], name))
