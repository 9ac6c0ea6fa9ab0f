"""`kubectl fleet pods`: which pod holds which share of which GPU."""

from collections import defaultdict
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kai_usage.amounts import in_words, short
from kai_usage.nodes import Node, SharedGpu
from kai_usage.pods import Pod
from kai_usage.words import number_with_noun, short_line
from kubectl_fleet.table import bar
from kubectl_fleet.tree import Usage

_MAX_GPU_NAME = 12  # characters


def record(usage: Usage) -> dict[str, object]:
    """The JSON: CPU in millicores, memory in 10^6 bytes, GPUs as KAI counts them.

    `pods` are those of shown namespaces, `nodes` all with GPUs. Of a pod `queue` and `node` are
    None without one, and `sharedGpus` has only GPUs that it holds already.
    """
    return {
        "pods": _pod_records(usage),
        "nodes": [_node_record(usage, node) for node in usage.gpu_nodes.values()],
    }


def _pod_records(usage: Usage) -> list[dict[str, object]]:
    """The JSON of the pods that are shown, in the order of the API server.

    `gpu`, `cpu` and `memory` are what a pod takes of its queue, also while it waits. `created` is
    "" without a time stamp. `wholeGpus` is a float. `sharedGpus` are as `_gpu_shares` says, empty
    until KAI has given the pod a group and a node.
    """
    gpu_shares = _gpu_shares(usage)
    return [
        {
            "namespace": pod.namespace,
            "name": pod.name,
            "queue": pod.queue,
            "node": pod.node,
            "phase": pod.phase,
            "created": pod.created,
            **pod.amounts,
            "wholeGpus": pod.gpu.whole,
            "sharedGpus": gpu_shares[id(pod)],
        }
        for pod in usage.shown_pods
    ]


def _gpu_shares(usage: Usage) -> dict[int, list[dict[str, object]]]:
    """The records of the shares of GPUs that pods hold, by id() of the pod, in the order of groups.

    Pods that are not shown have theirs, too; a pod without any has an empty list. `part` is a
    fraction of that GPU as `SharedGpu.holders` has it, 1 for a share of memory if the GPU's is not
    known; `device` is its UUID, None until KAI knows it.
    """
    shares: dict[int, list[dict[str, object]]] = defaultdict(list)
    for node in usage.gpu_nodes.values():
        for gpu in node.shared:
            for pod, fraction in gpu.holders:
                shares[id(pod)].append(
                    {
                        "group": gpu.group,
                        "device": short_line(gpu.device) or None,
                        "part": fraction,
                    }
                )
    return shares


def _node_record(usage: Usage, node: Node) -> dict[str, object]:
    """The JSON of a node.

    `free` is None if the node is not listed, or if the API of queues is not served here: KAI runs
    on the host, or nowhere. `gpus` is 0 if the node is not listed. `gpuMemoryMiB` and `product` are
    None without the node's label.
    """
    return {
        "name": node.name,
        "gpus": node.count,
        "free": node.free if usage.snapshot.has_queue_api else None,
        "gpuMemoryMiB": node.memory_mib,
        "product": node.product or None,
    }


def show(usage: Usage) -> RenderableType:
    """A line for each node with GPUs, and below it a row for each pod on its GPUs.

    A GPU that is reserved for sharing and has no pod has a row, too. If one namespace is shown,
    GPUs on which no pod of it is are left out, and nodes without other GPUs; a shared GPU has the
    rows of all its pods. Below all are the sentences of `_sentences_below`, if there are any.
    """
    lines: list[RenderableType] = []
    for node in usage.gpu_nodes.values():
        rows = list(_node_rows(usage, node))
        if not rows and usage.snapshot.shown_namespace is not None:
            continue
        table = _table(show_header=not lines)  # all tables have the same columns
        for row in rows:
            table.add_row(*row)
        lines.append(Text(_headline(usage, node), "bold"))
        if rows:
            lines.append(table)
    lines += map(Text, _sentences_below(usage))
    return Group(*lines)


def _table(*, show_header: bool) -> Table:
    """A table without rows for one node; fixed widths keep the columns of all tables in line."""
    table = Table(
        box=None,
        padding=(0, 1, 0, 0),
        expand=True,
        show_header=show_header,
    )
    table.add_column("  GPU", width=14, no_wrap=True)
    table.add_column("taken", width=15, no_wrap=True)
    table.add_column("holds", width=6, justify="right", no_wrap=True)
    table.add_column("pod", overflow="fold", ratio=3)
    table.add_column("queue", overflow="fold", ratio=2)
    table.add_column("age", width=4, justify="right", no_wrap=True)
    return table


def _headline(usage: Usage, node: Node) -> str:
    """`node-1: 8 GPUs (NVIDIA-A100, 40960 MiB each), 2 free`; the name alone without GPUs.

    What the node's labels do not say is left out. So is the number of free ones if the API of
    queues is not served here: with KAI on the host, GPUs may be held by pods that cannot be seen
    from here.
    """
    if not node.count:
        return node.name
    memory = f"{node.memory_mib} MiB each" if node.memory_mib else ""
    about = ", ".join(filter(None, (node.product, memory)))
    headline = f"{node.name}: {in_words('gpu', node.count)}"
    if about:
        headline += f" ({about})"
    if usage.snapshot.has_queue_api and node.free is not None:
        headline += f", {short('gpu', node.free)} free"
    return headline


def _node_rows(usage: Usage, node: Node) -> Iterator[list[RenderableType]]:
    """The rows of a node: entire GPUs, shared ones, then pods whose GPU is not known.

    Those are pods with MIG devices that KAI counts, and pods with a share that KAI has given no
    group yet. A shared GPU is left out if one namespace is shown and no pod of it is there.
    """
    view = usage.snapshot
    for pod in node.whole:
        if view.shows(pod.namespace):
            yield _pod_row(usage, pod, "  whole", "", pod.gpu.whole)
    for gpu in node.shared:
        is_shown = any(view.shows(pod.namespace) for pod, _ in gpu.holders)
        if view.shown_namespace is None or is_shown:
            yield from _rows_of_shared_gpu(usage, gpu)
    for pod in usage.shown_pods_by_node[node.name]:
        if pod.gpu.mig:
            yield _pod_row(usage, pod, "  MIG", "", pod.gpu.mig)
        elif pod.gpu.shared and not pod.groups:
            yield _pod_row(usage, pod, "  not known", "", pod.gpu_amount - pod.gpu.whole)


def _rows_of_shared_gpu(usage: Usage, gpu: SharedGpu) -> Iterator[list[RenderableType]]:
    """A row for each pod on a shared GPU, or one without a pod; the first has its name and bar.

    Also for pods of namespaces that are not shown. The name is the first 12 characters of the UUID,
    or of KAI's group if that is not known.
    """
    name = f"  {(short_line(gpu.device) or gpu.group)[:_MAX_GPU_NAME]}"
    taken = min(1.0, gpu.taken)
    drawn = bar([taken, 0.0, 0.0, 1.0 - taken])
    cell: RenderableType = Text.assemble(drawn, f" {short('gpu', gpu.taken)}")
    if not gpu.holders:
        yield [name, cell, "", Text("reserved, with no pod on it", "yellow")]
    for pod, fraction in gpu.holders:
        yield _pod_row(usage, pod, name, cell, fraction)
        name = ""
        cell = ""


def _pod_row(
    usage: Usage,
    pod: Pod,
    gpu: str,
    taken: RenderableType,
    gpu_amount: float,
) -> list[RenderableType]:
    """A row for a pod: `gpu` and `taken` are its first cells, `gpu_amount` what it holds there.

    `(ending)` is behind the name of a pod that is being deleted.
    """
    view = usage.snapshot
    name = view.name_in_table(pod.name, pod.namespace)
    if pod.is_being_deleted:
        name += " (ending)"
    return [gpu, taken, short("gpu", gpu_amount), name, pod.queue or "-", view.age(pod.created)]


def _sentences_below(usage: Usage) -> Iterator[str]:
    """How many of the shown pods have a node and no GPU, and how many wait for a node.

    A MIG device that KAI does not count, as `nvidia.com/mig-1g.10gb.me`, is no GPU here. There is
    no sentence for 0 pods. Pods that are being deleted do not wait. If no pod is shown, whether it
    asks for GPUs or not, a sentence says that none holds a GPU, unless pods may not be listed, or
    all namespaces are shown and a node has GPUs.
    """
    view = usage.snapshot
    pods = usage.shown_pods
    without_gpu = sum(pod.node is not None and not pod.gpu_amount for pod in pods)
    waiting = sum(pod.waits and not pod.is_being_deleted for pod in pods)
    if without_gpu:
        yield f"{number_with_noun(without_gpu, 'pod')} without a GPU"
    if waiting:
        waiting_pods = number_with_noun(waiting, "pod", "waits")
        yield f"{waiting_pods} for a node: kubectl fleet pending"
    if not pods and "pods" not in view.forbidden and (view.shown_namespace or not usage.gpu_nodes):
        where = f"in namespace {view.shown_namespace}" if view.shown_namespace else "here"
        yield f"no pod holds a GPU {where}"
