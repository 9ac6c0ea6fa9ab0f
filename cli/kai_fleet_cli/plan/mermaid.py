"""Queue trees and node pools as Mermaid flowcharts."""

from collections.abc import Iterable
from typing import Final

from kai_fleet_cli.plan.picture import TeamPicture
from kai_fleet_policies.amounts import written
from kubectl_fleet.declared.queues import (
    RESOURCES,
    UNLIMITED,
    DeclaredQueue,
    QueueIndex,
    QueueShare,
    Resource,
)
from kubectl_fleet.declared.unknown import UNKNOWN

# Mermaid reads these inside quoted labels; it takes entities written with # and without &.
_ENTITIES: Final = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "&": "#amp;"}
_ESCAPED: Final = str.maketrans(_ENTITIES)


def queue_tree(queues: Iterable[DeclaredQueue]) -> str:
    """The tree with each queue's shares, parents first; queues are numbered in that order.

    Queues that pods may name have round corners.
    """
    tree = QueueIndex(queues)
    ids: dict[str, str] = {}
    lines = ["flowchart TD"]

    def draw(level: Iterable[DeclaredQueue], above: str | None) -> None:
        for queue in sorted(level, key=lambda queue: str(queue.name)):
            name = str(queue.name)
            if name in ids:
                continue  # two of one name, or a ring: the rules say so
            ids[name] = f"q{len(ids)}"
            left, right = ("(", ")") if tree.is_leaf(name) else ("[", "]")
            lines.append(f'  {ids[name]}{left}"{_label(queue)}"{right}')
            if above is not None:
                lines.append(f"  {above} --> {ids[name]}")
            draw(tree.children.get(name, ()), ids[name])

    draw((queue for queue in tree.queues if queue.parent not in tree.by_name), None)
    draw(tree.queues, None)  # of a ring, none is at the top
    return "\n".join(lines)


def pools(teams: Iterable[TeamPicture]) -> str:
    """Each node pool with its teams, their GPUs and what their queues are guaranteed of them."""
    by_pool: dict[str, list[str]] = {}
    for number, team in enumerate(sorted(teams, key=lambda team: (team.pool, team.name))):
        lines = [team.name.translate(_ESCAPED), team.bound("no bound on GPUs")]
        if team.queues:
            lines.append(f"{_amount('gpu', team.guaranteed_gpus)} guaranteed")
        by_pool.setdefault(team.pool, []).append(f'    t{number}["{"<br>".join(lines)}"]')
    parts = [
        f'  subgraph p{place}["{(pool or "any node").translate(_ESCAPED)}"]\n'
        + "\n".join((*own, "  end"))
        for place, (pool, own) in enumerate(by_pool.items())
    ]
    return "\n".join(("flowchart LR", *parts)) if parts else ""


def _label(queue: DeclaredQueue) -> str:
    shares = {} if queue.shares is UNKNOWN else queue.shares
    lines = [str(queue.name).translate(_ESCAPED)]
    for resource in reversed(RESOURCES):  # GPUs first: they are what the tree is for
        share = shares.get(resource, QueueShare(limit=0.0))
        if resource == "gpu" or (share.quota, share.limit) != (UNLIMITED, UNLIMITED):
            lines.append(_share(resource, share))
    return "<br>".join(lines)


def _share(resource: Resource, share: QueueShare) -> str:
    words = [f"{resource} {_amount(resource, share.quota)}"]
    if share.limit != UNLIMITED:
        words.append(f"limit {_amount(resource, share.limit or 0.0)}")
    if share.weight != 1.0:
        words.append(f"weight {_amount('gpu', share.weight)}")
    return ", ".join(words)


def _amount(resource: Resource, amount: float) -> str:
    return "not known yet" if amount is UNKNOWN else written(resource, amount, "")
