"""`kubectl fleet pods`: which pod holds which share of which GPU."""

from collections.abc import Iterator
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_fleet.cluster import USAGE
from kubectl_fleet.gpu import Node, Pod
from kubectl_fleet.table import bar, counted, in_words, short
from kubectl_fleet.tree import Usage

KINDS: Final = USAGE


def record(usage: Usage) -> dict[str, Any]:
    """Return the JSON: CPU in millicores, memory in 10^6 bytes, GPUs as KAI counts them."""
    parts = {
        (id(pod), gpu.group): {"group": gpu.group, "device": gpu.device or None, "part": part}
        for node in usage.nodes.values()
        for gpu in node.shared
        for pod, part in gpu.holders
    }
    pods, nodes = [], []
    for pod in usage.shown:
        about: dict[str, Any] = {"namespace": pod.namespace, "name": pod.name, "queue": pod.queue}
        about |= {"node": pod.node, "phase": pod.phase, "created": pod.created, **pod.amounts}
        keys = ((id(pod), group) for group in pod.groups)
        shared = [parts[key] for key in keys if key in parts]
        pods.append({**about, "wholeGpus": pod.gpu.whole, "sharedGpus": shared})
    for node in usage.nodes.values():
        gpus = {"gpus": node.count, "free": node.free, "gpuMemoryMiB": node.memory}
        nodes.append({"name": node.name, **gpus, "product": node.product or None})
    return {"pods": pods, "nodes": nodes}


def show(usage: Usage) -> RenderableType:
    """Return a line for each node with GPUs, and below it a row for each pod on each of them."""
    parts: list[RenderableType] = []
    for node in usage.nodes.values():
        rows = list(_rows(usage, node))
        if not rows and usage.snapshot.shown is not None:
            continue
        # The tables of all nodes have the same columns; the first one names them.
        table = Table(box=None, padding=(0, 1, 0, 0), expand=True, show_header=not parts)
        table.add_column("  GPU", width=14, no_wrap=True)
        table.add_column("taken", width=15, no_wrap=True)
        table.add_column("holds", width=6, justify="right", no_wrap=True)
        table.add_column("pod", overflow="fold", ratio=3)
        table.add_column("queue", overflow="fold", ratio=2)
        table.add_column("age", width=4, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        parts += [Text(_headline(usage, node), "bold"), *([table] if rows else [])]
    return Group(*parts, *map(Text, _rest(usage)))


def _headline(usage: Usage, node: Node) -> str:
    if not node.count:
        return node.name
    memory = f"{node.memory} MiB each" if node.memory else ""
    about = ", ".join(filter(None, (node.product, memory)))
    # Where KAI is on the host, others hold GPUs too that are not seen from here.
    free = f", {short('gpu', node.free)} free" if usage.snapshot.schedules_here else ""
    return f"{node.name}: {in_words('gpu', node.count)}{f' ({about})' if about else ''}{free}"


def _rows(usage: Usage, node: Node) -> Iterator[list[RenderableType]]:
    view = usage.snapshot

    def row(gpu: str, taken: RenderableType, holds: float, pod: Pod) -> list[RenderableType]:
        name = view.name(pod.name, pod.namespace) + (" (ending)" if pod.ending else "")
        return [gpu, taken, short("gpu", holds), name, pod.queue or "-", view.age(pod.created)]

    for pod in node.whole:
        if view.shows(pod.namespace):
            yield row("  whole", "", pod.gpu.whole, pod)
    for gpu in node.shared:
        if view.shown is not None and not any(view.shows(pod.namespace) for pod, _ in gpu.holders):
            continue
        name, used = f"  {(gpu.device or gpu.group)[:12]}", min(1.0, gpu.taken)
        drawn = bar([used, 0.0, 0.0, 1.0 - used])
        taken: RenderableType = Text.assemble(drawn, f" {short('gpu', gpu.taken)}")
        if not gpu.holders:
            yield [name, taken, "", Text("reserved, with no pod on it", "yellow")]
        for pod, part in gpu.holders:
            yield row(name, taken, part, pod)
            name = taken = ""
    for pod in usage.shown_on[node.name]:
        if pod.gpu.mig:
            yield row("  MIG", "", pod.gpu.mig, pod)
        elif pod.gpu.shared and not pod.groups:
            yield row("  not known", "", pod.amounts["gpu"], pod)


def _rest(usage: Usage) -> Iterator[str]:
    view = usage.snapshot
    without = sum(pod.node is not None and not pod.amounts["gpu"] for pod in usage.shown)
    waiting = sum(pod.node is None for pod in usage.shown)
    if without:
        yield f"{counted(without, 'pod')} without a GPU"
    if waiting:
        yield f"{counted(waiting, 'pod', 'waits', 'wait')} for a node: kubectl fleet pending"
    if not usage.shown and "pods" not in view.forbidden and (view.shown or not usage.nodes):
        yield f"no pod holds a GPU {f'in namespace {view.shown}' if view.shown else 'here'}"
