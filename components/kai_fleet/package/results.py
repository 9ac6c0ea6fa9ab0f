"""What each component of the package gives back."""

from __future__ import annotations

from pydantic import Field, SecretStr

from kai_fleet.settings.sections.model import Strict

_KUBECONFIG = "A kubeconfig of the vCluster that works from where Pulumi runs."


class TeamResult(Strict):
    """A team as the platform has it."""

    mode: str = Field(description="Which scheduler places its pods: virtual, host or default.")
    scheduler: str | None = Field(default=None, description="The version of the team's own KAI.")
    namespace: str = Field(description="Its namespace on the host.")
    server: str = Field(description="The address of its vCluster's API.")
    gpus: int = Field(description="The most whole GPUs its pods may hold.")
    queues: list[str] = Field(description="The leaf queues that its pods may name.")


class _Scheduler(Strict):
    version: str = Field(description="The version that runs.")
    namespace: str = Field(description="The namespace of the release.")


class _Cluster(Strict):
    namespace: str = Field(description="The namespace on the host.")
    server: str = Field(description="The address of the vCluster's API.")
    kubeconfig: SecretStr = Field(description=_KUBECONFIG)
    version: str = Field(description="The vCluster's version.")


class _Team(_Cluster):
    version: str | None = Field(default=None, description="The version of the team's own KAI.")  # type: ignore[assignment]
    queues: list[str] = Field(description="The leaf queues that its pods may name.")


class _Queues(Strict):
    queues: list[str] = Field(description="The leaf queues: those that take pods.")


class _Guard(Strict):
    policy: str = Field(description="The name of the ValidatingAdmissionPolicy.")


class _Pods(Strict):
    namespace: str = Field(description="Where it runs.")


class _Server(_Pods):
    url: str = Field(description="The address of its API inside the cluster.")


class _Gpu(Strict):
    version: str | None = Field(default=None, description="The version of its chart.")
    namespace: str | None = Field(default=None, description="The namespace of its release.")


class _Platform(Strict):
    version: str | None = Field(default=None, description="The version of the host's KAI.")
    queues: list[str] = Field(description="The leaf queues of the host's tree.")
    teams: dict[str, TeamResult] = Field(description="Each team, by name.")
    kubeconfigs: dict[str, SecretStr] = Field(description="Each team's kubeconfig, by name.")
    urls: dict[str, str] = Field(description="The addresses of vLLM servers, by workload.")


RESULTS: dict[str, type[Strict]] = {
    "Platform": _Platform,
    "Team": _Team,
    "VirtualCluster": _Cluster,
    "KaiScheduler": _Scheduler,
    "QueueTree": _Queues,
    "QueueGuard": _Guard,
    "HostGuard": _Guard,
    "GpuStack": _Gpu,
    "GpuPod": _Pods,
    "GpuDeployment": _Pods,
    "VllmServer": _Server,
}
