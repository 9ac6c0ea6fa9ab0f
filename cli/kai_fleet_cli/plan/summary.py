"""A plan on one screen: its teams, its node pools, and what somebody should look at first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kai_fleet_cli.plan import picture
from kai_fleet_cli.plan.picture import ClusterPicture, Picture, TeamPicture
from kubectl_fleet import releases
from kubectl_fleet.declared.queues import DeclaredQueue, QueueIndex
from kubectl_fleet.rules.problem import Level, Problem
from kubectl_fleet.wording import counted

NONE: Final = "-"
TEAM_COLUMNS: Final = ("team", "mode", "scheduler", "support", "vCluster", "GPUs", "queues")
POOL_COLUMNS: Final = ("node pool", "teams", "GPUs", "guaranteed", "not promised")
CONCERNS: Final = "look at"
_MOST_QUEUES: Final = 16


@dataclass(frozen=True)
class TeamLine:
    """One team as a line of a table, and what is doubtful about it."""

    team: TeamPicture
    concerns: tuple[str, ...] = ()

    @property
    def cells(self) -> tuple[str, ...]:
        """By `TEAM_COLUMNS`."""
        team = self.team
        return (
            team.name,
            team.mode or NONE,
            team.scheduler,
            releases.support(team.inside.kai).words if team.inside.kai else NONE,
            team.vcluster or NONE,
            team.gpus_in_words,
            str(len(team.inside.queues)) if team.inside.queues else NONE,
        )


@dataclass(frozen=True)
class PoolSummary:
    """What the teams of some nodes may hold, against what their queues are guaranteed.

    `pools` are the labels of the nodes, "" for any; `by_host`: the host's KAI schedules them all.
    `left` is None where it is not known, and below 0 where more is guaranteed than there may be.
    """

    pools: tuple[str, ...]
    by_host: bool
    teams: tuple[str, ...]
    gpus: float | None
    guaranteed: float | None
    left: float | None

    @property
    def cells(self) -> tuple[str, ...]:
        """By `POOL_COLUMNS`, without the first."""
        return (
            ", ".join(self.teams),
            NONE if self.gpus is None else picture.gpu_amount(self.gpus),
            NONE if self.guaranteed is None else picture.gpu_amount(self.guaranteed),
            NONE if self.left is None else picture.gpu_amount(self.left),
        )

    @property
    def too_many(self) -> str:
        """`1 too many`; "" where what is guaranteed fits."""
        return f"{-self.left:g} too many" if self.left is not None and self.left < 0 else ""


def team_lines(stack: Picture, problems: Iterable[Problem]) -> list[TeamLine]:
    """The teams by name, those with a concern first."""
    known = list(problems)
    every = [TeamLine(team, tuple(_concerns(team, known))) for team in stack.teams.values()]
    return sorted(every, key=lambda each: (not each.concerns, each.team.name))


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


def pool_summaries(stack: Picture) -> list[PoolSummary]:
    """The node pools; the teams that the host's KAI schedules share its queues, so they are one."""
    pools: dict[str, list[TeamPicture]] = {}
    shared: list[TeamPicture] = []
    for team in stack.teams.values():
        if team.mode == "host":
            shared.append(team)
        else:
            pools.setdefault(team.pool, []).append(team)
    summaries = [
        _pool((pool,), teams, [team.inside for team in teams])
        for pool, teams in sorted(pools.items())
    ]
    if shared:
        names = tuple(sorted({team.pool for team in shared}))
        summaries.append(_pool(names, shared, [stack.host], by_host=True))
    return sorted(summaries, key=lambda pool: not pool.too_many)


def _pool(
    names: tuple[str, ...],
    teams: Sequence[TeamPicture],
    places: Sequence[ClusterPicture],
    *,
    by_host: bool = False,
) -> PoolSummary:
    known = [team.gpus for team in teams if team.gpus is not None]
    capacity = sum(known) if len(known) == len(teams) else None
    promises = [place.guaranteed_gpus for place in places if place.queues]
    guaranteed = picture.together(promises) if promises else None
    left = capacity
    if capacity is not None and guaranteed is not None:
        left = None if guaranteed == -1 else capacity - guaranteed
    return PoolSummary(
        names, by_host, tuple(team.name for team in teams), capacity, guaranteed, left
    )


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
            quota = picture.gpu_amount(picture.gpu_quota(queue))
            texts.append(f"{name} {quota}{f' ({below})' if below else ''}")
        return ", ".join(texts)

    shown = told(queue for queue in tree.queues if queue.parent not in tree.by_name)
    more = len(tree.by_name) - len(seen)
    return f"{shown}, … ({more} more)" if more > 0 else shown
