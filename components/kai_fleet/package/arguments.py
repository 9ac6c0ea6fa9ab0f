"""The inputs of each component of the package, made of the fields of the settings models.

A key that a stack file has is that model's own field, with its type, bounds and description. Only
what is a component's alone is written here.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import BaseModel, Field, create_model

from kai_fleet.guards.host_rules import GRACE_SECONDS, KaiPlace
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.guard import Guard, GuardMode
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.model import Strict
from kai_fleet.settings.sections.platform import Gpu, HostKai, KaiVersion, Name
from kai_fleet.settings.sections.queues import QueueName, QueueTree
from kai_fleet.settings.sections.scheduling import ShardName
from kai_fleet.settings.sections.sources import Sources
from kai_fleet.settings.sections.team_stack import Credentials
from kai_fleet.settings.sections.teams import LabelKey, LabelValue, Mode, Team, Vcluster
from kai_fleet.settings.sections.workloads import ImageName, Workload


class ClusterInput(Credentials):
    """A cluster and how it is reached: one of context and kubeconfig."""

    name: Name = Field(
        description="Stable identity of the cluster: credentials may rotate under it."
    )


class _WithProvider(Strict):
    """Declared with a provider alone: no probe asks its cluster."""

    cluster: ClusterInput | None = Field(
        default=None,
        description="The cluster, unless a Kubernetes provider is given in the resource's options.",
    )


class _Probed(Strict):
    """Probes ask its cluster."""

    cluster: ClusterInput = Field(
        description="The cluster. What is declared on it uses the Kubernetes provider in the"
        " resource's options, if there is one; the probes always use this."
    )


_NAMESPACE: Final = "The namespace, which is there already or is another resource's output."
_POOL: Final = "Labels of the nodes that are the team's own."


def _model(
    name: str, base: type[Strict], doc: str, source: type[BaseModel], *without: str, **own: Any
) -> type[Strict]:
    """A model with the fields of `source`, without some, and with more of its own."""
    fields: dict[str, Any] = {
        key: (field.annotation, field)
        for key, field in source.model_fields.items()
        if key not in (*without, *own, *base.model_fields)
    }
    return create_model(name, __base__=base, __doc__=doc, **fields, **own)


class QueueTreeInputs(_Probed):
    """A tree of KAI queues, in Kubernetes' quantities, as one resource."""

    queues: QueueTree = Field(description="The tree, by the names of its top-level queues.")
    version: KaiVersion | None = Field(
        default=None, description="The KAI that reads it; the newest known unless set."
    )
    gpu_limit: int | None = Field(
        default=None, ge=0, description="Bounds top-level queues that have no limit: whole GPUs."
    )
    parent: QueueName | None = Field(
        default=None, description="A queue of another tree below which this one hangs."
    )
    shard: ShardName | None = Field(default=None, description="The shard that serves the parent.")
    limits: dict[QueueName, int] = Field(
        default_factory=dict, description="The most GPUs of single queues, by their names."
    )


class QueueGuardInputs(_WithProvider):
    """A ValidatingAdmissionPolicy: pods name a leaf queue of the team; of Deployments it warns."""

    team: Name = Field(description="Whose queues they are; the policy is named after it.")
    queues: list[QueueName] = Field(description="The leaf queues that pods may name.")
    namespace: str | None = Field(
        default=None, description="Where it holds; every namespace of the cluster unless set."
    )
    mode: GuardMode = Field(
        default="deny", description="audit: such pods pass, with a warning, for roll-out."
    )
    gpu_sharing: bool = Field(default=True, description="Whether this KAI gives parts of a GPU.")
    prefix: str | None = Field(
        default=None, description="Queues whose names begin with it are the team's, too."
    )
    pod_groups: bool = Field(
        default=False, description="Pods may name a PodGroup in place of a queue."
    )


class HostGuardInputs(_WithProvider):
    """ValidatingAdmissionPolicies on the host that keep a namespace's pods to the team's share."""

    team: Name = Field(description="Whose namespace it is; the policies are named after it.")
    namespace: str = Field(description=_NAMESPACE)
    devices: list[str] = Field(
        default_factory=lambda: ["nvidia.com/gpu"],
        description="Names of the devices that its pods may ask for; nvidia.com/gpu unless set.",
    )
    pool: dict[LabelKey, LabelValue] = Field(default_factory=dict, description=_POOL)
    control_pool: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="Labels of the nodes for control planes."
    )
    foreign_pools: list[dict[LabelKey, LabelValue]] = Field(
        default_factory=list,
        description="Labels of nodes that are others', for a team without nodes of its own.",
    )
    names_nodes: bool = Field(
        default=False, description="Its pods come with a node: a scheduler inside chose it."
    )
    shared_nodes: bool = Field(
        default=True, description="Other teams' pods may be on the same nodes."
    )
    kai: KaiPlace = Field(default="none", description="Where the KAI is that shares its GPUs.")
    device_classes: list[str] = Field(
        default_factory=list, description="DRA device classes that its claims may name."
    )
    priorities: list[str] = Field(
        default_factory=list, description="Priority classes that its pods may name."
    )
    queues_only: bool = Field(
        default=False, description="GPUs are for pods that KAI schedules alone."
    )
    restricted: bool = Field(default=False, description="Pod Security `restricted` holds.")
    platform_images: list[str] = Field(
        default_factory=list,
        description="What the names of images with KAI's programs begin with, which run without"
        " the security context that `restricted` asks of everything else.",
    )
    runtime_classes: list[str] = Field(
        default_factory=lambda: Isolation().runtime_classes,
        description="Runtime classes of the host that show no GPU.",
    )
    beside_kai: bool = Field(default=False, description="The host has a KAI.")
    queues: list[QueueName] = Field(
        default_factory=list, description="Queues of the host's KAI that are the team's."
    )
    queue_prefix: str | None = Field(
        default=None, description="Queues whose names begin so are the team's, too."
    )
    foreign_queues: list[str] = Field(
        default_factory=list, description="Queues and teams that only begin so."
    )
    attachments: bool = Field(default=False, description="Pods may join other networks by Multus.")
    endpoints: bool = Field(
        default=False, description="Services may lead to addresses that are not public."
    )
    private: list[str] = Field(
        default_factory=list, description="Public networks (CIDRs) that count as not public."
    )
    annotations: list[str] = Field(
        default_factory=list,
        description="Domains of annotations for runtimes and plugins that its pods may have.",
    )
    volumes: list[str] = Field(
        default_factory=list,
        description="Kinds of volumes besides those of Pod Security `restricted`.",
    )
    grace_seconds: int = Field(
        default=GRACE_SECONDS, ge=30, description="The longest that a pod may take to end."
    )


class _Isolated(_Probed):
    isolation: Isolation = Field(
        default_factory=Isolation,
        description="What keeps the team from the others on the host.",
    )


_SOURCES: Any = (
    Sources,
    Field(
        default_factory=Sources,
        description="Where its charts and images may come from besides the release tables'.",
    ),
)
_GPU_RESOURCE: Any = (
    Literal["nvidia.com/gpu", "amd.com/gpu"],
    Field(default="nvidia.com/gpu", description="The name under which nodes advertise GPUs."),
)


def _workload(name: str, doc: str, *without: str, **own: Any) -> type[Strict]:
    return _model(
        name,
        _WithProvider,
        doc,
        Workload,
        "team",
        "kind",
        *without,
        namespace=(str, Field(default="default", description="Where it runs; it is there.")),
        queue=(
            QueueName | None,
            Field(
                default=None,
                description="A leaf queue; without one Kubernetes' own scheduler places it.",
            ),
        ),
        shard=(
            ShardName | None,
            Field(default=None, description="The shard that serves the queue, if not KAI's own."),
        ),
        gpu_resource=_GPU_RESOURCE,
        **own,
    )


_IMAGE: Any = (ImageName, Field(description="The image of its one container."))
_VLLM: Final = ("model", "hugging_face_token")

# By the component's name, in the order of the pages.
ARGUMENTS: Final[dict[str, type[Strict]]] = {
    "Platform": _model(
        "PlatformInputs",
        Strict,
        "A host cluster, what is on it for everybody, its teams and what they run.",
        Settings,
        "removed",
    ),
    "Team": _model(
        "TeamInputs",
        _Isolated,
        "A team's own Kubernetes on its share of the nodes, with its scheduler and its queues.",
        Team,
        namespace=(
            str | None,
            Field(
                default=None,
                description="One that a Platform made for the team. Left out, the component makes"
                " team-NAME, with quotas, network policies and guards.",
            ),
        ),
        guard=(Guard, Field(default_factory=Guard, description="Wrong pods: deny them?")),
        sources=_SOURCES,
        gpu_resource=_GPU_RESOURCE,
        kai=(
            HostKai | None,
            Field(default=None, description="host mode: the KAI that the host has."),
        ),
    ),
    "VirtualCluster": _model(
        "VirtualClusterInputs",
        _Probed,
        "A vCluster in a namespace that is there, with a kubeconfig that works from here.",
        Vcluster,
        namespace=(str, Field(description=_NAMESPACE)),
        mode=(Mode, Field(default="default", description="Which scheduler places its pods.")),
        sources=_SOURCES,
        node_pool=(dict[LabelKey, LabelValue], Field(default_factory=dict, description=_POOL)),
        control_pool=(
            dict[LabelKey, LabelValue],
            Field(default_factory=dict, description="Labels of the nodes for the vCluster itself."),
        ),
        prepared=(
            bool,
            Field(
                default=False,
                description="A Platform or a Team made the namespace: it holds the vCluster's"
                " rights.",
            ),
        ),
    ),
    "KaiScheduler": _model(
        "KaiSchedulerInputs",
        _Probed,
        "One KAI release, what it needs, and the wait until it works.",
        HostKai,
        cluster_policy_crd=(
            bool,
            Field(
                default=True,
                description="Make the CRD ClusterPolicy for versions that wait for it; false where"
                " a GPU operator brings it.",
            ),
        ),
        sources=_SOURCES,
        ready_timeout=(
            int,
            Field(
                default=300, ge=1, description="How many seconds an update waits until it works."
            ),
        ),
    ),
    "QueueTree": QueueTreeInputs,
    "QueueGuard": QueueGuardInputs,
    "HostGuard": HostGuardInputs,
    "GpuStack": _model(
        "GpuStackInputs",
        _Probed,
        "What makes nodes advertise GPUs: NVIDIA's operator, its device plugin, or nothing.",
        Gpu,
        "resource",
        sources=_SOURCES,
    ),
    "GpuPod": _workload(
        "GpuPodInputs",
        "One pod, with or without a GPU.",
        *_VLLM,
        "replicas",
        image=_IMAGE,
    ),
    "GpuDeployment": _workload(
        "GpuDeploymentInputs",
        "A number of alike pods, with or without a GPU each.",
        *_VLLM,
        image=_IMAGE,
    ),
    "VllmServer": _workload(
        "VllmServerInputs",
        "A vLLM server of one model, and its Service.",
        "command",
        model=(str, Field(description="A model of Hugging Face, or a path in the container.")),
    ),
}
