"""Clusters, teams and schedulers of a fleet, as a stack declares them or a program's resources do.

Paths are keys of the stack file, so that whoever finds something wrong names the line to edit; for
resources they are URNs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kai_fleet.fleet.cluster import HOST as HOST
from kai_fleet.fleet.cluster import Cluster, Kai, Team
from kai_fleet.fleet.queues import DeclaredQueue

if TYPE_CHECKING:  # a policy pack starts without the types of settings
    from kai_fleet.settings.files.manifests import ManifestFiles
    from kai_fleet.settings.sections.access import Cluster as HostCluster
    from kai_fleet.settings.sections.access import Registries
    from kai_fleet.settings.sections.isolation import Isolation
    from kai_fleet.settings.sections.kubernetes import Affinity, Toleration
    from kai_fleet.settings.sections.monitoring import Monitoring
    from kai_fleet.settings.sections.platform import Gpu, Scheduling
    from kai_fleet.settings.sections.teams import Mode
    from kai_fleet.settings.sections.vcluster import Oidc
    from kai_fleet.settings.team_stack import Facts


@dataclass(frozen=True)
class DeclaredKai(Kai):
    """A KAI scheduler and where it is installed."""

    scheduling: Scheduling | None = field(default=None, hash=False)
    tolerations: Sequence[Toleration] = field(default=(), hash=False)
    affinity: Affinity | None = field(default=None, hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class DeclaredCluster(Cluster):
    """One API server, the host's or a vCluster's, with what is declared in it."""

    kai: tuple[DeclaredKai, ...] = ()
    teams: tuple[DeclaredTeam, ...] = ()
    grants: tuple[DeclaredTeam, ...] = ()
    monitoring: Monitoring | None = None


@dataclass(frozen=True)
class DeclaredTeam(Team):
    """A team on its host: its namespace, its bounds and its vCluster.

    `host_queues` are those that it declares below the `parent_queue` that it is granted.
    `own_stack` is the team of a team stack, `granted` one that a stack of its own may have: then
    this stack has its namespace and its bounds alone. `runs_here`: it still runs in this stack,
    which grants it. `control_plane` is what the keys of its control plane say, by those
    of the chart, with a database's address in clear.
    """

    mode: Mode = "default"
    own_stack: bool = False
    granted: bool = False
    isolation: Isolation | None = field(default=None, hash=False)
    host_queues: tuple[DeclaredQueue, ...] = ()
    inside: DeclaredCluster = field(default_factory=DeclaredCluster, hash=False)
    runs_here: bool = False
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    tolerations: Sequence[Toleration] = field(default=(), hash=False)
    affinity: Affinity | None = field(default=None, hash=False)
    image_pull_secrets: Sequence[str] = field(default=(), hash=False)
    registries: Mapping[str, Registries] = field(default_factory=dict, hash=False)
    oidc: Oidc | None = field(default=None, hash=False)
    groups: Mapping[str, str] = field(default_factory=dict, hash=False)
    control_plane: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    @property
    def kai(self) -> tuple[DeclaredKai, ...]:
        """The KAI inside its vCluster."""
        return self.inside.kai


@dataclass(frozen=True)
class Fleet:
    """One stack: its host, and the teams that it runs or grants a stack of their own.

    In a team stack `platform` is the stack that has the host, `own_team` the one team; elsewhere
    they are "". `labels`, `annotations` and `registries` are of what the platform makes. `facts` is
    what a platform's stack tells its team stacks, None in those.
    """

    cluster: HostCluster
    gpu: Gpu
    isolation: Isolation
    host: DeclaredCluster
    teams: Mapping[str, DeclaredTeam] = field(default_factory=dict)
    grants: Mapping[str, DeclaredTeam] = field(default_factory=dict)
    workloads: Mapping[str, ManifestFiles] = field(default_factory=dict)
    facts: Facts | None = None
    platform: str = ""
    own_team: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    foreign_queues: Mapping[str, Sequence[str]] = field(default_factory=dict)
    registries: Registries = field(default_factory=dict)

    @property
    def tolerations(self) -> Iterable[Toleration]:
        """What any team tolerates, each once."""
        every = (it for team in self.every_team.values() for it in team.tolerations)
        return {it.text: it for it in every}.values()

    @property
    def every_team(self) -> dict[str, DeclaredTeam]:
        """The teams of the stack by name, those with a stack of their own as far as they are its"""
        return {**self.teams, **self.grants}
