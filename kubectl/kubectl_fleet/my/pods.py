"""`fleet my pods`: which pod holds which share of which GPU."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_fleet.declared.queues import UNLIMITED
from kubectl_fleet.my.bars import Glyphs, part
from kubectl_fleet.my.view import View, command
from kubectl_fleet.usage.amounts import in_words, rounded, short
from kubectl_fleet.usage.counting import NodeGpus
from kubectl_fleet.usage.pods import PodUse
from kubectl_fleet.usage.queues import QueueUse
from kubectl_fleet.wording import counted


def record(view: View) -> dict[str, Any]:
    """The JSON: cpu in millicores, memory in 10^6 bytes, GPUs as KAI counts them."""
    parts = {
        (pod.uid, gpu.group): {"group": gpu.group, "device": gpu.device or None, "part": each}
        for node in view.usage.gpus.values()
        for gpu in node.shared
        for pod, each in gpu.holders
    }
    return {
        "queues": [
            {**queue.record(), "heldByOthers": _others(view, queue)} for queue in _queues(view)
        ],
        "pods": [
            {
                "namespace": pod.namespace,
                "name": pod.name,
                "queue": pod.queue,
                "node": pod.node,
                "phase": pod.phase,
                "created": pod.created,
                **asdict(pod.amounts),
                "wholeGpus": pod.gpu.whole,
                "sharedGpus": [parts[pod.uid, g] for g in pod.groups if (pod.uid, g) in parts],
            }
            for pod in view.pods
        ],
        "nodes": [
            {
                "name": node.node,
                "gpus": node.count,
                "free": node.free,
                "gpuMemoryMiB": node.memory,
                "product": node.product or None,
            }
            for node in view.usage.gpus.values()
        ],
    }


def show(view: View, glyphs: Glyphs) -> RenderableType:
    """A line for each node with GPUs, and below it a row for each pod on each of them."""
    parts: list[RenderableType] = []
    for node in _nodes(view):
        rows = [*_rows(view, node, glyphs)]
        if not rows and view.namespace is not None:
            continue
        # Those of all nodes have the same columns; the first one names them.
        table = Table(box=None, padding=(0, 1, 0, 0), expand=True, show_header=not parts)
        table.add_column("  GPU", width=14, no_wrap=True)
        table.add_column("taken", width=15, no_wrap=True)
        table.add_column("holds", width=6, justify="right", no_wrap=True)
        table.add_column("pod", overflow="fold", ratio=3)
        table.add_column("queue", overflow="fold", ratio=2)
        table.add_column("age", width=4, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        parts += [Text(_headline(view, node), "bold"), *([table] if rows else [])]
    return Group(*parts, *(Text(line) for line in (*_shares(view), *_rest(view))))


def _nodes(view: View) -> list[NodeGpus]:
    """The nodes with GPUs, then those that tell of none whole, where pods hold parts or slices."""
    known = view.usage.gpus
    holding = {pod.node for pod in view.pods if pod.node and pod.amounts.gpu}
    return [*known.values(), *(NodeGpus(name, 0.0) for name in sorted(holding - known.keys()))]


def _headline(view: View, node: NodeGpus) -> str:
    if not node.count:
        return node.node
    about = [node.product, f"{node.memory} MiB each" if node.memory else ""]
    known = ", ".join(filter(None, about))
    # Where KAI is on the host, others hold GPUs too that are not seen from here.
    free = f", {short('gpu', node.free)} free" if view.schedules_here else ""
    return f"{node.node}: {in_words('gpu', node.count)}{f' ({known})' if known else ''}{free}"


def _rows(view: View, node: NodeGpus, glyphs: Glyphs) -> Iterator[list[RenderableType]]:
    def row(gpu: str, taken: RenderableType, holds: float, pod: PodUse) -> list[RenderableType]:
        name = view.name(pod.name, pod.namespace) + (" (ending)" if pod.ending else "")
        return [gpu, taken, short("gpu", holds), name, pod.queue or "-", view.age(pod.created)]

    for pod in node.whole:
        if view.shows(pod):
            yield row("  whole", "", pod.gpu.whole, pod)
    for gpu in node.shared:
        if view.namespace is not None and not any(view.shows(pod) for pod, _ in gpu.holders):
            continue
        name: str = f"  {(gpu.device or gpu.group)[:12]}"
        taken: RenderableType = Text.assemble(
            part(gpu.taken, glyphs), f" {short('gpu', gpu.taken)}"
        )
        if not gpu.holders:
            yield [name, taken, "", Text("reserved, with no pod on it", "yellow")]
        for pod, each in gpu.holders:
            yield row(name, taken, each, pod)
            name = taken = ""
    for pod in view.pods:
        if pod.node == node.node and pod.gpu.mig:
            yield row("  MIG", "", pod.gpu.mig, pod)
        elif pod.node == node.node and pod.gpu.shared and not pod.groups:
            yield row("  not known", "", pod.amounts.gpu, pod)


def _queues(view: View) -> list[QueueUse]:
    """The queues of the pods that are shown."""
    named = {pod.queue for pod in view.pods if pod.scheduled_by_kai}
    return [queue for queue in view.usage.queues.values() if queue.name in named]


def _others(view: View, queue: QueueUse) -> float:
    """The GPUs that the other queues of the same parent hold."""
    beside = (it for it in view.usage.queues.values() if it.parent == queue.parent)
    return rounded(sum(it.share("gpu").in_use for it in beside if it.name != queue.name))


def _shares(view: View) -> Iterator[str]:
    """What each queue may have and has: why one of its pods waits."""
    for queue in _queues(view):
        gpu = queue.share("gpu")
        most = "no limit" if gpu.limit == UNLIMITED else f"limit {short('gpu', gpu.limit)}"
        beside = f", others below {queue.parent} {short('gpu', _others(view, queue))}"
        yield (
            f"queue {queue.name}: quota {short('gpu', gpu.quota)}, {most}, over-quota weight"
            f" {gpu.weight:g}; holds {short('gpu', gpu.in_use)}{beside if queue.parent else ''}"
        )


def _rest(view: View) -> Iterator[str]:
    without = sum(pod.node is not None and not pod.amounts.gpu for pod in view.pods)
    waiting = sum(pod.waits for pod in view.pods)
    if without:
        yield f"{counted(without, 'pod')} without a GPU"
    if waiting:
        yield f"{counted(waiting, 'pod', 'waits')} for a node: {command('pending')}"
    if not view.pods and not view.blind and (view.namespace or not view.usage.gpus):
        yield f"no pod holds a GPU {f'in namespace {view.namespace}' if view.namespace else 'here'}"
