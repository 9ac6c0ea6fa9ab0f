"""What runs in a team's Kubernetes: pods, deployments and vLLM servers."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, SecretStr, StringConstraints, WithJsonSchema

from kai_fleet.releases import KAI
from kai_fleet.settings.sections.gpu_share import GpuShare, share_mistakes, whole
from kai_fleet.settings.sections.kubernetes import LabelKey, quantity
from kai_fleet.settings.sections.models import Strict
from kai_fleet.settings.sections.platform import Name
from kai_fleet.settings.sections.queues import QueueName, leaves
from kai_fleet.settings.sections.teams import TeamSettings

Kind = Literal["pod", "deployment", "vllm"]
MEMORY_FLAG: Final = "--gpu-memory-utilization"
# What a VllmServer writes itself.
_VLLM_FLAGS: Final = (MEMORY_FLAG, "--model", "--port", "--host", "--tensor-parallel-size")
_VLLM_ONLY: Final = ("model", "hugging_face_token")
ImageName = Annotated[str, StringConstraints(pattern=r"^\S+$", max_length=512)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=256)]


def _quantity(value: Any) -> str:
    quantity(value, '6, "500m" or 16G')
    return f"{value:.15g}" if isinstance(value, float) else str(value)


Quantity = Annotated[
    str,
    BeforeValidator(_quantity),
    WithJsonSchema({"type": ["string", "number"], "description": 'such as 6, "500m" or 16G'}),
]


class Amount(Strict):
    """What a container is promised of a resource, and the most it may take."""

    request: Quantity | None = Field(default=None, description="What it is promised.")
    limit: Quantity | None = Field(default=None, description="The most it may take.")


class TopologyPlacement(Strict):
    """Where KAI puts the pods of a workload together, in levels of a Topology."""

    name: Name = Field(description="A Topology of the cluster whose KAI schedules.")
    required: LabelKey | None = Field(
        default=None, description="All pods on nodes with one value of this label, or none."
    )
    preferred: LabelKey | None = Field(
        default=None, description="As close together as can be, down to this level."
    )


class Workload(Strict):
    """One workload of a team, inside its vCluster."""

    team: Name = Field(description="Whose vCluster it runs in.")
    kind: Kind = Field(description="pod, deployment, or vllm: a server of one model.")
    namespace: Name = Field(default="default", description="Inside the vCluster; made if needed.")
    queue: QueueName | None = Field(
        default=None, description="A leaf of the team's queues; needed where it has several."
    )
    image: ImageName | None = Field(default=None, description="vllm has one of its own.")
    command: list[str] = Field(default_factory=list, description="In place of the image's own.")
    args: list[str] = Field(default_factory=list, description="For vllm: further flags.")
    env: dict[Variable, str] = Field(default_factory=dict, description="Nothing secret.")
    replicas: int = Field(default=1, ge=0, le=10_000, description="Not for kind pod.")
    gpu: GpuShare | None = Field(default=None, description="Absent: no GPU.")
    cpu: Amount = Field(default_factory=Amount)
    memory: Amount = Field(default_factory=Amount)
    runtime_class: Name | None = Field(
        default=None, description="nvidia for pods with a GPU, where the stack's GPU stack has it."
    )
    priority_class: Name | None = Field(
        default=None, description="KAI brings train, build-preemptible, build and inference."
    )
    topology: TopologyPlacement | None = Field(default=None, description="KAI v0.12 and newer.")
    ready_seconds: int | None = Field(
        default=None, ge=0, le=86_400, description="How long an update waits; 0: not at all."
    )
    model: (
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_./-]+$", max_length=256)] | None
    ) = Field(
        default=None, description="vllm: a model of Hugging Face, or a path in the container."
    )
    hugging_face_token: SecretStr | None = Field(
        default=None,
        strict=False,
        description="vllm: for gated models; set it with `pulumi config set --secret --path`.",
    )

    def queue_of(self, team: TeamSettings) -> str | None:
        """The queue that its pods name; None in mode default."""
        if team.scheduler.mode == "default":
            return None
        if self.queue is not None or team.scheduler.mode == "host":
            return self.queue or team.queue
        own = leaves(team.queues)
        return own[0] if len(own) == 1 else None


def workload_mistakes(
    workload: Workload, team: TeamSettings | None, kai: str | None
) -> Iterator[tuple[str, str]]:
    """What does not fit together, with itself or with its team: (key, sentence).

    `kai` is the version that schedules the team's pods, None in mode default.
    """
    if workload.gpu is not None:
        yield from share_mistakes(workload.gpu)
    yield from (_of_vllm if workload.kind == "vllm" else _of_others)(workload)
    if workload.topology and not (workload.topology.required or workload.topology.preferred):
        yield "topology", "places nothing; write required or preferred with a level of it"
    if team is None:
        return
    if team.scheduler.mode == "default":
        yield from _without_kai(workload)
        return
    if workload.queue_of(team) is None and team.scheduler.mode == "virtual":
        own = leaves(team.queues)
        choice = f"write one of {', '.join(own)}" if own else "the team has no queues yet"
        yield "queue", f"is missing, and the team has {len(own)} leaf queues; {choice}"
    known = KAI.get(kai or "")  # one that is not in the table is refused by itself
    if workload.topology and known and not known.has_topologies:
        yield "topology", f"is for KAI v0.12 and newer, and the team's is {kai}; drop it"


def _of_vllm(workload: Workload) -> Iterator[tuple[str, str]]:
    if workload.model is None:
        yield "model", "is missing: kind vllm serves one; write Qwen/Qwen2.5-1.5B-Instruct"
    if workload.command:
        yield "command", "is vllm's own; write flags in args, or kind: deployment"
    for flag in _VLLM_FLAGS:
        if any(arg.partition("=")[0].replace("_", "-") == flag for arg in workload.args):
            source = "gpu" if flag in (MEMORY_FLAG, "--tensor-parallel-size") else "kind vllm"
            yield "args", f"has {flag}, which comes from {source}; drop it"
    if workload.gpu is None:
        yield "gpu", "is missing: vLLM needs one; write fraction: 0.5 or devices: 1"
    elif workload.gpu.memory is not None:
        # vLLM takes a part of the GPU, whatever its size: no number of MiB says which.
        yield "gpu.memory", "does not say which part of the GPU vLLM may take; write fraction"
    if "HF_TOKEN" in workload.env:
        yield "env.HF_TOKEN", "would be readable in the state; write huggingFaceToken"


def _of_others(workload: Workload) -> Iterator[tuple[str, str]]:
    if workload.image is None:
        yield "image", f"is missing: kind {workload.kind} runs one; write ubuntu:24.04"
    for key in _VLLM_ONLY:
        if key in workload.model_fields_set:
            yield Workload.key_of(key), "is for kind vllm; drop it"
    if workload.kind == "pod" and "replicas" in workload.model_fields_set:
        yield "replicas", "is for kind deployment; a pod is one"


def _without_kai(workload: Workload) -> Iterator[tuple[str, str]]:
    if workload.queue is not None:
        yield "queue", "is for teams with KAI; this one is in mode default: drop it"
    if workload.gpu is not None and workload.gpu.shared:
        yield "gpu", "takes a part of a GPU, which only KAI gives; write devices in mode default"
    if workload.topology is not None:
        yield "topology", "is read by KAI only; drop it in mode default"


def too_many_gpus(
    team: TeamSettings, workloads: Mapping[str, Workload], slices: Mapping[str, int]
) -> str | None:
    """What to write where the team's bound keeps some of its workloads waiting for good.

    Those that an update does not wait for (readySeconds: 0) may wait. `slices` are the team's.
    """
    by_kind: dict[str, dict[str, Workload]] = {}
    for name, workload in workloads.items():
        if workload.gpu is not None and workload.ready_seconds != 0:
            by_kind.setdefault(workload.gpu.slice or "", {})[name] = workload
    for kind, own in by_kind.items():
        there = slices.get(kind, 0) if kind else whole(team.gpus)
        needed = _gpus_at_once(team, own.values())
        if needed <= there:
            continue
        has, write = f"is {there}", f"gpus: {needed}"
        if kind:
            has, write = f"has {there} {kind}", f"{{{kind}: {needed}}}"
        elif isinstance(team.gpus, dict):
            has, write = f"has {there} whole GPUs", f"{needed} for those"
        return (
            f"{has}, and its workloads need {needed} at once ({', '.join(own)}): write {write}, or"
            " readySeconds: 0 for those that may wait for a GPU"
        )
    return None


def _gpus_at_once(team: TeamSettings, workloads: Iterable[Workload]) -> int:
    """The GPUs that count against the team's bound, at the least.

    A GPU that pods share counts as one where the team's own KAI reserves it; the host's KAI does
    that in a namespace of its own, beyond the team's bound.
    """
    devices, shared = 0, 0.0
    for workload in workloads:
        gpu, pods = workload.gpu, workload.replicas
        if gpu is not None and gpu.shared and gpu.slice is None:
            # Next to nothing for an amount of memory: which part of a GPU that is stays open.
            shared += (gpu.fraction or 1e-3) * (gpu.on_devices or 1) * pods
        elif gpu is not None:
            devices += (gpu.devices or 0) * pods
    return devices + (math.ceil(round(shared, 6)) if team.scheduler.mode == "virtual" else 0)
