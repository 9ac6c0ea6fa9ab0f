"""A plan in tables of teams and node pools, in words, and as flowcharts of Mermaid."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kai_fleet import releases
from kai_fleet.finding import Finding, Level
from kai_fleet.fleet.amounts import written
from kai_fleet.fleet.queues import (
    RESOURCES,
    UNLIMITED,
    DeclaredQueue,
    QueueIndex,
    QueueShare,
    Resource,
)
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import counted
from kai_fleet_cli.plan.picture import ClusterPicture, Picture, TeamPicture, gpu_quota, together

_NONE: Final = "-"
# The last one is empty where there is nothing to look at.
TEAM_COLUMNS: Final = (
    *("team", "mode", "scheduler", "support", "vCluster", "GPUs", "queues"),
    "look at",
)
POOL_COLUMNS: Final = ("node pool", "teams", "GPUs", "guaranteed", "not promised")
_MOST_QUEUES: Final = 16
# Mermaid reads these inside quoted labels; it takes entities written with # and without &.
_ENTITIES: Final = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "&": "#amp;"}
_ESCAPED: Final = str.maketrans(_ENTITIES)


class PoolRow(NamedTuple):
    """What the teams of some nodes may hold, against what their queues are guaranteed.

    `pools` are the labels of the nodes, "" for any; `by_host`: the host's KAI schedules them all.
    The other `cells` are by `POOL_COLUMNS`; `over`: more is guaranteed than there may be.
    """

    pools: Sequence[str]
    by_host: bool
    cells: Sequence[str]
    over: bool


def team_rows(stack: Picture, problems: Iterable[Finding] = ()) -> list[Sequence[str]]:
    """The teams by `TEAM_COLUMNS` and by name, those with something to look at first."""
    known = list(problems)
    rows = [
        (
            team.name,
            team.mode or _NONE,
            team.scheduler,
            releases.support(team.kai).words if team.kai else _NONE,
            team.vcluster or _NONE,
            team.gpus_in_words,
            str(len(team.queues) or _NONE),
            ", ".join(_concerns(team, known)),
        )
        for team in stack.teams.values()
    ]
    return sorted(rows, key=lambda row: not row[-1])


def _concerns(team: TeamPicture, problems: Sequence[Finding]) -> Iterable[str]:
    key = f"kai-fleet:teams.{team.name}"
    own = [it.level for it in problems if it.path == key or it.path.startswith(f"{key}.")]
    for level, thing in ((Level.MANDATORY, "problem"), (Level.ADVISORY, "warning")):
        if level in own:
            yield counted(own.count(level), thing)
    if team.isolated is False:
        yield "not isolated"
    if team.gpus is None and not team.bounded_elsewhere:
        yield "no bound on GPUs"


def pool_rows(stack: Picture) -> list[PoolRow]:
    """The node pools; the teams that the host's KAI schedules share its queues, so they are one."""
    own: dict[str, list[TeamPicture]] = {}
    shared: list[TeamPicture] = []
    for team in stack.teams.values():
        (shared if team.mode == "host" else own.setdefault(team.pool, [])).append(team)
    rows = [_pool(teams, teams) for _, teams in sorted(own.items())]
    rows += [_pool(shared, [stack], by_host=True)] if shared else []
    return sorted(rows, key=lambda row: not row.over)


def _pool(
    teams: Sequence[TeamPicture], places: Sequence[ClusterPicture], *, by_host: bool = False
) -> PoolRow:
    bounds = [team.gpus for team in teams if team.gpus is not None]
    gpus = sum(bounds) if len(bounds) == len(teams) else None
    promises = [place.guaranteed_gpus for place in places if place.queues]
    guaranteed = together(promises) if promises else None
    left = None if gpus is None or guaranteed == UNLIMITED else gpus - (guaranteed or 0)
    over = -left if left is not None and left < 0 else 0
    told = [_NONE if it is None else _amount("gpu", it) for it in (gpus, guaranteed, left)]
    if over:
        told[-1] = f"{over:g} too many"
    pools = sorted({team.pool for team in teams})
    return PoolRow(pools, by_host, (", ".join(team.name for team in teams), *told), over > 0)


def queues_told(queues: Sequence[DeclaredQueue]) -> str:
    """A tree with the GPUs that each queue is guaranteed: `ml 16 (serve 4, train 12)`."""
    tree = QueueIndex(queues)
    seen: set[str] = set()

    def told(level: Iterable[DeclaredQueue]) -> str:
        texts = []
        for name, queue in _by_name(level):
            if name in seen or len(seen) == _MOST_QUEUES:
                continue
            seen.add(name)
            below = told(tree.children.get(name, ()))
            texts.append(
                f"{name} {_amount('gpu', gpu_quota(queue))}{f' ({below})' if below else ''}"
            )
        return ", ".join(texts)

    shown = told(queue for queue in tree.queues if queue.parent not in tree.by_name)
    more = len(tree.by_name) - len(seen)
    return f"{shown}, … ({more} more)" if more > 0 else shown


def queue_flowchart(queues: Iterable[DeclaredQueue]) -> str:
    """The tree with each queue's shares, parents first; queues are numbered in that order.

    Queues that pods may name have round corners.
    """
    tree = QueueIndex(queues)
    ids: dict[str, str] = {}
    lines = ["flowchart TD"]

    def draw(level: Iterable[DeclaredQueue], above: str | None) -> None:
        for name, queue in _by_name(level):
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


def pool_flowchart(teams: Iterable[TeamPicture]) -> str:
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


def _by_name(queues: Iterable[DeclaredQueue]) -> list[tuple[str, DeclaredQueue]]:
    return sorted(((str(queue.name), queue) for queue in queues), key=lambda each: each[0])


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
