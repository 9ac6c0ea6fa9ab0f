"""What each component of the package gives back, in the order of the pages."""

from typing import Final

from pydantic import Field, SecretStr

from kai_fleet.settings.sections.models import Strict

_QUEUES: Final = "The leaf queues that its pods may name."


class TeamSummary(Strict):
    """A team as the platform has it."""

    mode: str = Field(description="Which scheduler places its pods: virtual, host or default.")
    scheduler: str | None = Field(default=None, description="The version of the team's own KAI.")
    namespace: str = Field(description="Its namespace on the host.")
    server: str = Field(description="The address of its vCluster's API.")
    gpus: int = Field(description="The most whole GPUs its pods may hold.")
    queues: list[str] = Field(description=_QUEUES)


class PlatformOutputs(Strict):  # noqa: D101 - of these the fields are described
    version: str | None = Field(default=None, description="The version of the host's KAI.")
    queues: list[str] = Field(description="The leaf queues of the host's tree.")
    teams: dict[str, TeamSummary] = Field(description="Each team, by name.")
    kubeconfigs: dict[str, SecretStr] = Field(description="Each team's kubeconfig, by name.")
    urls: dict[str, str] = Field(description="The addresses of vLLM servers, by workload.")


class _InVcluster(Strict):
    namespace: str = Field(description="The namespace on the host.")
    server: str = Field(description="The address of the vCluster's API.")
    kubeconfig: SecretStr = Field(
        description="A kubeconfig of the vCluster that works from where Pulumi runs."
    )


class TeamOutputs(_InVcluster):  # noqa: D101
    version: str | None = Field(default=None, description="The version of the team's own KAI.")
    queues: list[str] = Field(description=_QUEUES)


class VirtualClusterOutputs(_InVcluster):  # noqa: D101
    version: str = Field(description="The vCluster's version.")


class KaiSchedulerOutputs(Strict):  # noqa: D101
    version: str = Field(description="The version that runs.")
    namespace: str = Field(description="The namespace of the release.")


class QueueTreeOutputs(Strict):  # noqa: D101
    queues: list[str] = Field(description="The leaf queues: those that take pods.")


class GuardOutputs(Strict):  # noqa: D101
    policy: str = Field(description="The name of the ValidatingAdmissionPolicy.")


class GpuStackOutputs(Strict):  # noqa: D101
    version: str | None = Field(default=None, description="The version of its chart.")
    namespace: str | None = Field(default=None, description="The namespace of its release.")


class PodOutputs(Strict):  # noqa: D101
    namespace: str = Field(description="Where it runs.")


class VllmServerOutputs(PodOutputs):  # noqa: D101
    url: str = Field(description="The address of its API inside the cluster.")


OUTPUTS: Final[dict[str, type[Strict]]] = {
    "Platform": PlatformOutputs,
    "Team": TeamOutputs,
    "VirtualCluster": VirtualClusterOutputs,
    "KaiScheduler": KaiSchedulerOutputs,
    "QueueTree": QueueTreeOutputs,
    "QueueGuard": GuardOutputs,
    "HostGuard": GuardOutputs,
    "GpuStack": GpuStackOutputs,
    "GpuPod": PodOutputs,
    "GpuDeployment": PodOutputs,
    "VllmServer": VllmServerOutputs,
}
