"""What a report shows, as plain data. None is "not known"; GPU amounts are devices, -1 no limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from kai_fleet_cli.gpu_usage.queues import QueueUse


@dataclass(frozen=True)
class Gpus:
    """The GPUs of all Ready nodes, and of the others; what pods hold, shares as parts of one.

    `free` counts devices of Ready nodes that no pod has any part of.
    """

    ready: float
    not_ready: float
    in_use: float
    free: float

    @property
    def idle(self) -> float:
        """What of the Ready nodes' GPUs nobody holds, parts of shared ones among it."""
        return max(0.0, self.ready - self.in_use)


@dataclass(frozen=True)
class Pool:
    """Nodes with the same labels, and the teams that have them; no labels: all others with GPUs."""

    labels: str
    teams: tuple[str, ...]
    nodes: int | None = None
    ready: int | None = None
    products: tuple[str, ...] = ()
    gpus: Gpus | None = None


@dataclass(frozen=True)
class Version:
    """A KAI or vCluster that is declared, the one that runs, and how long it is maintained."""

    wanted: str | None
    running: str | None = None
    support: str = ""
    maintained: bool = True
    ends: date | None = None

    @property
    def name(self) -> str:
        """What is declared, else what runs."""
        return self.wanted or self.running or "none"


@dataclass(frozen=True)
class Tree:
    """The queues that one KAI serves, parents before children."""

    name: str
    queues: tuple[QueueUse, ...]


@dataclass(frozen=True)
class TeamReport:
    """A team, what it was promised, and what its pods hold and wait for."""

    name: str
    mode: str
    promised: float
    in_use: float | None = None
    waiting: float | None = None
    waiting_pods: int | None = None
    kai: Version | None = None
    vcluster: Version | None = None
    own_stack: bool = False
    unreached: str = ""

    @property
    def idle(self) -> float | None:
        """What it was promised and does not use."""
        return None if self.in_use is None else max(0.0, self.promised - self.in_use)


@dataclass(frozen=True)
class Wait:
    """The pods of a team that have no node for one reason."""

    team: str
    queues: tuple[str, ...]
    pods: int
    gpus: float
    since: datetime | None
    why: str = ""
    what: str = ""


@dataclass(frozen=True)
class Said:
    """A finding of the doctor, or what a rule says of the stack's file."""

    health: str  # ok, warning or broken
    where: str
    subject: str
    cause: str
    fix: str
    count: int = 1


@dataclass(frozen=True)
class Change:
    """One update of the stack, as Pulumi's history has it."""

    when: datetime
    kind: str
    result: str
    who: str = ""
    message: str = ""
    resources: str = ""


@dataclass(frozen=True)
class Missing:
    """A part that the report lacks, and why."""

    part: str
    why: str


@dataclass(frozen=True)
class Report:
    """Everything on the page. `live` is whether the clusters were asked.

    `whole`: it is about all of a host; a team's own stack has its pool of nodes only. `foreign` are
    sentences about teams whose way in somebody else than their vCluster wrote.
    """

    stack: str
    cluster: str
    made: datetime
    live: bool
    teams: Sequence[TeamReport] = ()
    pools: Sequence[Pool] = ()
    trees: Sequence[Tree] = ()
    waits: Sequence[Wait] = ()
    said: Sequence[Said] = ()
    well: int = 0
    changes: Sequence[Change] = ()
    gpus: Gpus | None = None
    kubernetes: str = ""
    whole: bool = True
    missing: Sequence[Missing] = field(default_factory=tuple)
    foreign: Sequence[str] = ()

    @property
    def promised(self) -> float:
        """The GPUs of all teams together."""
        return sum(team.promised for team in self.teams)

    @property
    def promised_idle(self) -> float:
        """What teams were promised and do not use."""
        return sum(team.idle or 0.0 for team in self.teams)

    @property
    def waiting(self) -> float:
        """The GPUs that pods without a node ask for."""
        return sum(team.waiting or 0.0 for team in self.teams)

    @property
    def waiting_pods(self) -> int:
        """The pods without a node."""
        return sum(team.waiting_pods or 0 for team in self.teams)

    def count(self, health: str) -> int:
        """How many findings of that kind there are."""
        return sum(each.health == health for each in self.said)
