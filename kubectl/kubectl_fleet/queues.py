"""`kubectl fleet queues`: the tree of queues with what each may have, has and waits for."""

from collections.abc import Iterator
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_fleet.cluster import USAGE
from kubectl_fleet.table import BAR_WIDTH, UNLIMITED, bar, counted, short
from kubectl_fleet.tree import Queue, Share, Usage

KINDS: Final = USAGE
_NAMES: Final = {"gpu": "GPU", "cpu": "CPU", "memory": "mem"}


def record(usage: Usage) -> dict[str, Any]:
    """Return the JSON: CPU in millicores, memory in 10^6 bytes, -1 for unlimited."""
    elsewhere = {
        queue.name: {
            "pods": queue.pods,
            "waitingPods": queue.waiting_pods,
            "inUse": {name: share.in_use for name, share in queue.shares.items()},
            "waiting": {name: share.waiting for name, share in queue.shares.items()},
        }
        for queue in usage.elsewhere
    }
    queues = [queue.record() for queue in usage.queues.values()]
    return {"queues": queues, "withoutQuotas": elsewhere}


def show(usage: Usage) -> RenderableType:
    """Return a table, of 80 columns for usual names, and below it what is not in it."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("queue", overflow="fold")
    table.add_column("", no_wrap=True)
    # On a narrow terminal the bar gives way to the name.
    table.add_column("", max_width=BAR_WIDTH, overflow="crop")
    for name in ("in use", "quota", "limit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("borrowed, lent", no_wrap=True)
    table.add_column("waiting", justify="right", no_wrap=True)
    elsewhere = ((queue, Text(queue.name), Text()) for queue in usage.elsewhere)
    for queue, first, more in (*_lines(usage.queues), *elsewhere):
        for resource, share in _shown(queue.shares):
            cells = _cells(share, resource)
            if queue.name not in usage.queues:
                cells[3:5] = "?", "?"
            table.add_row(first, *cells)
            first = more
    parts: list[RenderableType] = [table] if table.row_count else []
    if usage.queues:
        legend = "\n█ in use, of its own   ▓ borrowed   ▒ lent to others   ░ free"
        parts.append(Text(legend, "dim"))
        parts.append(Text(_pods(usage)))
    elif "queues" in usage.snapshot.objects:
        parts.append(Text("there is no queue here"))
    return Group(*parts)


def _lines(queues: dict[str, Queue]) -> Iterator[tuple[Queue, Text, Text]]:
    """Return each queue with its name in the tree, and what stands before its other rows."""
    stems = {"": ""}
    tops = [name for name, queue in queues.items() if queue.parent is None]
    for name, queue in queues.items():
        parent = queue.parent or ""
        is_last = name == (queues[parent].children if parent else tops)[-1]
        branch = ("└ " if is_last else "├ ") if parent else ""
        stems[name] = stems[parent] + ("" if not parent else "  " if is_last else "│ ")
        below = "│ " if queue.children else ""
        label = Text.assemble((stems[parent] + branch, "dim"), (name, "bold" if below else ""))
        yield queue, label, Text(stems[name] + below, "dim")


def _shown(shares: dict[str, Share]) -> Iterator[tuple[str, Share]]:
    """Return GPUs always; CPU and memory where they are bounded, used or waited for."""
    for resource, share in shares.items():
        bounded = share.quota != UNLIMITED or share.limit != UNLIMITED
        if resource == "gpu" or bounded or share.in_use > 0 or share.waiting > 0:
            yield resource, share


def _cells(share: Share, resource: str) -> list[RenderableType]:
    def text(amount: float) -> str:
        return "∞" if amount == UNLIMITED else short(resource, amount)

    # The whole bar is the quota, or what is in use where that is more; of an unlimited quota the
    # limit; without a limit there is no bar.
    whole = share.limit if share.quota == UNLIMITED else share.quota
    own, free = share.in_use - share.borrowed, max(whole, share.in_use) - share.in_use - share.lent
    parts = [own, share.borrowed, share.lent, max(0.0, free)]
    moved = [(share.borrowed, "borrowed", "yellow"), (share.lent, "lent", "cyan")]
    return [
        _NAMES[resource],
        Text() if whole == UNLIMITED else bar(parts),
        text(share.in_use),
        text(share.quota),
        text(share.limit),
        Text(", ").join(Text(f"{text(part)} {word}", style) for part, word, style in moved if part),
        Text(text(share.waiting), "red") if share.waiting else "",
    ]


def _pods(usage: Usage) -> str:
    if usage.snapshot.partly:
        return ""
    pods = [pod for pod in usage.pods if pod.by_kai]
    waiting = sum(pod.node is None for pod in pods)
    running = counted(sum(pod.node is not None for pod in pods), "pod", "has a node", "have a node")
    verb = "waits" if waiting == 1 else "wait"
    return f"{running}, {waiting} {verb}: kubectl fleet pending" if waiting else running
