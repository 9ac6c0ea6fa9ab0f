"""`fleet my queues`: the tree of queues with what each may have, has and waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kai_fleet_cli.gpu_usage.amounts import UNLIMITED, Resource
from kai_fleet_cli.gpu_usage.formatting import in_words, short
from kai_fleet_cli.gpu_usage.queues import Held, QueueUse, Share, by_queue
from kai_fleet_cli.my.bars import WIDTH, Ink, bar
from kai_fleet_cli.my.view import View, command

_NAMES = {"gpu": "GPU", "cpu": "CPU", "memory": "mem"}
_SHOWN: tuple[Resource, ...] = ("gpu", "cpu", "memory")


def record(view: View) -> dict[str, Any]:
    """The JSON: cpu in millicores, memory in 10^6 bytes, -1 for unlimited."""
    return {
        **view.record(),
        "queues": [queue.record() for queue in view.usage.queues.values()],
        "withoutQuotas": {
            name: {
                "pods": held.pods,
                "waitingPods": held.waiting_pods,
                "inUse": held.in_use.record(),
                "waiting": held.waiting.record(),
            }
            for name, held in _elsewhere(view)
        },
    }


def show(view: View, ink: Ink) -> RenderableType:
    """As a table of 80 columns, or as many as there are."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("queue", overflow="fold")
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True, width=WIDTH)
    for name in ("in use", "quota", "limit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("borrowed, lent", no_wrap=True)
    table.add_column("waiting", justify="right", no_wrap=True)
    for queue, first, more in _lines(view, ink):
        for at, resource in enumerate(_resources(queue)):
            table.add_row(first if at == 0 else more, *_cells(queue.share(resource), resource, ink))
    for name, held in _elsewhere(view):
        for at, resource in enumerate(_held(held)):
            share = Share(
                UNLIMITED,
                in_use=held.in_use.of(resource),
                waiting=held.waiting.of(resource),
            )
            cells = _cells(share, resource, ink)
            table.add_row(name if at == 0 else "", *cells[:3], "?", "?", *cells[5:])
    parts: list[RenderableType] = [table] if table.row_count else []
    if view.usage.queues:
        parts.append(Text(f"\n{ink.legend}", "dim"))
        parts += [Text(line) for line in (_sum(view), _free(view)) if line]
    elif view.schedules_here and "queues" not in view.answers.forbidden:
        parts.append(Text("there is no queue here"))
    return Group(*parts)


def _lines(view: View, ink: Ink) -> Iterator[tuple[QueueUse, Text, Text]]:
    """Each queue with what stands before its rows: its name in the tree, then the lines below."""
    queues = view.usage.queues
    stems: dict[str | None, str] = {None: ""}
    tops = [name for name, queue in queues.items() if queue.parent is None]
    for name, queue in queues.items():
        siblings = queues[queue.parent].children if queue.parent else tops
        above, is_last = stems[queue.parent], name == siblings[-1]
        branch = (ink.last if is_last else ink.middle) if queue.parent else ""
        stems[name] = above + ("" if not queue.parent else "  " if is_last else ink.past)
        first = Text.assemble((above + branch, "dim"), (name, "" if queue.leaf else "bold"))
        yield queue, first, Text(stems[name] + ("" if queue.leaf else ink.past), "dim")


def _resources(queue: QueueUse) -> list[Resource]:
    """GPUs always; CPU and memory where they are bounded, used or waited for."""
    return [it for it in _SHOWN if it == "gpu" or _matters(queue.share(it))]


def _matters(share: Share) -> bool:
    bounded = share.quota != UNLIMITED or share.limit != UNLIMITED
    return bounded or share.in_use > 0 or share.waiting > 0


def _held(held: Held) -> list[Resource]:
    return [it for it in _SHOWN if it == "gpu" or held.in_use.of(it) or held.waiting.of(it)]


def _cells(share: Share, resource: Resource, ink: Ink) -> list[RenderableType]:
    def text(amount: float) -> str:
        return ink.endless if amount == UNLIMITED else short(resource, amount)

    moved = Text()
    if share.borrowed:
        moved.append(f"{text(share.borrowed)} borrowed", "yellow")
    if share.borrowed and share.lent:
        moved.append(", ")
    if share.lent:
        moved.append(f"{text(share.lent)} lent", "cyan")
    return [
        _NAMES[resource],
        bar(share, ink),
        text(share.in_use),
        text(share.quota),
        text(share.limit),
        moved,
        Text(text(share.waiting), "red") if share.waiting else "",
    ]


def _sum(view: View) -> str:
    if view.usage.counted_from == "status":
        return ""
    pods = [pod for pod in view.usage.pods if pod.scheduled_by_kai]
    waiting = sum(pod.waits for pod in pods)
    running = len(pods) - waiting
    tail = f", {waiting} wait{'s' if waiting == 1 else ''}: {command('pending')}" if waiting else ""
    return f"{running} pod{' has' if running == 1 else 's have'} a node{tail}"


def _free(view: View) -> str:
    """What the nodes have; where KAI is on the host, others hold GPUs too that are not seen."""
    nodes = [node for node in view.usage.gpus.values() if node.count]
    if not nodes or not view.schedules_here:
        return ""
    count, free = sum(it.count for it in nodes), sum(max(0.0, it.free) for it in nodes)
    where = f"{len(nodes)} node{'' if len(nodes) == 1 else 's'}"
    return f"{in_words('gpu', count)} on {where}, {short('gpu', free)} free"


def _elsewhere(view: View) -> list[tuple[str, Held]]:
    """Queues that pods name and that are not to be seen here: in mode host they are the host's."""
    if view.usage.counted_from == "status" and view.usage.queues:
        return []
    held = by_queue(view.usage.pods)
    return sorted((name, it) for name, it in held.items() if name not in view.usage.queues)
