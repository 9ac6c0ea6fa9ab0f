"""The inputs of each component of the package, made of the fields of the settings models.

A key that a stack file has is that model's own field, with its type, bounds and description. Only
what is a component's alone is written here.
"""

from collections.abc import Callable
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, create_model

from kai_fleet.guards.host_rules import GRACE_SECONDS, KaiPlace
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.access import Credentials, Registries
from kai_fleet.settings.sections.isolation import Guard, GuardMode, Isolation
from kai_fleet.settings.sections.kubernetes import LabelKey, LabelValue
from kai_fleet.settings.sections.models import Strict
from kai_fleet.settings.sections.platform import Gpu, HostKai, KaiVersion, Name, ShardName, Sources
from kai_fleet.settings.sections.queues import QueueName, QueueTree
from kai_fleet.settings.sections.teams import Mode, TeamSettings
from kai_fleet.settings.sections.vcluster import Vcluster
from kai_fleet.settings.sections.workloads import ImageName, Workload


def optional(default: Any, description: str, **bounds: Any) -> Any:
    """A field that may be left out. A `default` that is a function is called for each model."""
    if callable(default):
        return Field(default_factory=default, description=description, **bounds)
    return Field(default=default, description=description, **bounds)


class ClusterInput(Credentials):
    """A cluster and how it is reached: one of context and kubeconfig."""

    name: Name = Field(
        description="Stable identity of the cluster: credentials may rotate under it."
    )


class _WithProvider(Strict):
    """Declared with a provider alone: no probe asks its cluster."""

    cluster: ClusterInput | None = optional(
        None, "The cluster, unless a Kubernetes provider is given in the resource's options."
    )


class _Probed(Strict):
    """Probes ask its cluster."""

    cluster: ClusterInput = Field(
        description="The cluster. What is declared on it uses the Kubernetes provider in the"
        " resource's options, if there is one; the probes always use this."
    )


_NAMESPACE: Final = "The namespace, which is there already or is another resource's output."
_POOL: Final = "Labels of the nodes that are the team's own."
_SOURCES: Final = "Where its charts and images may come from besides the release tables'."
_REGISTRIES: Final = "Credentials by which its images are pulled, by registry."
_GPU_NAME: Final = "The name under which nodes advertise GPUs."
_IMAGE: Final = "The image of its one container."
_VLLM_KEYS: Final = ("model", "hugging_face_token")
_FIRST: Final = ("cluster", "isolation")

GpuName = Literal["nvidia.com/gpu", "amd.com/gpu"]


def with_fields_of(
    source: type[BaseModel], *without: str
) -> Callable[[type[Strict]], type[Strict]]:
    """Give a model the fields of a settings model that it has not, but for some.

    They come after the cluster and the isolation, and before what else the model has.
    """

    def widened(own: type[Strict]) -> type[Strict]:
        first = {key: it for key, it in own.model_fields.items() if key in _FIRST}
        hidden = {*without, *own.model_fields}
        more = {key: it for key, it in source.model_fields.items() if key not in hidden}
        fields: dict[str, Any] = {
            key: (field.annotation, field)
            for key, field in {**first, **more, **own.model_fields}.items()
        }
        model: type[Strict] = create_model(
            own.__name__, __base__=Strict, __doc__=own.__doc__, **fields
        )
        return model

    return widened


class QueueTreeInputs(_Probed):
    """A tree of KAI queues, in Kubernetes' quantities, as one resource."""

    queues: QueueTree = Field(description="The tree, by the names of its top-level queues.")
    version: KaiVersion | None = optional(
        None, "The KAI that reads it; the newest known unless set."
    )
    gpu_limit: int | None = optional(
        None, "Bounds top-level queues that have no limit: whole GPUs.", ge=0
    )
    parent: QueueName | None = optional(None, "A queue of another tree below which this one hangs.")
    shard: ShardName | None = optional(None, "The shard that serves the parent.")
    limits: dict[QueueName, int] = optional(dict, "The most GPUs of single queues, by their names.")


class QueueGuardInputs(_WithProvider):
    """A ValidatingAdmissionPolicy: pods name a leaf queue of the team; of Deployments it warns."""

    team: Name = Field(description="Whose queues they are; the policy is named after it.")
    queues: list[QueueName] = Field(description="The leaf queues that pods may name.")
    namespace: str | None = optional(
        None, "Where it holds; every namespace of the cluster unless set."
    )
    mode: GuardMode = optional("deny", "audit: such pods pass, with a warning, for roll-out.")
    gpu_sharing: bool = optional(True, "Whether this KAI gives parts of a GPU.")
    prefix: str | None = optional(None, "Queues whose names begin with it are the team's, too.")
    pod_groups: bool = optional(False, "Pods may name a PodGroup in place of a queue.")


class HostGuardInputs(_WithProvider):
    """ValidatingAdmissionPolicies on the host that keep a namespace's pods to the team's share."""

    team: Name = Field(description="Whose namespace it is; the policies are named after it.")
    namespace: str = Field(description=_NAMESPACE)
    devices: list[str] = optional(
        lambda: ["nvidia.com/gpu"],
        "Names of the devices that its pods may ask for; nvidia.com/gpu unless set.",
    )
    pool: dict[LabelKey, LabelValue] = optional(dict, _POOL)
    control_pool: dict[LabelKey, LabelValue] = optional(
        dict, "Labels of the nodes for control planes."
    )
    foreign_pools: list[dict[LabelKey, LabelValue]] = optional(
        list, "Labels of nodes that are others', for a team without nodes of its own."
    )
    names_nodes: bool = optional(False, "Its pods come with a node: a scheduler inside chose it.")
    shared_nodes: bool = optional(True, "Other teams' pods may be on the same nodes.")
    kai: KaiPlace = optional("none", "Where the KAI is that shares its GPUs.")
    device_classes: list[str] = optional(list, "DRA device classes that its claims may name.")
    priorities: list[str] = optional(list, "Priority classes that its pods may name.")
    queues_only: bool = optional(False, "GPUs are for pods that KAI schedules alone.")
    restricted: bool = optional(False, "Pod Security `restricted` holds.")
    platform_images: list[str] = optional(
        list,
        "What the names of images with KAI's programs begin with, which run without"
        " the security context that `restricted` asks of everything else.",
    )
    runtime_classes: list[str] = optional(
        lambda: Isolation().runtime_classes, "Runtime classes of the host that show no GPU."
    )
    beside_kai: bool = optional(False, "The host has a KAI.")
    queues: list[QueueName] = optional(list, "Queues of the host's KAI that are the team's.")
    queue_prefix: str | None = optional(None, "Queues whose names begin so are the team's, too.")
    foreign_queues: list[str] = optional(list, "Queues and teams that only begin so.")
    attachments: bool = optional(False, "Pods may join other networks by Multus.")
    endpoints: bool = optional(False, "Services may lead to addresses that are not public.")
    private: list[str] = optional(list, "Public networks (CIDRs) that count as not public.")
    annotations: list[str] = optional(
        list, "Domains of annotations for runtimes and plugins that its pods may have."
    )
    volumes: list[str] = optional(
        list, "Kinds of volumes besides those of Pod Security `restricted`."
    )
    grace_seconds: int = optional(GRACE_SECONDS, "The longest that a pod may take to end.", ge=30)
    tolerations: list[str] = optional(
        list, "Tolerations that name taints of foreign pools and pass: key=value:effect."
    )
    nv_fractions: bool = optional(
        False, "Pods may ask for GPU memory as a KAI in mode NvFractions reads it."
    )


class _WorkloadInputs(_WithProvider):
    namespace: str = optional("default", "Where it runs; it is there.")
    queue: QueueName | None = optional(
        None, "A leaf queue; without one Kubernetes' own scheduler places it."
    )
    shard: ShardName | None = optional(None, "The shard that serves the queue, if not KAI's own.")
    gpu_resource: GpuName = optional("nvidia.com/gpu", _GPU_NAME)


@with_fields_of(Settings, "removed")
class PlatformInputs(Strict):
    """A host cluster, what is on it for everybody, its teams and what they run."""


@with_fields_of(TeamSettings)
class TeamInputs(_Probed):
    """A team's own Kubernetes on its share of the nodes, with its scheduler and its queues."""

    isolation: Isolation = optional(Isolation, "What keeps the team from the others on the host.")
    namespace: str | None = optional(
        None,
        "One that a Platform made for the team. Left out, the component makes team-NAME, with"
        " quotas, network policies and guards.",
    )
    guard: Guard = optional(Guard, "Wrong pods: deny them?")
    sources: Sources = optional(Sources, _SOURCES)
    gpu_resource: GpuName = optional("nvidia.com/gpu", _GPU_NAME)
    kai: HostKai | None = optional(None, "host mode: the KAI that the host has.")


@with_fields_of(Vcluster)
class VirtualClusterInputs(_Probed):
    """A vCluster in a namespace that is there, with a kubeconfig that works from here."""

    namespace: str = Field(description=_NAMESPACE)
    mode: Mode = optional("default", "Which scheduler places its pods.")
    sources: Sources = optional(Sources, _SOURCES)
    registries: Registries = optional(dict, _REGISTRIES)
    node_pool: dict[LabelKey, LabelValue] = optional(dict, _POOL)
    control_pool: dict[LabelKey, LabelValue] = optional(
        dict, "Labels of the nodes for the vCluster itself."
    )
    prepared: bool = optional(
        False, "A Platform or a Team made the namespace: it holds the vCluster's rights."
    )


@with_fields_of(HostKai)
class KaiSchedulerInputs(_Probed):
    """One KAI release, what it needs, and the wait until it works."""

    cluster_policy_crd: bool = optional(
        True,
        "Make the CRD ClusterPolicy for versions that wait for it; false where a GPU operator"
        " brings it.",
    )
    sources: Sources = optional(Sources, _SOURCES)
    registries: Registries = optional(dict, _REGISTRIES)
    ready_timeout: int = optional(300, "How many seconds an update waits until it works.", ge=1)


@with_fields_of(Gpu, "resource")
class GpuStackInputs(_Probed):
    """What makes nodes advertise GPUs: NVIDIA's operator, its device plugin, or nothing."""

    sources: Sources = optional(Sources, _SOURCES)
    registries: Registries = optional(dict, _REGISTRIES)


@with_fields_of(Workload, "team", "kind", "replicas", *_VLLM_KEYS)
class GpuPodInputs(_WorkloadInputs):
    """One pod, with or without a GPU."""

    image: ImageName = Field(description=_IMAGE)


@with_fields_of(Workload, "team", "kind", *_VLLM_KEYS)
class GpuDeploymentInputs(_WorkloadInputs):
    """A number of alike pods, with or without a GPU each."""

    image: ImageName = Field(description=_IMAGE)


@with_fields_of(Workload, "team", "kind", "command")
class VllmServerInputs(_WorkloadInputs):
    """A vLLM server of one model, and its Service."""

    model: str = Field(description="A model of Hugging Face, or a path in the container.")


# By the component's name, in the order of the pages.
ARGUMENTS: Final[dict[str, type[Strict]]] = {
    "Platform": PlatformInputs,
    "Team": TeamInputs,
    "VirtualCluster": VirtualClusterInputs,
    "KaiScheduler": KaiSchedulerInputs,
    "QueueTree": QueueTreeInputs,
    "QueueGuard": QueueGuardInputs,
    "HostGuard": HostGuardInputs,
    "GpuStack": GpuStackInputs,
    "GpuPod": GpuPodInputs,
    "GpuDeployment": GpuDeploymentInputs,
    "VllmServer": VllmServerInputs,
}
