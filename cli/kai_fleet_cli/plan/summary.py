"""A plan on one screen: its teams, its node pools, and what somebody should look at first."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kai_fleet_cli.plan.picture import (
    ClusterPicture,
    Picture,
    TeamPicture,
    gpu_amount,
    gpu_quota,
    together,
)
from kubectl_fleet import releases
from kubectl_fleet.declared.queues import UNLIMITED, DeclaredQueue, QueueIndex
from kubectl_fleet.rules.problem import Level, Problem
from kubectl_fleet.wording import counted

_NONE: Final = "-"
# The last one is empty where there is nothing to look at.
TEAM_COLUMNS: Final = (
    *("team", "mode", "scheduler", "support", "vCluster", "GPUs", "queues"),
    "look at",
)
POOL_COLUMNS: Final = ("node pool", "teams", "GPUs", "guaranteed", "not promised")
_MOST_QUEUES: Final = 16


class PoolRow(NamedTuple):
    """What the teams of some nodes may hold, against what their queues are guaranteed.

    `pools` are the labels of the nodes, "" for any; `by_host`: the host's KAI schedules them all.
    The other `cells` are by `POOL_COLUMNS`; `over`: more is guaranteed than there may be.
    """

    pools: Sequence[str]
    by_host: bool
    cells: Sequence[str]
    over: bool


def team_rows(stack: Picture, problems: Iterable[Problem] = ()) -> list[Sequence[str]]:
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


def _concerns(team: TeamPicture, problems: Sequence[Problem]) -> Iterable[str]:
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
    over = left is not None and left < 0
    told = [_NONE if it is None else gpu_amount(it) for it in (gpus, guaranteed, left)]
    if left is not None and left < 0:
        told[-1] = f"{-left:g} too many"
    pools = sorted({team.pool for team in teams})
    return PoolRow(pools, by_host, (", ".join(team.name for team in teams), *told), over)


def queues_told(queues: Sequence[DeclaredQueue]) -> str:
    """A tree with the GPUs that each queue is guaranteed: `ml 16 (serve 4, train 12)`."""
    tree = QueueIndex(queues)
    seen: set[str] = set()

    def told(level: Iterable[DeclaredQueue]) -> str:
        texts = []
        for queue in sorted(level, key=lambda queue: str(queue.name)):
            name = str(queue.name)
            if name in seen or len(seen) == _MOST_QUEUES:
                continue
            seen.add(name)
            below = told(tree.children.get(name, ()))
            texts.append(f"{name} {gpu_amount(gpu_quota(queue))}{f' ({below})' if below else ''}")
        return ", ".join(texts)

    shown = told(queue for queue in tree.queues if queue.parent not in tree.by_name)
    more = len(tree.by_name) - len(seen)
    return f"{shown}, … ({more} more)" if more > 0 else shown
