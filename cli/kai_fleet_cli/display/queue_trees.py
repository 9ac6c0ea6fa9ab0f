"""Queue trees: as a flowchart of Mermaid, and in one line."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kai_fleet.values import UNKNOWN
from kai_fleet.wording import listed
from kai_fleet_cli.plan.picture import gpu_quota
from kai_fleet_policies.model.queues import (
    RESOURCES,
    UNLIMITED,
    DeclaredQueue,
    QueueIndex,
    QueueShare,
    written,
)

_MOST_QUEUES: Final = 16
# Mermaid reads these inside quoted labels; it takes entities written with # and without &.
_ENTITIES: Final = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "&": "#amp;"}
_ESCAPED: Final = str.maketrans(_ENTITIES)


def queue_line(queues: Sequence[DeclaredQueue]) -> str:
    """The leaves of a tree with the GPUs that each is guaranteed: `serve 4, train 12`."""
    tree = QueueIndex(queues)
    leaves = [(name, queue) for name, queue in _by_name(queues) if tree.is_leaf(name)]
    texts = [f"{name} {_amount('gpu', gpu_quota(queue))}" for name, queue in leaves]
    return listed(texts, "and", _MOST_QUEUES)


def queue_flowchart(queues: Iterable[DeclaredQueue]) -> str:
    """The tree with each queue's shares, parents first; queues are numbered in that order.

    Queues that pods may name have round corners.
    """
    tree, ids, lines = QueueIndex(queues), dict[str, str](), ["flowchart TD"]

    def draw(level: Iterable[DeclaredQueue], above: str | None) -> None:
        for name, queue in _by_name(level):
            if name in ids:
                continue  # two of one name, or a ring: the rules report them
            ids[name] = f"q{len(ids)}"
            left, right = ("(", ")") if tree.is_leaf(name) else ("[", "]")
            lines.append(f'  {ids[name]}{left}"{_label(queue)}"{right}')
            if above is not None:
                lines.append(f"  {above} --> {ids[name]}")
            draw(tree.children.get(name, ()), ids[name])

    draw((queue for queue in tree.queues if queue.parent not in tree.by_name), None)
    draw(tree.queues, None)  # of a ring, none is at the top
    return "\n".join(lines)


def _by_name(queues: Iterable[DeclaredQueue]) -> list[tuple[str, DeclaredQueue]]:
    return sorted(((str(queue.name), queue) for queue in queues), key=lambda each: each[0])


def _label(queue: DeclaredQueue) -> str:
    shares = {} if queue.shares is UNKNOWN else queue.shares
    lines = [str(queue.name).translate(_ESCAPED)]
    for resource in reversed(RESOURCES):  # GPUs first: they are what the tree is for
        share = shares.get(resource, QueueShare(limit=0.0))
        if resource == "gpu" or (share.quota, share.limit) != (UNLIMITED, UNLIMITED):
            words = [f"{resource} {_amount(resource, share.quota)}"]
            if share.limit != UNLIMITED:
                words.append(f"limit {_amount(resource, share.limit or 0.0)}")
            if share.weight != 1.0:
                words.append(f"weight {_amount('gpu', share.weight)}")
            lines.append(", ".join(words))
    return "<br>".join(lines)


def _amount(resource: Any, amount: float) -> str:
    return "not known yet" if amount is UNKNOWN else written(resource, amount, "")
