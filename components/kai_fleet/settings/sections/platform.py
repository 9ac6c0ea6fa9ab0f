"""The platform: its GPUs and who shares them, its KAI, its sources, and monitoring."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from kai_fleet.releases import GPU_PROVIDERS, mig, sources
from kai_fleet.releases.keys import GPU_RESOURCES
from kai_fleet.releases.sharing import SharingMode, mode_of_switch
from kai_fleet.releases.sources import InvalidReferenceError
from kai_fleet.settings.sections.kubernetes import (
    Affinity,
    LabelKey,
    LabelValue,
    ObjectName,
    Toleration,
)
from kai_fleet.settings.sections.models import Grants, Strict, like, refuse
from kai_fleet.wording import number_in

_MOST: Final = 1_000_000
_KINDS: Final = "{nvidia.com/gpu: 8, nvidia.com/mig-1g.10gb: 14}"


# A stack file may say true and false, too.
Sharing = Annotated[
    SharingMode,
    BeforeValidator(
        lambda value: mode_of_switch(value) if isinstance(value, bool) else value,
        json_schema_input_type=bool | SharingMode,
    ),
]


def _gpus(value: Any) -> Any:
    counts = value if isinstance(value, Mapping) else {"": value}
    for name, count in counts.items():
        if name and name not in GPU_RESOURCES and not mig.is_known(str(name)):
            raise ValueError(
                f"has {str(name)!r}, which is no GPU and no MIG profile; write"
                f" {mig.PREFIX}1g.10gb, or {GPU_RESOURCES[0]} for whole GPUs; other devices in"
                " isolation.devices"
            )
        if type(count) is not int or not 0 <= count <= _MOST:
            cause = f"has {name}:" if name else "is"
            fix = f"write a whole number up to {_MOST}, or one for each kind, such as {_KINDS}"
            if number := number_in(count):
                fix = f"write it without quotes: {number}"
            raise ValueError(f"{cause} {'empty' if count is None else repr(count)[:60]}; {fix}")
    return value


_COUNT: Final = {"type": "integer", "minimum": 0, "maximum": _MOST}
Gpus = Annotated[
    int | dict[str, int],
    BeforeValidator(_gpus),
    WithJsonSchema({"anyOf": [_COUNT, {"type": "object", "additionalProperties": _COUNT}]}),
]


def by_kind(gpus: int | Mapping[str, int]) -> dict[str, int]:
    """GPUs by their resources' names."""
    return {GPU_RESOURCES[0]: gpus} if isinstance(gpus, int) else dict(gpus)


def together(pools: Iterable[int | Mapping[str, int]]) -> int | dict[str, int]:
    """The sum of several, by kind where one of them is."""
    every, total = list(pools), Counter[str]()
    for gpus in every:
        total.update(by_kind(gpus))
    whole = all(isinstance(gpus, int) for gpus in every)
    return total[GPU_RESOURCES[0]] if whole else dict(total)


def counted(gpus: int | Mapping[str, int], slices: Mapping[str, int]) -> int:
    """GPUs and MIG slices as KAI counts GPUs of a queue: a slice of profile 3g is three."""
    kinds = by_kind(gpus)
    return sum(kinds.get(name, 0) for name in GPU_RESOURCES) + int(mig.gpus_of(slices))


# What Go's and Prometheus' durations have in common: KAI changed from the one to the other.
Duration = Annotated[
    str,
    StringConstraints(min_length=2, pattern=r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$"),
]
ShardName = Annotated[str, like(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", 40)]


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
        default=None, pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(Z|[+-][0-9:]{5})$"
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


class Shard(Strict):
    """A part of the nodes with a scheduler of its own.

    `default` has the nodes without the label kai.scheduler/node-pool; each other shard those on
    which its name is the value, and the queues whose `shard` it is.
    """

    placement: dict[Literal["gpu", "cpu"], Literal["binpack", "spread"]] = Field(
        default_factory=dict
    )
    """Where pods with GPUs and others go: binpack, which it is unless set, fills nodes, spread
    levels them.
    """
    min_runtime: dict[Literal["preempt", "reclaim"], Duration] = Field(default_factory=dict)
    """How long a job runs undisturbed where its queue does not say: before its own queue preempts
    it, before another one reclaims it.
    """
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
OtherChart = Annotated[
    Annotated[str, StringConstraints(min_length=1, max_length=2048)] | None,
    Field(
        description="The same chart at a place of sources: oci://…/NAME, https://…/NAME-VERSION.tgz."
    ),
]
Untested = Annotated[
    bool, Field(description="Take a version newer than the table for the newest line of it.")
]
Values = Annotated[dict[str, Any], Grants.OTHER]
NVIDIA: Final = "nvidia.com/gpu"
EXAMPLE_CHARTS: Final = "oci://mirror.example.com/charts"
EXAMPLE_REGISTRY: Final = "mirror.example.com, or ghcr.io/organisation"
EXAMPLE_VERSION: Final = "v0.16.8"  # what messages tell to write


class Gpu(Strict):
    """The GPU stack of the host cluster."""

    provider: Literal[tuple(GPU_PROVIDERS)] = "none"  # type: ignore[valid-type]
    """`none` where nodes advertise GPUs already, or have none."""
    version: Annotated[Version | None, Grants.NOTHING] = None
    """Chart version."""
    untested: bool = False
    """With chart or a mirror: take a version that is not the table's."""
    chart: OtherChart = None
    resource: Literal["nvidia.com/gpu", "amd.com/gpu"] = "nvidia.com/gpu"
    """The name under which nodes advertise GPUs."""
    values: Values = Field(default_factory=dict)
    """Merged over the chart's values."""
    system_priorities: bool = False
    """Admit system priority classes in its namespace by a ResourceQuota: for GKE."""


class KaiRelease(Strict):
    """The keys of every KAI that a stack installs, on the host and inside a vCluster."""

    fairshare: Annotated[Fairshare | None, Grants.NOTHING] = None
    """From v0.10."""
    shards: Annotated[dict[ShardName, Shard], Grants.NOTHING] = Field(default_factory=dict)
    """From v0.10."""
    topologies: Annotated[
        dict[ShardName, Annotated[list[LabelKey], Field(min_length=1, max_length=16)]],
        Grants.NOTHING,
    ] = Field(default_factory=dict)
    """From v0.12: node labels from the widest domain to the narrowest."""
    gpu_sharing: Sharing = mode_of_switch(True)
    """Fractions of a GPU. true: NonMemoryEnforced, by agreement; false: Disabled. HamiCore and
    NvFractions hold memory to it.
    """
    untested: Untested = False
    chart: OtherChart = None
    values: Values = Field(default_factory=dict)
    """Merged over the table's values."""


class HostKai(KaiRelease):
    """The KAI scheduler of the host cluster, for teams in host mode."""

    version: Annotated[KaiVersion, Grants.NOTHING] = Field(
        description=f"Such as {EXAMPLE_VERSION}: a release of the table."
    )
    tolerations: list[Toleration] = Field(default_factory=list)
    """Taints of nodes that all of its parts tolerate."""
    affinity: Annotated[Affinity | None, Grants.OTHER] = None
    """Where all of its parts are."""


def place_of(read: Callable[[str], object], example: str) -> AfterValidator:
    """Refuse what is no place of charts or images; what is below one counts."""

    def check(value: str) -> str:
        try:
            read(value)
        except InvalidReferenceError as why:
            raise ValueError(f"is {sources.shown(value)}, which {why}; write {example}") from None
        if "@" in value or ":" in value.rpartition("://")[2].partition("/")[2]:
            raise ValueError(f"names one version; write where all of them are: {example}")
        return value

    return AfterValidator(check)


_Charts = Annotated[str, place_of(sources.chart_place, EXAMPLE_CHARTS)]
_Images = Annotated[str, place_of(sources.registry_place, EXAMPLE_REGISTRY)]


class Sources(Strict):
    """Where charts and images may come from, besides what the release tables name.

    `chart` and `values` of every other key stay within these. What users run, in
    kai-fleet:workloads and inside their vClusters, is their own.
    """

    charts: list[_Charts] = Field(default_factory=list)
    """Chart locations, such as oci://mirror.example.com/charts; what is below them counts."""
    images: list[_Images] = Field(default_factory=list)
    """Image registries, or paths in one, such as mirror.example.com; what is below them counts."""


# What Prometheus takes for a duration, as far as it makes sense here.
Interval = Annotated[str, like(r"^[1-9][0-9]{0,4}[smhd]$")]


class Monitoring(Strict):
    """Monitors, rules, alerts and dashboards for a Prometheus that the host has already."""

    namespace: ObjectName = "monitoring"
    """The host's namespace of Prometheus and Grafana. It reaches every KAI's metrics."""
    operator: bool = False
    """The host has the Prometheus operator: make its objects. Else ConfigMaps with the content."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels by which your Prometheus selects its objects: {release: kube-prometheus-stack}."""
    interval: Interval = "30s"
    """How often metrics are read."""
    certificates: bool = True
    """With the operator: alert before a vCluster's certificate ends. Prometheus gets to have it."""
