"""Queue trees and node pools as Mermaid flowcharts."""

from collections.abc import Iterable
from typing import Final

from kai_fleet_cli.plan.picture import TeamPicture
from kai_fleet_policies.amounts import written
from kubectl_fleet.declared import queues as declared
from kubectl_fleet.declared.queues import UNLIMITED, DeclaredQueue, QueueShare, Resource
from kubectl_fleet.declared.unknown import UNKNOWN

# Mermaid reads these inside quoted labels; it takes entities written with # and without &.
_ENTITIES: Final = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "&": "#amp;"}
_ESCAPED: Final = str.maketrans(_ENTITIES)


def queue_tree(queues: Iterable[DeclaredQueue]) -> str:
    """The tree with each queue's shares, parents first; queues are numbered in that order.

    Queues that pods may name have round corners.
    """
    tree = declared.QueueIndex(queues)
    ids: dict[str, str] = {}
    lines = ["flowchart TD"]

    def draw(queue: DeclaredQueue, above: str | None) -> None:
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


def pools(teams: Iterable[TeamPicture]) -> str:
    """Each node pool with its teams, their GPUs and what their queues are guaranteed of them."""
    by_pool: dict[str, list[TeamPicture]] = {}
    for team in teams:
        by_pool.setdefault(team.pool, []).append(team)
    lines = ["flowchart LR"]
    number = 0
    for place, (pool, own) in enumerate(sorted(by_pool.items())):
        lines.append(f'  subgraph p{place}["{(pool or "any node").translate(_ESCAPED)}"]')
        for team in sorted(own, key=lambda team: team.name):
            lines.append(f'    t{number}["{_team(team)}"]')
            number += 1
        lines.append("  end")
    return "\n".join(lines) if by_pool else ""


def _team(team: TeamPicture) -> str:
    lines = [team.name.translate(_ESCAPED), team.bound("no bound on GPUs")]
    if team.inside.queues:
        lines.append(f"{_amount('gpu', team.inside.guaranteed_gpus)} guaranteed")
    return "<br>".join(lines)


def _by_name(queues: Iterable[DeclaredQueue]) -> list[DeclaredQueue]:
    return sorted(queues, key=lambda queue: str(queue.name))


def _label(queue: DeclaredQueue) -> str:
    shares = {} if queue.shares is UNKNOWN else queue.shares
    lines = [str(queue.name).translate(_ESCAPED)]
    for resource in reversed(declared.RESOURCES):  # GPUs first: they are what the tree is for
        share = shares.get(resource, QueueShare(limit=0.0))
        if resource == "gpu" or (share.quota, share.limit) != (UNLIMITED, UNLIMITED):
            lines.append(_share(resource, share))
    return "<br>".join(lines)


def _share(resource: Resource, share: QueueShare) -> str:
    words = [f"{resource} {_amount(resource, share.quota)}"]
    if share.limit != UNLIMITED:
        limit = 0.0 if share.limit is None else share.limit
        words.append(f"limit {_amount(resource, limit)}")
    if share.weight != 1.0:
        words.append(f"weight {_amount('gpu', share.weight)}")
    return ", ".join(words)


def _amount(resource: Resource, amount: float) -> str:
    return "not known yet" if amount is UNKNOWN else written(resource, amount, "")
