"""What `fleet usage` says, as plain data: teams, their queues, and the pods that wait longest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kai_fleet_cli.gpu_usage.amounts import UNLIMITED, rounded

AMOUNTS: Final = ("used", "guaranteed", "borrowed", "idle", "owed")
OWN_STACK: Final = "own stack"  # the mode of a team whose scheduler another stack declares
Unit = Literal["GPUs", "GPU-hours"]


@dataclass(frozen=True)
class Shares:
    """GPUs, or GPU-hours.

    `guaranteed` is what of `used` is within the quota, and `borrowed` the rest. `idle` is quota
    that the queue itself does not use, lent to others or not. `owed` is what the queue asks for,
    is guaranteed and does not have.
    """

    used: float = 0.0
    guaranteed: float = 0.0
    borrowed: float = 0.0
    idle: float = 0.0
    owed: float = 0.0

    @classmethod
    def of(cls, used: float, waiting: float, quota: float) -> Shares:
        """Of a queue that has and waits for so much; a quota of -1 is unlimited."""
        if quota == UNLIMITED:
            return cls(used, used, 0.0, 0.0, waiting)
        guaranteed = min(used, quota)
        owed = max(0.0, min(used + waiting, quota) - used)
        return cls(used, guaranteed, used - guaranteed, max(0.0, quota - used), owed)

    def record(self) -> dict[str, float]:
        """For JSON and CSV."""
        return {name: rounded(getattr(self, name)) for name in AMOUNTS}


def total(shares: Iterable[Shares]) -> Shares:
    """The sum."""
    found = list(shares)
    return Shares(*(sum(getattr(it, name) for it in found) for name in AMOUNTS))


@dataclass(frozen=True)
class QueueRow:
    """A leaf of a team, or what its pods have beside its queues (`queue` None)."""

    queue: str | None
    shares: Shares


@dataclass(frozen=True)
class TeamRow:
    """A team; `promised` is its `gpus`. `unreached` says why its cluster was not counted."""

    team: str
    mode: str
    promised: int
    queues: Sequence[QueueRow] = ()
    unreached: str = ""

    @property
    def shares(self) -> Shares:
        """Of all its queues."""
        return total(row.shares for row in self.queues)


@dataclass(frozen=True)
class Wait:
    """A pod that has no node yet."""

    team: str
    pod: str
    queue: str | None
    gpus: float
    seconds: float


@dataclass(frozen=True)
class Used:
    """The whole answer. `since` is what was asked of Prometheus, None for a sample of now.

    `measured` are the hours of which Prometheus has numbers, and `hours` those that were asked for.
    `foreign` are sentences about teams whose way in somebody else than their vCluster wrote.
    """

    stack: str
    teams: Sequence[TeamRow]
    waits: Sequence[Wait] = ()
    since: str | None = None
    hours: float = 0.0
    measured: float = 0.0
    notes: Sequence[str] = field(default_factory=tuple)
    foreign: Sequence[str] = ()

    @property
    def unit(self) -> Unit:
        """What the numbers count."""
        return "GPUs" if self.since is None else "GPU-hours"

    def record(self) -> dict[str, Any]:
        """The JSON: its keys do not change between releases."""
        return {
            "stack": self.stack,
            "source": "now" if self.since is None else "prometheus",
            "unit": self.unit,
            "since": self.since,
            "measuredHours": None if self.since is None else rounded(self.measured),
            "teams": [
                {
                    "team": team.team,
                    "mode": team.mode,
                    "promised": team.promised,
                    "unreached": team.unreached or None,
                    **team.shares.record(),
                    "queues": [{"queue": it.queue, **it.shares.record()} for it in team.queues],
                }
                for team in self.teams
            ],
            "waits": [
                {
                    "team": wait.team,
                    "pod": wait.pod,
                    "queue": wait.queue,
                    "gpus": wait.gpus,
                    "seconds": round(wait.seconds),
                }
                for wait in self.waits
            ],
            "notes": list(self.notes),
        }
