"""What a stack file holds when a team has a stack of its own, and what the platform grants it."""

from typing import Annotated

from pydantic import Field, StringConstraints

from kai_fleet.settings.sections.cluster import Credentials
from kai_fleet.settings.sections.gpu_share import Gpus
from kai_fleet.settings.sections.model import Strict
from kai_fleet.settings.sections.platform import Name, TeamName
from kai_fleet.settings.sections.queues import QueueName
from kai_fleet.settings.sections.teams import HostPlace, OwnNodes, TeamSettings
from kai_fleet.settings.sections.workloads import Workload

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
    workloads: dict[Name, Workload] = Field(
        default_factory=dict, description="What runs in the team's vCluster, by name."
    )
