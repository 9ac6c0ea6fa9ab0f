"""Clusters, teams and schedulers of a fleet, as a stack declares them or a program's resources do.

Paths are keys of the stack file, so that whoever finds something wrong names the line to edit; for
resources they are URNs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from kai_fleet.fleet.installed import ChartStore, InstalledChart, access_values
from kai_fleet.fleet.judged import JudgedCluster, JudgedKai, JudgedTeam
from kai_fleet.fleet.queues import DeclaredQueue
from kai_fleet.guards.host_rules import HostRules
from kai_fleet.guards.queue_rules import QueueRules, inside_vcluster
from kai_fleet.releases import DISABLED, mig
from kai_fleet.releases.chart_values import merged
from kai_fleet.releases.keys import KAI_NAMESPACE, RESERVED
from kai_fleet.releases.sources import KnownSources
from kai_fleet.values import at

if TYPE_CHECKING:  # a policy pack starts without the types of settings
    from kai_fleet.settings.files.manifests import ManifestFiles
    from kai_fleet.settings.sections.access import Access, Cluster, Registries, SecretRegistries
    from kai_fleet.settings.sections.isolation import Isolation
    from kai_fleet.settings.sections.kubernetes import Affinity, Toleration
    from kai_fleet.settings.sections.monitoring import Monitoring
    from kai_fleet.settings.sections.platform import Gpu, Scheduling
    from kai_fleet.settings.sections.team_stack import PlatformFacts
    from kai_fleet.settings.sections.teams import Mode
    from kai_fleet.settings.sections.vcluster import Oidc

HOST: Final = "host"


@dataclass(frozen=True)
class KaiFeature:
    """Something that not every KAI has: `shards`, `fairshare` or `topologies`."""

    kind: Literal["shards", "fairshare", "topologies"]
    path: str = ""


@dataclass(frozen=True)
class DeclaredKai(JudgedKai):
    """A KAI scheduler and where it is installed.

    `registries` are credentials for its images.
    """

    namespace: str | None = KAI_NAMESPACE
    path: str = ""
    chart: str | None = None
    scheduling: Scheduling | None = field(default=None, hash=False)
    tolerations: Sequence[Toleration] = field(default=(), hash=False)
    affinity: Affinity | None = field(default=None, hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    registries: Registries = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class NamespacedObject:
    """Any other object in a namespace; `chart` is set for Helm releases."""

    kind: str
    name: str
    namespace: str
    chart: str = ""
    path: str = ""


@dataclass(frozen=True)
class DevicePlugin:
    """How the GPUs' device plugin shares them: by time-slicing, by MPS or ("") not at all."""

    sharing: Literal["", "time-slicing", "MPS"]
    path: str = ""


@dataclass(frozen=True)
class DeclaredCluster(JudgedCluster):
    """One API server, the host's or a vCluster's, with what is declared in it.

    `gpus` bounds all pods in it (the quota of the team whose vCluster this is). `reserved` are the
    namespaces of the platform. `grants` is what team stacks may have here; `platform` is the stack
    that says so, where this is a team stack. `installed` are charts, which come from `sources`:
    those of a whole stack are the host's.
    """

    kai: tuple[DeclaredKai, ...] = ()
    namespaced: tuple[NamespacedObject, ...] = ()
    virtual_clusters: tuple[DeclaredTeam, ...] = ()
    device_plugins: tuple[DevicePlugin, ...] = ()
    gpus: float | None = None
    reserved: frozenset[str] = RESERVED
    grants: tuple[DeclaredTeam, ...] = ()
    platform: str = ""
    features: tuple[KaiFeature, ...] = ()
    sources: KnownSources = field(default_factory=KnownSources)
    installed: tuple[InstalledChart, ...] = ()
    monitoring: Monitoring | None = None

    @property
    def gpu_sharing(self) -> bool:
        """Whether its KAI lets pods share GPUs."""
        return self.sharing != DISABLED

    @property
    def shards(self) -> Sequence[str]:
        """The shards of its KAI."""
        own = self.kai[0].scheduling if self.kai else None
        return tuple(own.shards) if own is not None else ()

    @property
    def topologies(self) -> Mapping[str, Sequence[str]]:
        """The levels of its KAI's topologies, by name."""
        own = self.kai[0].scheduling if self.kai else None
        return own.topologies if own is not None else {}


@dataclass(frozen=True)
class DeclaredTeam(JudgedTeam):
    """A team on its host: its namespace, its bounds and its vCluster.

    `where` says of a key that the stack may have for all teams where it stands. `control_pool` are
    the labels of the nodes for its control plane. `host_queues` are those that it declares below
    the `parent_queue` that it is granted.

    `version` to `access` are the vCluster's: `values` as they were written, `licensed` where there
    is a vCluster licence, `untested` to let a version newer than the table by, `version_before`
    what runs now. `kai` is what runs inside, and `inside` the whole of that cluster.

    `own_stack` is the team of a team stack, `granted` one that a stack of its own may have: then
    this stack has its namespace and its bounds alone. `runs_here`: it still runs in this stack,
    which grants it. `isolation` is what keeps it from others, None where that is not known. `rules`
    are what the guards of its namespace let through, `host_guard` which queues of the host, and
    `guard` which inside its vCluster; None where there is no such guard, or another stack's.
    `labels` and `annotations` are what its namespace has besides, for who counts costs by them.
    `tolerations` are of everything of the team, `affinity` of its control plane, DNS and KAI,
    `image_pull_secrets` Secrets of its namespace, `registries` the credentials of those that this
    stack makes.
    `oidc` is who says who enters its vCluster, and `groups` the roles of groups there.
    `control_plane` is what the keys of its control plane say, by those of the chart, with a
    database's address in clear; `store` is where it keeps its state, `store_before` what runs now.
    """

    namespace: str = ""
    version: str | None = None
    mode: Mode = "default"
    kai: tuple[DeclaredKai, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    licensed: bool = False
    untested: bool = False
    version_before: str | None = None
    own_stack: bool = False
    granted: bool = False
    isolation: Isolation | None = field(default=None, hash=False)
    where: Callable[..., str] | None = field(default=None, compare=False, repr=False)
    kubernetes_version: str | None = None
    chart: str | None = None
    access: Access | None = None
    control_pool: Mapping[str, str] = field(default_factory=dict, hash=False)
    parent_queue: str | None = None
    host_queues: tuple[DeclaredQueue, ...] = ()
    inside: DeclaredCluster = field(default_factory=DeclaredCluster, hash=False)
    rules: HostRules | None = field(default=None, hash=False)
    host_guard: QueueRules | None = field(default=None, hash=False)
    guard: QueueRules | None = field(default=None, hash=False)
    runs_here: bool = False
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    tolerations: Sequence[Toleration] = field(default=(), hash=False)
    affinity: Affinity | None = field(default=None, hash=False)
    image_pull_secrets: Sequence[str] = field(default=(), hash=False)
    registries: SecretRegistries = field(default_factory=dict, hash=False)
    oidc: Oidc | None = field(default=None, hash=False)
    groups: Mapping[str, str] = field(default_factory=dict, hash=False)
    control_plane: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)
    store: ChartStore = field(default_factory=ChartStore, hash=False)
    store_before: ChartStore | None = field(default=None, hash=False)

    @cached_property
    def chart_values(self) -> Mapping[str, Any]:
        """What its keys and its own values say together, by the keys of the chart."""
        if self.access is None:
            return self.values  # of a program's release, which has them all
        return merged(access_values(self.access), self.control_plane, self.values)

    def written_at(self, *keys: str) -> str:
        """Where a key of its own is written, or that of all teams in its place."""
        steps = ".".join(keys).split(".")
        return self.where(*steps) if self.where else at(self.path, *steps)

    @property
    def kinds(self) -> dict[str, int]:
        """What its quota is, by the names of the resources."""
        whole = (self.gpus or 0) - mig.gpus_of(self.slices)
        return {self.inside.gpu_resource: max(0, int(whole)), **self.slices}

    @property
    def level(self) -> str | None:
        """How strictly it is kept from others; None where that is not known."""
        return self.isolation.level if self.isolation is not None else None

    @property
    def isolated(self) -> bool:
        """Whether anything stands on the host besides the quota of GPUs."""
        return self.isolation is not None and self.isolation.on

    @property
    def guards(self) -> tuple[dict[str, Any], ...]:
        """The objects of the guard inside its vCluster."""
        return tuple(inside_vcluster(self.guard)) if self.guard is not None else ()


@dataclass(frozen=True)
class Fleet:
    """One stack: its host, and the teams that it runs or grants a stack of their own.

    In a team stack `platform` is the stack that has the host, `own_team` the one team; elsewhere
    they are "". `labels`, `annotations` and `registries` are of what the platform makes. `facts` is
    what a platform's stack tells its team stacks, None in those.
    """

    cluster: Cluster
    gpu: Gpu
    isolation: Isolation
    host: DeclaredCluster
    teams: Mapping[str, DeclaredTeam] = field(default_factory=dict)
    grants: Mapping[str, DeclaredTeam] = field(default_factory=dict)
    workloads: Mapping[str, ManifestFiles] = field(default_factory=dict)
    facts: PlatformFacts | None = None
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
