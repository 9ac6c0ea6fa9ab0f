"""`kubectl fleet queues`: the tree of queues with the quota, the limit and the use of each."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kai_usage.amounts import UNLIMITED, short
from kai_usage.queues import Queue, Share
from kai_usage.words import agreeing, number_with_noun
from kubectl_fleet.table import BAR_WIDTH, bar, camel
from kubectl_fleet.tree import Usage

_NAMES = {"gpu": "GPU", "cpu": "CPU", "memory": "mem"}
_LEGEND = "\n█ in use, of its own   ▓ borrowed   ▒ lent to others   ░ free"


def record(usage: Usage) -> dict[str, object]:
    """The JSON: CPU in millicores, memory in 10^6 bytes, -1 for unlimited.

    `queues` are parents before their children, with a key for each resource. `withoutQuotas` has,
    by name, the queues that pods of KAI name and the tree lacks; it is empty if the pods of one
    namespace alone may be listed and any queue is known. GPUs are as KAI counts them.
    """
    return {
        "queues": [_record(queue) for queue in usage.queues.values()],
        "withoutQuotas": {queue.name: _record_without_quotas(queue) for queue in usage.elsewhere},
    }


def _record(queue: Queue) -> dict[str, object]:
    """A queue, with a key for each resource (`gpu`, `cpu`, `memory`): its share in camelCase.

    `parent` is None at the top, where `level` is 1. `pods` are those with a node. The numbers of
    pods are 0 if not all pods may be listed.
    """
    record: dict[str, object] = {
        "name": queue.name,
        "parent": queue.parent,
        "level": queue.level,
        "pods": queue.pods_with_node,
        "waitingPods": queue.waiting_pods,
    }
    for resource, share in queue.shares.items():
        record[resource] = camel(asdict(share))
    return record


def _record_without_quotas(queue: Queue) -> dict[str, object]:
    """A queue that the tree lacks: its pods, and amounts by resource, without a name."""
    return {
        "pods": queue.pods_with_node,
        "waitingPods": queue.waiting_pods,
        "inUse": {name: share.in_use for name, share in queue.shares.items()},
        "waiting": {name: share.waiting for name, share in queue.shares.items()},
    }


def show(usage: Usage) -> RenderableType:
    """A table, at most 80 columns for usual names; below it a legend and the number of pods.

    Queues that pods name and the tree lacks (the host's, or absent ones) are last, with `?` for
    quota and limit; none if the pods of one namespace alone may be listed and any queue is known.
    Without any queue in the tree a sentence takes the place of the legend; if Queues may not be
    listed, or their API is not served, there is neither.
    """
    table = _table()
    for queue, label, stem in _with_branches(usage.queues):
        _add_rows(table, queue, label, stem)
    for queue in usage.elsewhere:
        _add_rows(table, queue, Text(queue.name), Text(), has_quotas=False)
    lines: list[RenderableType] = [table] if table.row_count else []
    if usage.queues:
        lines.append(Text(_LEGEND, "dim"))
        lines.append(Text(_pod_counts(usage)))
    elif "queues" in usage.snapshot.objects:
        lines.append(Text("there is no queue here"))
    return Group(*lines)


def _table() -> Table:
    """A table without rows. Its columns are the name, then those of `_cells`.

    The columns of the resource and of the bar have no header.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("queue", overflow="fold")
    table.add_column("", no_wrap=True)
    # On a narrow terminal the bar gives way to the name.
    table.add_column("", max_width=BAR_WIDTH, overflow="crop")
    for name in ("in use", "quota", "limit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("borrowed, lent", no_wrap=True)
    table.add_column("waiting", justify="right", no_wrap=True)
    return table


def _add_rows(
    table: Table,
    queue: Queue,
    label: Text,
    stem: Text,
    *,
    has_quotas: bool = True,
) -> None:
    """Add a row for each resource that is shown: the first with the label, the others the stem."""
    first_cell = label
    for resource, share in queue.shares.items():
        if _is_shown(resource, share):
            table.add_row(first_cell, *_cells(share, resource, has_quotas=has_quotas))
            first_cell = stem


def _with_branches(queues: Mapping[str, Queue]) -> Iterator[tuple[Queue, Text, Text]]:
    """Each queue with its name and the branch in front, and with the stem of its other rows.

    `queues` are in the order of `read_queues`: all below a queue come before its next sibling.
    Another order of them draws a wrong tree. Raises KeyError for a parent that is not there before
    its children, IndexError for one that does not name any child.
    """
    stems = {"": ""}
    for name, queue in queues.items():
        parent = queue.parent or ""
        branch = ""
        stems[name] = ""
        if parent and name == queues[parent].children[-1]:
            branch = "└ "
            stems[name] = f"{stems[parent]}  "
        elif parent:
            branch = "├ "
            stems[name] = f"{stems[parent]}│ "
        style = "bold" if queue.children else ""
        label = Text.assemble((stems[parent] + branch, "dim"), (name, style))
        stem_to_children = "│ " if queue.children else ""
        yield queue, label, Text(stems[name] + stem_to_children, "dim")


def _is_shown(resource: str, share: Share) -> bool:
    """Whether a resource has a row: GPUs do; CPU and memory if bounded, in use or waited for."""
    is_bounded = share.quota != UNLIMITED or share.limit != UNLIMITED
    return resource == "gpu" or is_bounded or share.in_use > 0 or share.waiting > 0


def _cells(share: Share, resource: str, *, has_quotas: bool) -> list[RenderableType]:
    """The cells of a row after the name; `waiting` is empty if nothing waits.

    Without quotas, because the queue cannot be seen, quota and limit are `?`.
    """
    waiting: RenderableType = ""
    if share.waiting:
        waiting = Text(_amount(share.waiting, resource), "red")
    return [
        _NAMES[resource],
        _bar(share),
        _amount(share.in_use, resource),
        _amount(share.quota, resource) if has_quotas else "?",
        _amount(share.limit, resource) if has_quotas else "?",
        _borrowed_and_lent(share, resource),
        waiting,
    ]


def _amount(amount: float, resource: str) -> str:
    """An amount as `short` has it, but `∞` for an unlimited one."""
    return "∞" if amount == UNLIMITED else short(resource, amount)


def _bar(share: Share) -> Text:
    """A bar whose full width stands for the quota, or for what is in use if that is more.

    With an unlimited quota it stands for the limit. Without a limit, too, the bar is empty, as it
    is if all amounts are 0.
    """
    width = share.limit if share.quota == UNLIMITED else share.quota
    if width == UNLIMITED:
        return Text()
    within_quota = share.in_use - share.borrowed
    free = max(width, share.in_use) - share.in_use - share.lent
    return bar([within_quota, share.borrowed, share.lent, max(0.0, free)])


def _borrowed_and_lent(share: Share, resource: str) -> Text:
    """`2 borrowed, 1 lent`, without what is 0; empty if both are."""
    phrases = []
    if share.borrowed:
        phrases.append(Text(f"{_amount(share.borrowed, resource)} borrowed", "yellow"))
    if share.lent:
        phrases.append(Text(f"{_amount(share.lent, resource)} lent", "cyan"))
    return Text(", ").join(phrases)


def _pod_counts(usage: Usage) -> str:
    """`12 pods have a node, 3 wait: kubectl fleet pending`; "" if not all pods may be listed.

    Of KAI's pods in all namespaces, also with -n. If none waits, `12 pods have a node` alone. Pods
    that are being deleted before they have a node count as neither.
    """
    if usage.snapshot.pods_of_one_namespace:
        return ""
    pods = [pod for pod in usage.pods if pod.by_kai]
    placed = sum(not pod.waits for pod in pods)
    waiting = sum(pod.waits and not pod.is_being_deleted for pod in pods)
    running = f"{number_with_noun(placed, 'pod', 'has')} a node"
    if not waiting:
        return running
    return f"{running}, {waiting} {agreeing(waiting, 'waits')}: kubectl fleet pending"
