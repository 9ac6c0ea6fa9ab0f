"""The data of a report. Amounts are GPUs; None is "not known", -1 is unlimited."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kai_fleet.finding import Finding
from kai_fleet_cli.doctor.diagnosis import ExitCode
from kai_fleet_cli.doctor.usage import QueueUse


@dataclass(frozen=True)
class Team:
    """A team with what it was promised, holds and waits for.

    `scheduler` is words with the version that runs. `note` says what is wrong with the version, or
    why the vCluster was not read.
    """

    name: str
    promised: float
    in_use: float | None = None
    waiting: float | None = None
    scheduler: str = ""
    vcluster: str = ""
    note: str = ""


@dataclass(frozen=True)
class Pool:
    """Nodes with the same labels and the teams that run there; no labels: all others with GPUs.

    `gpus` are those of Ready nodes, `in_use` the ones of them that pods hold.
    """

    labels: str
    teams: Sequence[str] = ()
    models: Sequence[str] = ()
    nodes: int = 0
    ready_nodes: int = 0
    gpus: float = 0.0
    in_use: float = 0.0
    not_ready: float = 0.0


@dataclass(frozen=True)
class Wait:
    """Pods of a team that have no node for one reason; no cause: they are on their way."""

    team: str
    queues: Sequence[str]
    pods: int
    gpus: float
    since: datetime | None
    cause: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Report:
    """A stack at one moment.

    `queues` are by cluster, parents before their children. Each node is in one of `pools`, None
    where nodes or pods were not read. `findings` are the doctor's, without those about pods, which
    are in `waits`. `missing` are sentences about what was not read.
    """

    stack: str
    time: datetime
    teams: Sequence[Team] = ()
    queues: Mapping[str, Sequence[QueueUse]] = field(default_factory=dict)
    pools: Sequence[Pool] | None = None
    waits: Sequence[Wait] = ()
    findings: Sequence[Finding] = ()
    missing: Sequence[str] = ()
    exit_code: ExitCode = ExitCode.HEALTHY

    @property
    def figures(self) -> dict[str, float | None]:
        """The totals, in the order in which they are shown. What waits is the sum of `waits`."""
        pools = self.pools or ()
        gpus, in_use = sum(pool.gpus for pool in pools), sum(pool.in_use for pool in pools)
        return {
            "promised": sum(team.promised for team in self.teams),
            "in use": None if self.pools is None else in_use,
            "free": None if self.pools is None else max(0.0, gpus - in_use),
            "waiting": sum(wait.gpus for wait in self.waits),
        }
