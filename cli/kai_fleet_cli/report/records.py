"""What a report says about a stack at one moment.

Amounts are GPUs: None is unknown, -1 is unlimited.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kai_fleet_cli.doctor.diagnosis import ExitCode
from kai_fleet_policies.finding import Finding
from kai_usage.queues import borrowed


@dataclass(frozen=True)
class Team:
    """A team's GPUs.

    Args:
        name: The team's name.
        promised: GPUs that it is granted; 0 if none are.
        in_use: GPUs that its pods hold on the host.
        waiting: GPUs that its waiting pods ask for, in its vCluster, or on the host if that did not
            answer.
        scheduler: Its scheduler in words.
        verified: When its last backup was verified; None if none was, or if that was not read.
    """

    name: str
    promised: float
    in_use: float | None
    waiting: float | None
    scheduler: str
    verified: datetime | None


@dataclass(frozen=True)
class QueueRow:
    """The GPUs of a queue and of all queues below it together.

    Args:
        name: The queue's name.
        parent: Its parent's name; None at the top.
        level: 1 at the top.
        leaf: No queue names this one as its parent.
        quota: GPUs; -1 is unlimited.
        limit: GPUs; -1 is unlimited.
        in_use: GPUs that pods with a node hold, shares as fractions.
        waiting: GPUs that pods without a node ask for.
        display_name: The queue's displayName, or "".
    """

    name: str
    parent: str | None
    level: int
    leaf: bool
    quota: float
    limit: float
    in_use: float
    waiting: float
    display_name: str

    @property
    def borrowed(self) -> float:
        """GPUs in use above the quota; 0 if the quota is unlimited."""
        return borrowed(self.in_use, self.quota)


@dataclass(frozen=True)
class Pool:
    """The nodes of one pool.

    Args:
        labels: Labels of the pool, `key=value, …`; "" for all other nodes with GPUs.
        teams: The teams that run there; for "" those without labels.
        nodes: Number of nodes.
        ready_nodes: Number of Ready nodes.
        gpus: GPUs of Ready nodes.
        in_use: GPUs of Ready nodes that pods hold; a shared GPU counts as one.
        not_ready: GPUs of other nodes.
    """

    labels: str
    teams: Sequence[str]
    nodes: int
    ready_nodes: int
    gpus: float
    in_use: float
    not_ready: float


@dataclass(frozen=True)
class Wait:
    """The pods of a team that have no node for the same reason.

    Args:
        team: The team's name; `host` for pods outside the teams' namespaces.
        queues: Names of their queues, sorted; without pods that name none.
        pods: Number of pods.
        gpus: GPUs that they ask for.
        since: When the oldest was created; None if unknown.
        cause: The reason as a clause; "" if none was found, as for pods that have just been
            created, or not looked for, as in a vCluster with very many pods.
        fix: What to do, with commands between backticks; "" if unknown.
        commands: The commands in `fix`, as a shell takes them, in their order.
    """

    team: str
    queues: Sequence[str]
    pods: int
    gpus: float
    since: datetime | None
    cause: str
    fix: str
    commands: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """A stack at one moment.

    Args:
        stack: Name of the stack.
        time: When its host was read, in UTC.
        teams: Its teams.
        queues: Queues by cluster, `the host` or a team's name, parents before their children.
            Clusters without queues, and those that were not read, are left out.
        pools: Node pools, each node in one of them; None if the host's nodes or pods were not read
            in all namespaces.
        waits: Why pods wait, those of most GPUs first.
        findings: The doctor's findings, also those of level `ok`, without those about waiting pods.
        missing: Clauses about what was not read.
    """

    stack: str
    time: datetime
    teams: Sequence[Team]
    queues: Mapping[str, Sequence[QueueRow]]
    pools: Sequence[Pool] | None
    waits: Sequence[Wait]
    findings: Sequence[Finding]
    missing: Sequence[str]

    @property
    def exit_code(self) -> ExitCode:
        """The exit code, for the shell and for CI: UNREAD if anything is in `missing`.

        Else HEALTHY, whatever the findings are.
        """
        return ExitCode.UNREAD if self.missing else ExitCode.HEALTHY

    @property
    def figures(self) -> dict[str, float | None]:
        """Total GPUs by heading, in the order in which the page shows them: `promised`, `in use`,
        `free`, `waiting`.

        Those in use and free are of Ready nodes, and None if `pools` is. Waiting ones are of the
        pods that were read.
        """
        in_use: float | None = None
        free: float | None = None
        if self.pools is not None:
            in_use = sum(pool.in_use for pool in self.pools)
            free = max(0.0, sum(pool.gpus for pool in self.pools) - in_use)
        return {
            "promised": sum(team.promised for team in self.teams),
            "in use": in_use,
            "free": free,
            "waiting": sum(wait.gpus for wait in self.waits),
        }
