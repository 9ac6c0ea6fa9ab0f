"""A team's own stack: what its file holds, and what it knows of its platform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from kai_fleet.releases.sharing import SharingMode, of_switch
from kai_fleet.settings.sections.access import Credentials
from kai_fleet.settings.sections.gpu_share import Gpus
from kai_fleet.settings.sections.isolation import Guard, Isolation
from kai_fleet.settings.sections.models import Strict
from kai_fleet.settings.sections.monitoring import Monitoring
from kai_fleet.settings.sections.platform import Name, Sources, TeamName
from kai_fleet.settings.sections.queues import QueueName
from kai_fleet.settings.sections.teams import HostPlace, Mode, OwnNodes, TeamSettings
from kai_fleet.settings.sections.vcluster import Vcluster
from kai_fleet.settings.sections.workloads import Manifests

Removed = Annotated[
    list[Name],
    Field(description="Teams that may go: one that is deployed goes only when it is named here."),
]
StackName = Annotated[
    str,
    StringConstraints(
        pattern=r"^([-A-Za-z0-9_.]+/[-A-Za-z0-9_.]+/)?[-A-Za-z0-9_.]+$", max_length=300
    ),
]


class Grant(HostPlace):
    """What the platform stack lets one team stack have; its name is the key above."""

    node_pool: OwnNodes = Field(default_factory=dict)
    gpus: Gpus = Field(
        default=0, description="The most GPUs it may ask for. In a stack file also by kind."
    )
    parent_queue: QueueName | None = Field(
        default=None, description="host mode: the leaf of kai-fleet:queues that is the team's."
    )


class PlatformReference(Strict):
    """Which stack holds the host cluster that a team stack is on."""

    stack: StackName = Field(
        description="write the platform's stack: prod, or organization/project/prod"
    )


class OwnTeam(TeamSettings):
    """The team of a team stack: the keys of an entry of `kai-fleet:teams`, and its name."""

    name: TeamName = Field(description="write the team's name, as the platform grants it")


class TeamStack(Strict):
    """A stack with one team on a platform that another stack holds."""

    platform: PlatformReference = Field(description="write {stack: prod}, the platform's stack")
    team: OwnTeam = Field(description="write the team's name, scheduler, nodePool, gpus, queues")
    cluster: Credentials | None = Field(
        default=None, description="Credentials of its own; else the platform's context is used."
    )
    removed: Removed = Field(default_factory=list)
    workloads: dict[TeamName, Manifests] = Field(
        default_factory=dict, description="YAML files below the team's name: its manifests."
    )


class NoPlatformError(Exception):
    """The platform's facts cannot be had; the message completes "kai-fleet:platform.stack …"."""


class Fact(BaseModel):
    """Lenient where settings are strict: the platform may run a newer version of this program."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True
    )


class HostCluster(Fact):
    """The host cluster: `context` is None where the platform has its kubeconfig as a secret."""

    name: str
    context: str | None = None


class HostScheduler(Fact):
    """The KAI of the host."""

    version: str
    gpu_sharing: bool = True
    gpu_sharing_mode: SharingMode | None = None

    @property
    def mode(self) -> SharingMode:
        """How it shares GPUs; a platform of an older kai-fleet tells only whether it does."""
        return self.gpu_sharing_mode or of_switch(self.gpu_sharing)


class HostQueue(Fact):
    """A queue of the host's tree; `resources` are in KAI's units, as in its Queue object.

    `shard` is the one that serves it, also where a queue above it says so.
    """

    parent: str | None = None
    shard: str | None = None
    resources: dict[str, dict[str, float]] = Field(default_factory=dict)


class Neighbour(Fact):
    """A team of the platform stack."""

    mode: Mode
    node_pool: dict[str, str] = Field(default_factory=dict)
    gpus: int = 0
    queue: str | None = None


class PlatformFacts(Fact):
    """One platform, as its team stacks see it."""

    cluster: HostCluster
    gpu_resource: str = "nvidia.com/gpu"
    gpu_provider: str = "none"
    kai: HostScheduler | None = None
    queues: dict[str, HostQueue] = Field(default_factory=dict)
    vcluster: Vcluster = Field(default_factory=Vcluster)
    guard: Guard = Field(default_factory=Guard)
    isolation: Isolation = Field(default_factory=Isolation)
    sources: Sources = Field(default_factory=Sources)
    registries: list[str] = Field(default_factory=list)  # of which it makes Secrets, by name
    monitoring: Monitoring | None = None
    teams: dict[str, Neighbour] = Field(default_factory=dict)
    team_stacks: dict[str, Grant] = Field(default_factory=dict)

    @classmethod
    def read(cls, output: Any) -> PlatformFacts:
        """The facts from the platform stack's output `platform`. Raises NoPlatformError."""
        if isinstance(output, Mapping) and "isolation" not in output:
            raise NoPlatformError(
                "was last updated by a kai-fleet that makes no namespaces for its team stacks;"
                " update it with this version first"
            )
        try:
            return cls.model_validate(_whole_numbers(output))
        except ValidationError as why:
            detail = why.errors(include_url=False)[0]
            place = ".".join(str(part) for part in detail["loc"])
            raise NoPlatformError(
                f"exports something else than this version of kai-fleet reads ({place}:"
                f" {detail['msg'].lower()}); update the platform stack with this version first"
            ) from None

    def granted_queue(self, team: str) -> tuple[str | None, str | None]:
        """The queue of the host's tree that is a team's, and the shard that serves it.

        None where it is granted none; a shard of None is KAI's default one.
        """
        name = self.team_stacks[team].parent_queue if team in self.team_stacks else None
        queue = self.queues.get(name or "")
        return name, queue.shard if queue else None

    def output(self) -> dict[str, Any]:
        """For the platform stack's outputs."""
        return self.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)


def _whole_numbers(value: Any) -> Any:
    """Outputs have no integers of their own; the settings insist on them."""
    if isinstance(value, Mapping):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
