"""How KAI schedules beyond queues: fairness over time, shards of nodes, network topology."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from kai_fleet.settings.sections.model import Strict

# What Go's and Prometheus' durations have in common: KAI changed from the one to the other.
_DURATION: Final = r"([0-9]+h)?([0-9]+m)?([0-9]+s)?"
_DAYS: Final = re.compile(r"\s*([0-9]+)\s*(w|d)\w*\s*")
_PART: Final = re.compile(r"([0-9]{1,30})([hms])")
_SECONDS: Final = {"h": 3600, "m": 60, "s": 1}
_LONGEST_SECONDS: Final = 2**63 // 10**9  # Go counts nanoseconds in 64 bits
_HOURS: Final = {"w": 168, "d": 24}
HOSTNAME: Final = "kubernetes.io/hostname"


def _duration(value: Any) -> Any:
    if isinstance(value, str) and value and re.fullmatch(_DURATION, value):
        if sum(int(n) * _SECONDS[unit] for n, unit in _PART.findall(value)) > _LONGEST_SECONDS:
            raise ValueError(f"is {value!r}, longer than a duration can be; write 2562047h or less")
        return value
    meant = "168h for a week, 90m"
    if isinstance(value, str) and (found := _DAYS.fullmatch(value)):
        meant = f"{int(found[1]) * _HOURS[found[2]]}h"
    shown = repr(value) if isinstance(value, str | int | float) else "no text"
    raise ValueError(f"is {shown}, which is not a duration for KAI (h, m and s); write {meant}")


Duration = Annotated[
    str,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "pattern": f"^{_DURATION}$", "description": "168h, 90m"}),
]
ShardName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=40)
]
NodeLabel = Annotated[
    str,
    StringConstraints(
        pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        max_length=316,
    ),
]
Levels = Annotated[list[NodeLabel], Field(min_length=1, max_length=16)]
Strategy = Literal["binpack", "spread"]


class Fairshare(Strict):
    """Fairness over time: what queues used before counts when over-quota is given out.

    KAI reads the usage from Prometheus: the one at `prometheus`, or one that it runs itself, for
    which the cluster needs Prometheus' operator and kube-state-metrics.
    """

    window: Duration = Field(default="168h", description="How long usage counts; a week.")
    window_type: Literal["sliding", "tumbling", "cron"] = Field(
        default="sliding", description="tumbling needs start, cron needs cron."
    )
    start: str | None = Field(
        default=None,
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})$",
        description="tumbling: when the first window begins, such as 2026-01-05T00:00:00Z.",
    )
    cron: str | None = Field(
        default=None, min_length=9, description="cron: when a window begins, such as 0 0 * * 1."
    )
    half_life: Duration | None = Field(
        default=None, description="Usage of that long ago counts half; no decay unless set."
    )
    k_value: float = Field(
        default=1.0, ge=0, le=1000, description="How much past usage weighs; 0 is nothing."
    )
    prometheus: str | None = Field(
        default=None, pattern=r"^https?://\S+$", description="URL; KAI's own one unless set."
    )


class Placement(Strict):
    """Where pods go among the nodes that have room."""

    gpu: Strategy = Field(default="binpack", description="binpack fills nodes, spread levels them.")
    cpu: Strategy = Field(default="binpack", description="The same for pods without GPUs.")


class MinRuntime(Strict):
    """How long a job of the shard runs undisturbed, where its queue does not say."""

    preempt: Duration | None = Field(default=None, description="Before its own queue preempts it.")
    reclaim: Duration | None = Field(default=None, description="Before another queue reclaims it.")


class Shard(Strict):
    """A part of the nodes with a scheduler of its own.

    `default` has the nodes without the label kai.scheduler/node-pool; each other shard those on
    which its name is the value, and the queues whose `shard` it is.
    """

    placement: Placement | None = None
    min_runtime: MinRuntime | None = None
    queue_depth: dict[
        Literal["allocate", "reclaim", "preempt", "consolidation"],
        Annotated[int, Field(ge=1, le=1_000_000)],
    ] = Field(default_factory=dict, description="Jobs of a queue that an action tries at most.")


Shards = dict[ShardName, Shard]
Topologies = dict[ShardName, Levels]


class Scheduling(Strict):
    """The keys that every KAI may have, on the host and inside a vCluster."""

    fairshare: Fairshare | None = Field(default=None, description="From v0.10.")
    shards: Shards = Field(default_factory=dict, description="From v0.10.")
    topologies: Topologies = Field(
        default_factory=dict,
        description="From v0.12: node labels from the widest domain to the narrowest.",
    )


def scheduling_mistakes(scheduling: Scheduling) -> Iterator[tuple[str, str]]:
    """What is wrong between these keys: (key, sentence)."""
    fairshare = scheduling.fairshare
    if fairshare is not None:
        for kind, key, value in (
            ("tumbling", "start", fairshare.start),
            ("cron", "cron", fairshare.cron),
        ):
            if fairshare.window_type == kind and value is None:
                yield f"fairshare.{key}", f"is missing: windowType {kind} begins its windows by it"
            elif fairshare.window_type != kind and value is not None:
                yield (
                    f"fairshare.{key}",
                    f"is for windowType {kind}; drop it, or write windowType: {kind}",
                )
    for name, levels in scheduling.topologies.items():
        twice = sorted({level for level in levels if levels.count(level) > 1})
        if twice:
            yield f"topologies.{name}", f"names {twice[0]} twice; write each level once"
        elif HOSTNAME in levels[:-1]:
            yield f"topologies.{name}", f"has {HOSTNAME} above others; write it last"
