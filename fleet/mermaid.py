"""A queue tree as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from policies.amounts import written
from policies.model import RESOURCES, Queue, Resource, Share
from policies.queue_tree import UNLIMITED, QueueTree
from policies.unknown import UNKNOWN, Amount

# Mermaid reads these inside quoted labels; it takes entities written with # and without &.
_ENTITIES: Final = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "&": "#amp;"}
_ESCAPED: Final = str.maketrans(_ENTITIES)


def queue_tree(queues: Iterable[Queue]) -> str:
    """The tree with each queue's shares, parents first; queues are numbered in that order.

    Queues that pods may name have round corners.
    """
    tree = QueueTree(queues)
    ids: dict[str, str] = {}
    lines = ["flowchart TD"]

    def draw(queue: Queue, above: str | None) -> None:
        name = str(queue.name)
        if name in ids:
            return  # two of one name, or a ring: the rules say so
        ids[name] = f"q{len(ids)}"
        left, right = ("(", ")") if tree.is_leaf(name) else ("[", "]")
        lines.append(f'  {ids[name]}{left}"{_label(queue)}"{right}')
        if above is not None:
            lines.append(f"  {above} --> {ids[name]}")
        for child in _by_name(tree.children.get(name, ())):
            draw(child, ids[name])

    ordered = _by_name(tree.queues)
    for queue in [q for q in ordered if q.parent not in tree.by_name] + ordered:
        draw(queue, None)
    return "\n".join(lines)


def _by_name(queues: Iterable[Queue]) -> list[Queue]:
    return sorted(queues, key=lambda queue: str(queue.name))


def _label(queue: Queue) -> str:
    shares = {} if queue.shares is UNKNOWN else queue.shares
    lines = [str(queue.name).translate(_ESCAPED)]
    for resource in reversed(RESOURCES):  # GPUs first: they are what the tree is for
        share = shares.get(resource, Share(limit=0.0))
        if resource == "gpu" or (share.quota, share.limit) != (UNLIMITED, UNLIMITED):
            lines.append(_share(resource, share))
    return "<br>".join(lines)


def _share(resource: Resource, share: Share) -> str:
    words = [f"{resource} {_amount(resource, share.quota)}"]
    if share.limit != UNLIMITED:
        limit = 0.0 if share.limit is None else share.limit
        words.append(f"limit {_amount(resource, limit)}")
    if share.weight != 1.0:
        words.append(f"weight {_amount('gpu', share.weight)}")
    return ", ".join(words)


def _amount(resource: Resource, amount: Amount) -> str:
    return "not known yet" if amount is UNKNOWN else written(resource, amount, "")
