"""The platform: its GPU stack, its KAI with what that schedules by, and its sources."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from kai_fleet.gpu_providers import GPU_PROVIDERS
from kai_fleet.releases import sources
from kai_fleet.releases.sources import NoPlaceError
from kai_fleet.settings.sections.gpu_share import Sharing, sharing
from kai_fleet.settings.sections.kubernetes import Affinity, LabelKey, Toleration
from kai_fleet.settings.sections.models import Strict, refuse

# What Go's and Prometheus' durations have in common: KAI changed from the one to the other.
_DURATION: Final = r"([0-9]+h)?([0-9]+m)?([0-9]+s)?"
_PART: Final = re.compile(r"([0-9]{1,30})([hms])")
_SECONDS: Final = {"h": 3600, "m": 60, "s": 1}
_LONGEST_SECONDS: Final = 2**63 // 10**9  # Go counts nanoseconds in 64 bits
HOSTNAME: Final = "kubernetes.io/hostname"


def _duration(value: Any) -> Any:
    if isinstance(value, str) and value and re.fullmatch(_DURATION, value):
        if sum(int(n) * _SECONDS[unit] for n, unit in _PART.findall(value)) > _LONGEST_SECONDS:
            raise ValueError(f"is {value!r}, longer than a duration can be; write 2562047h or less")
        return value
    shown = repr(value) if isinstance(value, str | int | float) else "no text"
    raise ValueError(
        f"is {shown}, which is not a duration for KAI (h, m and s); write 168h for a week, 90m"
    )


Duration = Annotated[
    str,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "pattern": f"^{_DURATION}$", "description": "168h, 90m"}),
]
ShardName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=40)
]
Levels = Annotated[list[LabelKey], Field(min_length=1, max_length=16)]
Strategy = Literal["binpack", "spread"]


class Fairshare(Strict):
    """Fairness over time: what queues used before counts when over-quota is given out.

    KAI reads the usage from Prometheus: the one at `prometheus`, or one that it runs itself, for
    which the cluster needs Prometheus' operator and kube-state-metrics.
    """

    window: Duration = "168h"
    """How long usage counts; a week."""
    window_type: Literal["sliding", "tumbling", "cron"] = "sliding"
    """tumbling needs start, cron needs cron."""
    start: str | None = Field(
        default=None,
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})$",
    )
    """tumbling: when the first window begins, such as 2026-01-05T00:00:00Z."""
    cron: str | None = Field(default=None, pattern=r"^(@|\S+ +\S+ +\S+ +\S+ +\S+)")
    """cron: when a window begins, such as 0 0 * * 1."""
    half_life: Duration | None = None
    """Usage of that long ago counts half; no decay unless set."""
    k_value: float = Field(default=1.0, ge=0, le=1000)
    """How much past usage weighs; 0 is nothing."""
    prometheus: str | None = Field(default=None, pattern=r"^https?://\S+$")
    """URL; KAI's own one unless set."""


class Placement(Strict):
    """Where pods go among the nodes that have room."""

    gpu: Strategy = "binpack"
    """binpack fills nodes, spread levels them."""
    cpu: Strategy = "binpack"
    """The same for pods without GPUs."""


class MinRuntime(Strict):
    """How long a job of the shard runs undisturbed, where its queue does not say."""

    preempt: Duration | None = None
    """Before its own queue preempts it."""
    reclaim: Duration | None = None
    """Before another queue reclaims it."""


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
    ] = Field(default_factory=dict)
    """Jobs of a queue that an action tries at most."""


class Scheduling(Strict):
    """The keys that every KAI may have, on the host and inside a vCluster."""

    fairshare: Fairshare | None = None
    """From v0.10."""
    shards: dict[ShardName, Shard] = Field(default_factory=dict)
    """From v0.10."""
    topologies: dict[ShardName, Levels] = Field(default_factory=dict)
    """From v0.12: node labels from the widest domain to the narrowest."""


def scheduling_mistakes(scheduling: Scheduling) -> Iterator[tuple[str, str]]:
    """What is wrong between these keys: (key, sentence)."""
    fairshare = scheduling.fairshare
    if fairshare is not None:
        begins = (("tumbling", "start", fairshare.start), ("cron", "cron", fairshare.cron))
        for kind, key, value in begins:
            path = f"fairshare.{key}"
            if fairshare.window_type == kind and value is None:
                yield path, f"is missing: windowType {kind} begins its windows by it"
            elif fairshare.window_type != kind and value is not None:
                yield path, f"is for windowType {kind}; drop it, or write windowType: {kind}"
    for name, levels in scheduling.topologies.items():
        twice = sorted({level for level in levels if levels.count(level) > 1})
        if twice:
            yield f"topologies.{name}", f"names {twice[0]} twice; write each level once"
        elif HOSTNAME in levels[:-1]:
            yield f"topologies.{name}", f"has {HOSTNAME} above others; write it last"


Version = Annotated[str, StringConstraints(pattern=r"^v?[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*$")]
KaiVersion = Annotated[str, StringConstraints(pattern=r"^v[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*$")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$", max_length=40)]


StackName = Annotated[
    str,
    StringConstraints(
        pattern=r"^([-A-Za-z0-9_.]+/[-A-Za-z0-9_.]+/)?[-A-Za-z0-9_.]+$", max_length=300
    ),
]
TeamName = Annotated[
    Name,
    refuse(
        lambda name: name == "host",
        "is what findings and metrics call the host cluster; write another name",
    ),
]
Chart = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
OtherChart = Annotated[
    Chart | None, Field(description="Another chart, oci://… or https://…, of a place in sources.")
]
Untested = Annotated[
    bool, Field(description="Take a version newer than the table for the newest line of it.")
]
Values = dict[str, Any]
NVIDIA: Final = "nvidia.com/gpu"
EXAMPLE_VERSION: Final = "v0.16.8"  # what messages tell to write


class Gpu(Strict):
    """The GPU stack of the host cluster."""

    provider: Literal[tuple(GPU_PROVIDERS)] = "none"  # type: ignore[valid-type]
    """`none` where nodes advertise GPUs already, or have none."""
    version: Version | None = None
    """Chart version."""
    chart: OtherChart = None
    resource: Literal["nvidia.com/gpu", "amd.com/gpu"] = "nvidia.com/gpu"
    """The name under which nodes advertise GPUs."""
    values: Values = Field(default_factory=dict)
    """Merged over the chart's values."""
    system_priorities: bool = False
    """Admit system priority classes in its namespace by a ResourceQuota: for GKE."""


class KaiRelease(Scheduling):
    """The keys of every KAI that a stack installs."""

    gpu_sharing: Sharing = Field(default_factory=sharing)
    untested: Untested = False
    chart: OtherChart = None
    values: Values = Field(default_factory=dict)
    """Merged over the table's values."""


class HostKai(KaiRelease):
    """The KAI scheduler of the host cluster, for teams in host mode."""

    version: KaiVersion = Field(description=f"Such as {EXAMPLE_VERSION}: a release of the table.")
    tolerations: list[Toleration] = Field(default_factory=list)
    """Taints of nodes that all of its parts tolerate."""
    affinity: Affinity | None = None
    """Where all of its parts are."""


def _source(example: str, place: Any, value: Any) -> Any:
    if isinstance(value, str):
        try:
            place(value)
        except NoPlaceError as why:
            raise ValueError(f"is {sources.shown(value)}, which {why}; write {example}") from None
        _, *path = value.rpartition("://")[2].split("/")
        if "@" in value or (path and ":" in path[-1]):
            raise ValueError(f"names one version; write where all of them are: {example}")
    return value


ChartSource = Annotated[
    str,
    BeforeValidator(partial(_source, "oci://mirror.example.com/charts", sources.chart_place)),
    StringConstraints(max_length=2048),
    WithJsonSchema(
        {"type": "string", "pattern": "^(oci|https)://", "description": "oci://…, https://…"}
    ),
]
ImageSource = Annotated[
    str,
    BeforeValidator(
        partial(_source, "mirror.example.com, or ghcr.io/organisation", sources.registry_place)
    ),
    StringConstraints(max_length=2048),
    WithJsonSchema({"type": "string", "description": "a registry, or a path in one"}),
]


class Sources(Strict):
    """Where charts and images may come from, besides what the release tables name.

    `chart` and `values` of every other key stay within these. What users run, in
    kai-fleet:workloads and inside their vClusters, is their own.
    """

    charts: list[ChartSource] = Field(default_factory=list)
    """Chart locations, such as oci://mirror.example.com/charts; what is below them counts."""
    images: list[ImageSource] = Field(default_factory=list)
    """Image registries, or paths in one, such as mirror.example.com; what is below them counts."""

    @property
    def known(self) -> sources.KnownSources:
        """As the rules read them."""
        return sources.KnownSources(tuple(self.charts), tuple(self.images))
