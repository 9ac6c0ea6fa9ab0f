"""The platform: its GPUs and who shares them, its KAI, its sources, and monitoring."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from kai_fleet.releases import GPU_PROVIDERS, mig, sources
from kai_fleet.releases.keys import GPU_RESOURCES, METRICS_PORT
from kai_fleet.releases.sharing import SharingMode, of_switch
from kai_fleet.releases.sources import NoPlaceError
from kai_fleet.settings.sections.kubernetes import Affinity, LabelKey, LabelValue, Toleration
from kai_fleet.settings.sections.models import Strict, Wrong, like, refuse, short_for
from kai_fleet.values import value_at

_MOST: Final = 1_000_000
_KINDS: Final = "{nvidia.com/gpu: 8, nvidia.com/mig-1g.10gb: 14}"


class GpuSharing(Strict):
    """How pods share a GPU: true (NonMemoryEnforced), false (Disabled), or a mode."""

    mode: SharingMode
    """Disabled; NonMemoryEnforced: by agreement; HamiCore, NvFractions: memory is held to it."""


Sharing = Annotated[
    GpuSharing,
    short_for("mode", bool, bool | GpuSharing, of_switch),
    Field(description="Fractions of a GPU: true unless set. A stack file may say {mode: …} too."),
]


def sharing() -> GpuSharing:
    """Where nothing is written: on, by agreement."""
    return GpuSharing(mode=of_switch(True))


def _gpus(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _count(value, "is", f", or how many of each kind, such as {_KINDS}")
    for name in value:
        if name not in GPU_RESOURCES and not mig.is_known(str(name)):
            raise ValueError(
                f"has {str(name)!r}, which is no GPU and no MIG profile; write"
                f" {mig.PREFIX}1g.10gb, or {GPU_RESOURCES[0]} for whole GPUs; other devices in"
                " isolation.devices"
            )
    return {name: _count(count, f"has {name}:") for name, count in value.items()}


def _count(value: Any, cause: str, or_else: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        shown = "empty" if value is None else repr(value)[:60]
        raise ValueError(f"{cause} {shown}; write a whole number{or_else}")
    if not 0 <= value <= _MOST:
        end = "0 or more" if value < 0 else f"{_MOST} or less"
        raise ValueError(f"{cause} {value}; write {end}")
    return value


_COUNT: Final = {"type": "integer", "minimum": 0, "maximum": _MOST}
Gpus = Annotated[
    int | dict[str, int],
    BeforeValidator(_gpus),
    WithJsonSchema({"anyOf": [_COUNT, {"type": "object", "additionalProperties": _COUNT}]}),
]


def together(pools: Iterable[int | Mapping[str, int]]) -> int | dict[str, int]:
    """The sum of several, by kind where one of them is."""
    every, total = list(pools), Counter[str]()
    for gpus in every:
        total.update({GPU_RESOURCES[0]: gpus} if isinstance(gpus, int) else gpus)
    by_kind = any(isinstance(gpus, Mapping) for gpus in every)
    return dict(total) if by_kind else total[GPU_RESOURCES[0]]


def slices(gpus: int | Mapping[str, int], devices: Mapping[str, int]) -> dict[str, int]:
    """The MIG slices, by their resources' names; `devices` are the other devices of a team."""
    return mig.slices(devices) | ({} if isinstance(gpus, int) else mig.slices(gpus))


def counted(gpus: int | Mapping[str, int], devices: Mapping[str, int]) -> int:
    """All of them as KAI counts GPUs of a queue: a slice of profile 3g is three."""
    whole = gpus if isinstance(gpus, int) else sum(gpus.get(name, 0) for name in GPU_RESOURCES)
    return whole + int(mig.gpus_of(slices(gpus, devices)))


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
ShardName = Annotated[str, like(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", 40)]
Levels = Annotated[
    list[LabelKey],
    Field(min_length=1, max_length=16),
    refuse(
        lambda levels: len({*levels}) < len(levels) or HOSTNAME in levels[:-1],
        f"has a level twice, or {HOSTNAME} above others; write each once, {HOSTNAME} last",
    ),
]
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

    def mistakes(self) -> Wrong:
        """When windows begin that are not sliding."""
        yield from self.useless("window_type", {"start": ("tumbling",), "cron": ("cron",)})
        begins = {"tumbling": ("start", self.start), "cron": ("cron", self.cron)}
        key, value = begins.get(self.window_type, ("", ""))
        if value is None:
            write = "its windows begin by it; write one, or windowType: sliding"
            yield key, f"is missing with windowType {self.window_type}: {write}"


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


Version = Annotated[str, like(r"^v?[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*$")]
KaiVersion = Annotated[str, like(r"^v[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]*$")]
Name = Annotated[str, like(r"^[a-z]([-a-z0-9]*[a-z0-9])?$", 40)]
StackName = Annotated[str, like(r"^([-A-Za-z0-9_.]+/[-A-Za-z0-9_.]+/)?[-A-Za-z0-9_.]+$", 300)]
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
EXAMPLE_REGISTRY: Final = "mirror.example.com, or ghcr.io/organisation"
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

    def mistakes(self) -> Wrong:
        """What does not fit to the provider."""
        if self.resource != NVIDIA and self.provider != "none":
            cause = f"is NVIDIA's, and nodes with {self.resource} need their vendor's own"
            yield "provider", f"{cause}, installed beside this program; write none"
        if self.system_priorities and self.provider == "none":
            cause = "has no effect: with provider none nothing is installed that needs it"
            fix = "leave it out, or write operator or device-plugin for the provider"
            yield "systemPriorities", f"{cause}; {fix}"


class KaiRelease(Strict):
    """The keys of every KAI that a stack installs, on the host and inside a vCluster."""

    fairshare: Fairshare | None = None
    """From v0.10."""
    shards: dict[ShardName, Shard] = Field(default_factory=dict)
    """From v0.10."""
    topologies: dict[ShardName, Levels] = Field(default_factory=dict)
    """From v0.12: node labels from the widest domain to the narrowest."""
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


def place_of(read: Callable[[str], object], example: str) -> AfterValidator:
    """Refuse what is no place of charts or images; what is below one counts."""

    def check(value: str) -> str:
        try:
            read(value)
        except NoPlaceError as why:
            raise ValueError(f"is {sources.shown(value)}, which {why}; write {example}") from None
        _, *path = value.rpartition("://")[2].split("/")
        if "@" in value or (path and ":" in path[-1]):
            raise ValueError(f"names one version; write where all of them are: {example}")
        return value

    return AfterValidator(check)


ChartSource = Annotated[
    str,
    Field(max_length=2048, description="oci://…, https://…"),
    place_of(sources.chart_place, "oci://mirror.example.com/charts"),
]
ImageSource = Annotated[
    str,
    Field(max_length=2048, description="a registry, or a path in one"),
    place_of(sources.registry_place, EXAMPLE_REGISTRY),
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


# What Prometheus takes for a duration, as far as it makes sense here.
Interval = Annotated[str, like(r"^[1-9][0-9]{0,4}[smhd]$")]
Namespace = Annotated[
    str,
    like(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"),
    refuse(
        lambda name: name.startswith(("team-", "kai-scheduler", "kai-resource-reservation")),
        "is {value}, a team's or KAI's own; write the namespace where Prometheus runs",
    ),
]


class Monitoring(Strict):
    """Monitors, rules, alerts and dashboards for a Prometheus that the host has already."""

    namespace: Namespace = "monitoring"
    """The host's namespace of Prometheus and Grafana. It reaches every KAI's metrics."""
    operator: bool = False
    """The host has the Prometheus operator: make its objects. Else ConfigMaps with the content."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels by which your Prometheus selects its objects: {release: kube-prometheus-stack}."""
    interval: Interval = "30s"
    """How often metrics are read."""
    certificates: bool = True
    """With the operator: alert before a vCluster's certificate ends. Prometheus gets to have it."""

    def mistakes(self) -> Wrong:
        """Labels that nothing selects."""
        if self.labels and not self.operator:
            cause = "are for what the Prometheus operator selects"
            yield "labels", f"{cause}; write operator: true, or drop them"


_METRICS_KEY: Final = "scheduler.ports.metricsPort"


def metrics_mistakes(values: Values) -> Wrong:
    """Chart values that put a KAI's metrics where nobody reads them: (key, sentence)."""
    port = value_at(values, _METRICS_KEY)
    if port not in (None, METRICS_PORT):
        cause = f"is {port}, and Prometheus reads a KAI's metrics at {METRICS_PORT}"
        yield _METRICS_KEY, f"{cause}: nothing would be counted; drop it"
