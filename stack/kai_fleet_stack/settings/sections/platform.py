"""What all teams share: the GPU stack, the host's KAI, sources of charts, and monitoring."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from kai_fleet.releases import GPU_PROVIDERS, sources
from kai_fleet.releases.sharing import SharingMode, mode_of_switch
from kai_fleet.releases.sources import InvalidReferenceError
from kai_fleet.wording import number_in
from kai_fleet_stack.settings.sections.kubernetes import (
    Affinity,
    LabelKey,
    LabelValue,
    ObjectName,
    Toleration,
)
from kai_fleet_stack.settings.sections.models import (
    NO_ENTRIES,
    NO_KEYS,
    Grants,
    Strict,
    like,
    refuse,
)
from kai_usage import mig
from kai_usage.keys import GPU_RESOURCES

_MOST = 1_000_000  # GPUs
_KINDS = "{nvidia.com/gpu: 8, nvidia.com/mig-1g.10gb: 14}"


def _mode_for_switch(value: object) -> object:
    """The sharing mode for true or false; another value unchanged."""
    return mode_of_switch(value) if isinstance(value, bool) else value


Sharing = Annotated[
    SharingMode,
    BeforeValidator(_mode_for_switch, json_schema_input_type=bool | SharingMode),
]


def _gpus(value: object) -> object:
    """The value. Raises ValueError if it is no number of GPUs, and no numbers by resource.

    Resources are those of whole GPUs, of any vendor, and of known MIG profiles.
    """
    if not isinstance(value, Mapping):
        _refuse_count("is", value)
        return value
    for resource, count in value.items():
        if resource not in GPU_RESOURCES and not mig.is_known(str(resource)):
            raise ValueError(
                f"has {str(resource)!r}, which is no GPU and no MIG profile; write"
                f" {mig.PREFIX}1g.10gb, or {GPU_RESOURCES[0]} for whole GPUs; other devices in"
                " isolation.devices"
            )
        _refuse_count(f"has {resource}:", count)
    return value


def _refuse_count(cause: str, count: object) -> None:
    """Raise ValueError if the count is no whole number from 0 to _MOST; True is no number.

    `cause` is the words before the count in the message.
    """
    if type(count) is int and 0 <= count <= _MOST:
        return
    shown = "empty" if count is None else repr(count)[:60]
    fix = f"write a whole number up to {_MOST}, or one for each kind, such as {_KINDS}"
    number = number_in(count)
    if number:
        fix = f"write it without quotes: {number}"
    raise ValueError(f"{cause} {shown}; {fix}")


_COUNT = {"type": "integer", "minimum": 0, "maximum": _MOST}
Gpus = Annotated[
    int | dict[str, int],
    BeforeValidator(_gpus),
    WithJsonSchema({"anyOf": [_COUNT, {"type": "object", "additionalProperties": _COUNT}]}),
]


def gpus_by_resource(
    gpus: int | Mapping[str, int], resource: str = GPU_RESOURCES[0]
) -> dict[str, int]:
    """A copy of the numbers of GPUs by resource; a number alone counts those of `resource`."""
    return {resource: gpus} if isinstance(gpus, int) else dict(gpus)


def total_gpus(pools: Iterable[int | Mapping[str, int]], resource: str) -> int | dict[str, int]:
    """The sum of the GPUs of pools: by resource if one pool has them by resource, else a number.

    It is 0 without pools. `resource` is that of the host's GPUs, which a number alone counts.
    """
    total = Counter[str]()
    are_numbers = True
    for gpus in pools:
        total.update(gpus_by_resource(gpus, resource))
        are_numbers = are_numbers and isinstance(gpus, int)
    return total[resource] if are_numbers else dict(total)


def gpus_with_slices(gpus: int | Mapping[str, int], slices: Mapping[str, int]) -> int:
    """The GPUs that KAI counts for whole GPUs and MIG slices: three for a slice of profile 3g.

    Slices are those of `slices`, numbers by resource; those in `gpus` are not read. One of a
    profile with a suffix, such as 1g.10gb.me, counts nothing.
    """
    by_resource = gpus_by_resource(gpus)
    whole_gpus = sum(by_resource.get(name, 0) for name in GPU_RESOURCES)
    return whole_gpus + int(mig.gpus_of(slices))


# Only what is a duration for Go and for Prometheus: KAI changed from the one format to the other.
Duration = Annotated[
    str,
    StringConstraints(min_length=2, pattern=r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$"),
]
ShardName = Annotated[str, like(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", 40)]


class Fairshare(Strict):
    """Fairness over time: the past usage of queues counts when KAI gives out over-quota.

    KAI reads the usage from the Prometheus at `prometheus`. Without that key it runs a Prometheus,
    for which the cluster needs the Prometheus operator and kube-state-metrics.
    """

    described_by = ("kai.arguments.FairshareArgs",)

    window: Duration = "168h"
    window_type: Literal["sliding", "tumbling", "cron"] = "sliding"
    start: str | None = Field(
        default=None, pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(Z|[+-][0-9:]{5})$"
    )
    cron: str | None = Field(default=None, pattern=r"^(@|\S+ +\S+ +\S+ +\S+ +\S+)")
    half_life: Duration | None = None
    k_value: float = Field(default=1.0, ge=0, le=1000)
    prometheus: str | None = Field(default=None, pattern=r"^https?://\S+$")


class Shard(Strict):
    """Nodes with a scheduler of their own.

    Shard `default` has the nodes without the label kai.scheduler/node-pool. Another shard has the
    nodes on which the label's value is the shard's name, and the queues that name it in `shard`.
    """

    described_by = ("kai.arguments.ShardArgs",)

    placement: dict[Literal["gpu", "cpu"], Literal["binpack", "spread"]] = NO_KEYS
    min_runtime: dict[Literal["preempt", "reclaim"], Duration] = NO_KEYS
    queue_depth: dict[
        Literal["allocate", "reclaim", "preempt", "consolidation"],
        Annotated[int, Field(ge=1, le=1_000_000)],
    ] = NO_KEYS


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
        description="Another location of the chart, which kai-fleet:sources has to list:"
        " oci://…/NAME, or https://…/NAME-VERSION.tgz. Default: that of the project or of"
        " kai-fleet:mirror."
    ),
]
Values = Annotated[dict[str, Any], Grants.OTHER]
NVIDIA = "nvidia.com/gpu"
EXAMPLE_CHARTS = "oci://mirror.example.com/charts"
EXAMPLE_REGISTRY = "mirror.example.com, or ghcr.io/organisation"
EXAMPLE_VERSION = "v0.16.8"  # in messages


class Gpu(Strict):
    """The GPU stack of the host cluster."""

    described_by = ("gpu_stack.GpuStackArgs",)

    provider: Literal[tuple(GPU_PROVIDERS)] = "none"  # type: ignore[valid-type]
    version: Annotated[Version | None, Grants.NOTHING] = None
    untested: bool = False
    """With chart or a mirror: accept a chart version that is not in the release table."""
    chart: OtherChart = None
    resource: Literal["nvidia.com/gpu", "amd.com/gpu"] = "nvidia.com/gpu"
    """Resource that nodes advertise for GPUs."""
    values: Values = NO_KEYS
    system_priorities: bool = False


class KaiRelease(Strict):
    """Keys of a KAI on the host and inside a vCluster."""

    described_by = ("kai.arguments.KaiArgs",)

    fairshare: Annotated[Fairshare | None, Grants.NOTHING] = None
    shards: Annotated[dict[ShardName, Shard], Grants.NOTHING] = NO_KEYS
    topologies: Annotated[
        dict[ShardName, Annotated[list[LabelKey], Field(min_length=1, max_length=16)]],
        Grants.NOTHING,
    ] = NO_KEYS
    gpu_sharing: Sharing = mode_of_switch(True)
    """Whether pods may share GPUs. NonMemoryEnforced, or true: pods have to keep to their fraction
    themselves. HamiCore, from KAI v0.16, and NvFractions, from v0.18, enforce the memory. Disabled,
    or false: pods get whole GPUs.
    """
    untested: bool = False
    verify: bool = False
    chart: OtherChart = None
    values: Values = NO_KEYS


class HostKai(KaiRelease):
    """The KAI scheduler of the host cluster, for teams in host mode."""

    version: Annotated[KaiVersion, Grants.NOTHING]
    tolerations: list[Toleration] = NO_ENTRIES
    affinity: Annotated[Affinity | None, Grants.OTHER] = None


def is_location(read: Callable[[str], object], example: str) -> AfterValidator:
    """Refuse what `read` refuses as a location of charts or images, and a location of one version.

    A location that is accepted stays as it is written.

    Args:
        read: raises InvalidReferenceError for a text that is no location.
        example: what to write, for the message.
    """

    def check(value: str) -> str:
        try:
            read(value)
        except InvalidReferenceError as why:
            raise ValueError(f"is {sources.shown(value)}, which {why}; write {example}") from None
        if "@" in value or ":" in value.rpartition("://")[2].partition("/")[2]:
            raise ValueError(f"names one version; write where all of them are: {example}")
        return value

    return AfterValidator(check)


_Charts = Annotated[str, is_location(sources.chart_place, EXAMPLE_CHARTS)]
_Images = Annotated[str, is_location(sources.registry_place, EXAMPLE_REGISTRY)]


class Sources(Strict):
    """Where charts and images may come from, besides the locations of the release table.

    They bound `chart` and `values` of all other keys. They do not bound kai-fleet:workloads and
    what users run inside their vClusters.
    """

    charts: list[_Charts] = NO_ENTRIES
    """Locations of charts, such as oci://mirror.example.com/charts, with all below them. Default:
    none.
    """
    images: list[_Images] = NO_ENTRIES
    """Registries of images, or paths in one, such as mirror.example.com, with all below them.
    Default: none.
    """


# A duration of Prometheus, from seconds to days.
Interval = Annotated[str, like(r"^[1-9][0-9]{0,4}[smhd]$")]


class Monitoring(Strict):
    """Monitors, recording rules, alerts and dashboards for the host's Prometheus operator."""

    described_by = ("monitoring.arguments.MonitoringArgs",)

    namespace: ObjectName = "monitoring"
    labels: dict[LabelKey, LabelValue] = NO_KEYS
    interval: Interval = "30s"
    certificates: bool = True
