"""What a report shows, as plain data. None is "not known"; GPU amounts are devices, -1 no limit."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from typing import Any, Final

from pydantic.alias_generators import to_camel

from kai_fleet_cli.usage.queues import QueueUse
from kai_fleet_cli.waiting.finding import ExitCode, Finding

# In the JSON besides the fields: what is counted from them.
_COUNTED: Final = ("idle", "trend", "total")


@dataclass(frozen=True)
class GpuSum:
    """The GPUs of all Ready nodes, and of the others; what pods hold, shares as parts of one.

    `free` counts devices of Ready nodes that no pod has any part of.
    """

    ready: float
    not_ready: float
    in_use: float
    free: float

    @property
    def idle(self) -> float:
        """What of the Ready nodes' GPUs no pod holds, parts of shared ones among it."""
        return max(0.0, self.ready - self.in_use)


@dataclass(frozen=True)
class PoolReport:
    """Nodes with the same labels, and the teams that have them; no labels: all others with GPUs."""

    labels: str
    teams: tuple[str, ...]
    nodes: int | None = None
    ready: int | None = None
    products: tuple[str, ...] = ()
    gpus: GpuSum | None = None


@dataclass(frozen=True)
class Version:
    """A KAI or vCluster that is declared, the one that runs, and how long it is maintained."""

    wanted: str | None
    running: str | None = None
    support: str = ""
    maintained: bool = True

    @property
    def name(self) -> str:
        """What is declared, else what runs."""
        return self.wanted or self.running or "none"


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
    def scheduled_by(self) -> str:
        """Which scheduler places its pods."""
        if self.own_stack:
            return "a stack of its own"
        if self.mode == "virtual":
            return f"its own KAI {self.kai.name if self.kai else ''}".rstrip()
        return "the host's KAI" if self.mode == "host" else "Kubernetes"

    @property
    def idle(self) -> float | None:
        """What it was promised and does not use."""
        return None if self.in_use is None else max(0.0, self.promised - self.in_use)


@dataclass(frozen=True)
class WaitGroup:
    """The pods of a team that have no node for one reason."""

    team: str
    queues: tuple[str, ...]
    pods: int
    gpus: float
    since: datetime | None
    cause: str = ""
    fix: str = ""


@dataclass(frozen=True)
class PeriodUse:
    """GPU-hours of a period, of as many days before, and their cost. None is "not known"."""

    gpu_hours: float | None
    before: float | None = None
    cost: float | None = None

    @property
    def trend(self) -> float | None:
        """The change since the period before, in percent; infinite where that had nothing."""
        if self.gpu_hours is None or self.before is None:
            return None
        if not self.before:
            return math.inf if self.gpu_hours else 0.0
        return 100 * (self.gpu_hours / self.before - 1)


def total(uses: Sequence[PeriodUse]) -> PeriodUse:
    """The sum of what was measured; of what is compared and costs only where all of it is."""

    def added(amounts: Iterable[float | None]) -> float | None:
        known = [amount for amount in amounts if amount is not None]
        return sum(known) if known else None

    counted = [use for use in uses if use.gpu_hours is not None]
    compared = all(use.before is not None for use in counted)
    priced = all(use.cost is not None or not use.gpu_hours for use in counted)
    return PeriodUse(
        added(use.gpu_hours for use in counted),
        added(use.before for use in counted) if compared else None,
        added(use.cost for use in counted) if priced else None,
    )


@dataclass(frozen=True)
class UseRow:
    """A team, one of its queues, or the idle GPUs of a pool, by period (`7d`)."""

    name: str
    queue: str
    periods: Mapping[str, PeriodUse]


@dataclass(frozen=True)
class UseOverTime:
    """What Prometheus tells; `currency` is "" without prices. `notes` say what is not counted."""

    periods: Sequence[str]
    currency: str
    teams: Sequence[UseRow]
    idle: Sequence[UseRow]
    notes: Sequence[str] = ()

    @property
    def total(self) -> dict[str, PeriodUse]:
        """Of all teams, by period."""
        rows = [row for row in self.teams if not row.queue]
        return {since: total([row.periods[since] for row in rows]) for since in self.periods}


@dataclass(frozen=True)
class StackUpdate:
    """One update of the stack, as Pulumi's history has it.

    `changes` are sentences about teams and versions. `checkout` is the commit that it was run from,
    and its author; Pulumi notes nobody else.
    """

    when: datetime
    kind: str
    result: str
    version: int | None = None
    changes: Sequence[str] = ()
    checkout: str = ""
    message: str = ""
    resources: str = ""


@dataclass(frozen=True)
class StackReport:
    """Everything on the page. `live` is whether the clusters were asked.

    `trees` are the queues that each KAI serves, parents before children; `findings` are the
    doctor's, or what the rules say of the stack's file; `missing` says why a part is not there.
    `whole`: it is about all of a host; a team's own stack has its pool of nodes only. `foreign` are
    sentences about teams whose way in somebody else than their vCluster wrote. `as_declared` are
    the trees of clusters that were not read. `more` says what there would be besides, and how to
    have it. `exit_code` is not 0 where a cluster or Prometheus was not read. `updates` is None
    where the history was not.
    """

    stack: str
    cluster: str
    made: datetime
    live: bool
    teams: Sequence[TeamReport] = ()
    pools: Sequence[PoolReport] = ()
    trees: Mapping[str, Sequence[QueueUse]] = field(default_factory=dict)
    waits: Sequence[WaitGroup] = ()
    findings: Sequence[Finding] = ()
    well: int = 0
    updates: Sequence[StackUpdate] | None = None
    gpus: GpuSum | None = None
    kubernetes: str = ""
    whole: bool = True
    missing: Mapping[str, str] = field(default_factory=dict)
    foreign: Sequence[str] = ()
    as_declared: Collection[str] = ()
    over_time: UseOverTime | None = None
    more: str = ""
    exit_code: ExitCode = ExitCode.HEALTHY

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
    def unread(self) -> list[str]:
        """The teams of which it is not known who waits."""
        return [team.name for team in self.teams if self.live and team.waiting is None]

    @property
    def waiting_pods(self) -> int:
        """The pods without a node."""
        return sum(team.waiting_pods or 0 for team in self.teams)

    def count(self, health: str) -> int:
        """How many findings of that kind there are."""
        return sum(finding.health == health for finding in self.findings)


def record(report: StackReport) -> dict[str, Any]:
    """The JSON: its keys are the names of the fields in camelCase, and do not change between
    releases. None is "not known".
    """
    whole: dict[str, Any] = _plain(report)
    return whole


def _plain(value: Any) -> Any:
    if hasattr(value, "record"):
        return value.record()
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
        counted = [name for name in _COUNTED if name not in names and hasattr(value, name)]
        return {to_camel(name): _plain(getattr(value, name)) for name in (*names, *counted)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Collection):
        return [_plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value
