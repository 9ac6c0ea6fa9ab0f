"""`fleet my pods`: which pod holds which share of which GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kai_fleet_cli.gpu_usage.devices import NodeGpus, SharedGpu
from kai_fleet_cli.gpu_usage.formatting import in_words, short
from kai_fleet_cli.gpu_usage.pods import PodUse
from kai_fleet_cli.my.ages import age
from kai_fleet_cli.my.bars import Ink, part
from kai_fleet_cli.my.view import View, command


def record(view: View) -> dict[str, Any]:
    """The JSON: cpu in millicores, memory in 10^6 bytes, GPUs as KAI counts them."""
    parts = {
        (pod.uid, gpu.group): {"group": gpu.group, "device": gpu.device or None, "part": each}
        for node in view.usage.gpus.values()
        for gpu in node.shared
        for pod, each in gpu.holders
    }
    return {
        **view.record(),
        "pods": [
            {
                "namespace": pod.namespace,
                "name": pod.name,
                "queue": pod.queue,
                "node": pod.node,
                "phase": pod.phase,
                "created": pod.created,
                **pod.amounts.record(),
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


def show(view: View, ink: Ink) -> RenderableType:
    """A line for each node with GPUs, and below it a row for each pod on each of them."""
    parts: list[RenderableType] = []
    for node in view.usage.gpus.values():
        rows = [*_rows(view, node, ink)]
        if not rows and view.namespace is not None:
            continue
        parts.append(Text(_headline(view, node), "bold"))
        table = _table(first=len(parts) == 1)
        for row in rows:
            table.add_row(*row)
        if rows:
            parts.append(table)
    return Group(*parts, *(Text(line) for line in _rest(view)))


def _table(first: bool) -> Table:
    """Those of all nodes have the same columns; the first one names them."""
    table = Table(box=None, padding=(0, 1, 0, 0), expand=True, show_header=first)
    table.add_column("  GPU", width=14, no_wrap=True)
    table.add_column("taken", width=15, no_wrap=True)
    table.add_column("holds", width=6, justify="right", no_wrap=True)
    table.add_column("pod", overflow="fold", ratio=3)
    table.add_column("queue", overflow="fold", ratio=2)
    table.add_column("age", width=4, justify="right", no_wrap=True)
    return table


def _headline(view: View, node: NodeGpus) -> str:
    if not node.count:
        return node.node
    about = ", ".join(
        filter(None, (node.product, f"{node.memory} MiB each" if node.memory else ""))
    )
    count = in_words("gpu", node.count)
    # Where KAI is on the host, others hold GPUs too that are not seen from here.
    free = f", {short('gpu', max(0.0, node.free))} free" if view.schedules_here else ""
    return f"{node.node}: {count}{f' ({about})' if about else ''}{free}"


def _rows(view: View, node: NodeGpus, ink: Ink) -> Iterator[list[RenderableType]]:
    for pod, count in node.whole:
        if _shown(view, pod):
            yield ["  whole", "", short("gpu", count), *_names(view, pod)]
    for gpu in node.shared:
        if not any(_shown(view, pod) for pod, _ in gpu.holders) and view.namespace is not None:
            continue
        for at, (pod, each) in enumerate(gpu.holders):
            first = [_name(gpu), _taken(gpu, ink)] if at == 0 else ["", ""]
            yield [*first, short("gpu", each), *_names(view, pod)]
        if not gpu.holders:
            yield [_name(gpu), _taken(gpu, ink), "", Text("reserved, with no pod on it", "yellow")]
    for pod in view.pods:
        if pod.node != node.node:
            continue
        if pod.gpu.mig:
            yield ["  MIG", "", short("gpu", pod.gpu.mig), *_names(view, pod)]
        elif pod.gpu.shared and not pod.groups:
            yield ["  not known", "", short("gpu", pod.amounts.gpu), *_names(view, pod)]


def _shown(view: View, pod: PodUse) -> bool:
    return view.namespace in (None, pod.namespace)


def _names(view: View, pod: PodUse) -> list[str]:
    place = "" if pod.namespace == (view.namespace or "default") else f"{pod.namespace}/"
    ending = " (ending)" if pod.ending else ""
    return [f"{place}{pod.name}{ending}", pod.queue or "-", age(pod.created, view.now)]


def _name(gpu: SharedGpu) -> str:
    return f"  {(gpu.device or gpu.group)[:12]}"


def _taken(gpu: SharedGpu, ink: Ink) -> Text:
    return Text.assemble(part(gpu.taken, ink), f" {short('gpu', gpu.taken)}")


def _rest(view: View) -> list[str]:
    without = sum(pod.node is not None and not pod.amounts.gpu for pod in view.pods)
    waiting = sum(pod.waits for pod in view.pods)
    found = []
    if without:
        found.append(f"{without} pod{'' if without == 1 else 's'} without a GPU")
    if waiting:
        found.append(
            f"{waiting} {'pod waits' if waiting == 1 else 'pods wait'} for a node:"
            f" {command('pending')}"
        )
    return found or ([] if view.usage.gpus or view.blind else ["no pod holds a GPU here"])
