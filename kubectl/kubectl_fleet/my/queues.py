"""`fleet my queues`: the tree of queues with what each may have, has and waits for."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_fleet.declared.queues import UNLIMITED, Resource
from kubectl_fleet.my.bars import WIDTH, Glyphs, bar
from kubectl_fleet.my.view import View, command
from kubectl_fleet.usage.amounts import in_words, short
from kubectl_fleet.usage.pods import PodUse
from kubectl_fleet.usage.queues import QueuePods, QueueUse, ShareUse, by_queue
from kubectl_fleet.wording import agreeing, counted

_NAMES: Final[dict[Resource, str]] = {"gpu": "GPU", "cpu": "CPU", "memory": "mem"}


def record(view: View) -> dict[str, Any]:
    """The JSON: cpu in millicores, memory in 10^6 bytes, -1 for unlimited."""
    return {
        "queues": [queue.record() for queue in view.usage.queues.values()],
        "withoutQuotas": {
            name: {
                "pods": pods.pods,
                "waitingPods": pods.waiting_pods,
                "inUse": asdict(pods.in_use),
                "waiting": asdict(pods.waiting),
            }
            for name, pods in _elsewhere(view)
        },
    }


def show(view: View, glyphs: Glyphs) -> RenderableType:
    """As a table of 80 columns, or as many as there are."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("queue", overflow="fold")
    table.add_column("", no_wrap=True)
    # On a narrow terminal the bar gives way to the name.
    table.add_column("", max_width=WIDTH, overflow="crop")
    for name in ("in use", "quota", "limit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("borrowed, lent", no_wrap=True)
    table.add_column("waiting", justify="right", no_wrap=True)
    for queue, first, more in _lines(view, glyphs):
        for resource, share in _shown(queue.shares):
            table.add_row(first, *_cells(share, resource, glyphs))
            first = more
    for name, pods in _elsewhere(view):
        shares = {
            it: ShareUse(UNLIMITED, in_use=pods.in_use.of(it), waiting=pods.waiting.of(it))
            for it in _NAMES
        }
        for resource, share in _shown(shares):
            cells = _cells(share, resource, glyphs)
            table.add_row(name, *cells[:3], "?", "?", *cells[5:])
            name = ""
    parts: list[RenderableType] = [table] if table.row_count else []
    if view.usage.queues:
        parts.append(Text(f"\n{glyphs.legend}", "dim"))
        parts += [Text(line) for line in (_pods(view), _free(view)) if line]
    elif view.schedules_here and "queues" not in view.cluster.unreadable:
        parts.append(Text("there is no queue here"))
    parts += [Text(never(view, pod)) for pod in view.usage.pods if pod.never]
    return Group(*parts)


def _lines(view: View, glyphs: Glyphs) -> Iterator[tuple[QueueUse, Text, Text]]:
    """Each queue with what stands before its rows: its name in the tree, then the lines below."""
    queues = view.usage.queues
    stems: dict[str | None, str] = {None: ""}
    tops = [name for name, queue in queues.items() if queue.parent is None]
    for name, queue in queues.items():
        siblings = queues[queue.parent].children if queue.parent else tops
        above, is_last = stems[queue.parent], name == siblings[-1]
        branch = (glyphs.last if is_last else glyphs.middle) if queue.parent else ""
        stems[name] = above + ("" if not queue.parent else "  " if is_last else glyphs.past)
        first = Text.assemble((above + branch, "dim"), (name, "" if queue.leaf else "bold"))
        yield queue, first, Text(stems[name] + ("" if queue.leaf else glyphs.past), "dim")


def _shown(shares: Mapping[Resource, ShareUse]) -> Iterator[tuple[Resource, ShareUse]]:
    """GPUs always; CPU and memory where they are bounded, used or waited for."""
    for resource in _NAMES:
        share = shares[resource]
        bounded = share.quota != UNLIMITED or share.limit != UNLIMITED
        if resource == "gpu" or bounded or share.in_use > 0 or share.waiting > 0:
            yield resource, share


def _cells(share: ShareUse, resource: Resource, glyphs: Glyphs) -> list[RenderableType]:
    def text(amount: float) -> str:
        return glyphs.endless if amount == UNLIMITED else short(resource, amount)

    moved = [(share.borrowed, "borrowed", "yellow"), (share.lent, "lent", "cyan")]
    return [
        _NAMES[resource],
        bar(share, glyphs),
        text(share.in_use),
        text(share.quota),
        text(share.limit),
        Text(", ").join(Text(f"{text(it)} {word}", style) for it, word, style in moved if it),
        Text(text(share.waiting), "red") if share.waiting else "",
    ]


def _pods(view: View) -> str:
    if view.cluster.partly:
        return ""
    pods = [pod for pod in view.usage.pods if pod.scheduled_by_kai]
    waiting = sum(pod.waits and not pod.never for pod in pods)
    running = sum(not pod.waits for pod in pods)
    tail = f", {waiting} {agreeing(waiting, 'waits')}: {command('pending')}" if waiting else ""
    return f"{counted(running, 'pod', 'has')} a node{tail}"


def never(view: View, pod: PodUse) -> str:
    """A line about a pod that is not counted among those that wait."""
    name = view.name(pod.name, pod.namespace)
    return f"pod {name} never runs, and is not counted: {pod.never}"


def _free(view: View) -> str:
    """What the nodes have; where KAI is on the host, others hold GPUs too that are not seen."""
    nodes = [node for node in view.usage.gpus.values() if node.count]
    if not nodes or not view.schedules_here:
        return ""
    count, free = sum(node.count for node in nodes), sum(node.free for node in nodes)
    where = counted(len(nodes), "node")
    return f"{in_words('gpu', count)} on {where}, {short('gpu', free)} free"


def _elsewhere(view: View) -> list[tuple[str, QueuePods]]:
    """Queues that pods name and that are not to be seen here: in mode host they are the host's."""
    if view.cluster.partly and view.usage.queues:
        return []
    return sorted(
        (name, pods)
        for name, pods in by_queue(view.usage.pods).items()
        if name not in view.usage.queues
    )
