"""What the rules look at, wherever it came from: a stack file or declared resources.

A `Cluster` is one API server: the host or the inside of one vCluster. Relations between the teams
of a host are in the host's `virtual_clusters`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, TypeAlias

from kai_fleet.kai.keys import KAI_NAMESPACE, POD_GROUP, QUEUE_LABEL, RESERVED
from kai_fleet.releases.sources import Sources
from kai_fleet_policies.grants import Grant
from kai_fleet_policies.installed import Installed
from kai_fleet_policies.problem import at
from kai_fleet_policies.queue_tree import RESOURCES, UNLIMITED, Queue, QueueTree, Resource, Share
from kai_fleet_policies.unknown import UNKNOWN, Amount, Text, Unknown

__all__ = [
    "PARENT_ELSEWHERE",
    "RESOURCES",
    "UNKNOWN",
    "UNLIMITED",
    "Amount",
    "Cluster",
    "Container",
    "DevicePlugin",
    "Feature",
    "Grant",
    "Installed",
    "KaiRelease",
    "Mode",
    "Namespaced",
    "Queue",
    "QueueTree",
    "Resource",
    "Share",
    "Text",
    "Unknown",
    "VirtualCluster",
    "Workload",
    "called",
    "queue_subject",
    "workload_subject",
]

# The annotation of a Queue whose parent is declared by another stack, which grants it.
PARENT_ELSEWHERE: Final = "kai-fleet/parent-of-another-stack"

Mode: TypeAlias = Literal["virtual", "host", "default"]


@dataclass(frozen=True)
class Container:
    """The name and resources of one container, its image, and its command with arguments."""

    name: Text = ""
    requests: Mapping[str, object] | Unknown = field(default_factory=dict)
    limits: Mapping[str, object] | Unknown = field(default_factory=dict)
    image: Text | None = None
    command: tuple[Text, ...] | Unknown = ()
    arguments: tuple[Text, ...] | Unknown = ()

    def asks_for(self, resource: str) -> bool | Unknown:
        """Whether the resource is requested or limited at all, were it 0."""
        if self.requests is UNKNOWN or self.limits is UNKNOWN:
            return UNKNOWN
        return resource in self.requests or resource in self.limits


@dataclass(frozen=True)
class Workload:
    """A pod, or one pod template of a workload.

    `labels` and `annotations` are the pods'; `owner_labels` those of the object itself, where KAI
    looks for the queue first. `part` names the template where a kind has several.
    """

    kind: str
    name: Text
    namespace: Text | None = None
    scheduler: Text | None = None
    labels: Mapping[str, object] | Unknown = field(default_factory=dict)
    annotations: Mapping[str, object] | Unknown = field(default_factory=dict)
    containers: tuple[Container, ...] | Unknown = ()
    owner_labels: Mapping[str, object] | Unknown = field(default_factory=dict)
    part: str = ""
    path: str = ""

    @property
    def names_queue(self) -> bool | Unknown:
        """Whether it carries the queue label at all."""
        for labels in (self.owner_labels, self.labels):
            if labels is UNKNOWN:
                return UNKNOWN
            if QUEUE_LABEL in labels:
                return True
        return False

    @property
    def pod_group(self) -> object:
        """The PodGroup that the pods name themselves; None where KAI makes one for them."""
        if self.annotations is UNKNOWN:
            return UNKNOWN
        return self.annotations.get(POD_GROUP) or None

    @property
    def queue(self) -> object:
        """The value of the queue label: of the object, else of its pods; None where absent."""
        for labels in (self.owner_labels, self.labels):
            if labels is UNKNOWN:
                return UNKNOWN
            if QUEUE_LABEL in labels:
                return labels[QUEUE_LABEL]
        return None


@dataclass(frozen=True)
class KaiRelease:
    """A KAI scheduler that a Helm release installs; `version` is None where it is left open.

    `values` are those that were written for it, `untested` lets a version newer than the table by.
    """

    version: Text | None
    namespace: Text | None = KAI_NAMESPACE
    gpu_sharing: bool | Unknown = True
    path: str = ""
    values: Mapping[str, object] | Unknown = field(default_factory=dict, hash=False)
    untested: bool = False


@dataclass(frozen=True)
class VirtualCluster:
    """A team's vCluster on its host.

    `gpus` is the bound that a ResourceQuota sets, None where there is none. `queue` is the leaf
    queue of a team in host mode. `kai` is what runs inside. `values` are those that were written
    for it, `licensed` says that a vCluster licence is there, `untested` lets a
    version newer than the table by, `version_before` is what runs now.
    `own_stack` is the team of a team stack, `granted` one that a stack of its own may have.
    `isolation` is the level that keeps it from others, None where that is not known.
    `version_key` is the key with its version, "" for the one below its own.
    """

    name: Text
    namespace: Text | None = None
    version: Text | None = None
    node_pool: Mapping[str, Text] | Unknown = field(default_factory=dict)
    gpus: Amount | None = None
    mode: Mode | Unknown = "default"
    queue: Text | None = None
    kai: tuple[KaiRelease, ...] = ()
    path: str = ""
    values: Mapping[str, object] | Unknown = field(default_factory=dict, hash=False)
    licensed: bool = False
    untested: bool = False
    version_before: str | None = None
    own_stack: bool = False
    granted: bool = False
    isolation: str | None = None
    version_key: str = ""

    @property
    def version_path(self) -> str:
        """Where its version is written."""
        return self.version_key or at(self.path, "vcluster", "version")

    @property
    def may_use_gpus(self) -> bool:
        """False only where its GPU quota is known to be 0."""
        return self.gpus is None or self.gpus is UNKNOWN or self.gpus > 0


@dataclass(frozen=True)
class Namespaced:
    """Any other object in a namespace; `chart` is set for Helm releases."""

    kind: str
    name: Text
    namespace: Text
    chart: str = ""
    path: str = ""


@dataclass(frozen=True)
class Feature:
    """Something that not every KAI has: `shards`, `fairshare` or `topologies`."""

    kind: Literal["shards", "fairshare", "topologies"]
    path: str = ""


@dataclass(frozen=True)
class DevicePlugin:
    """How the GPUs' device plugin shares them: by time-slicing, by MPS or ("") not at all."""

    sharing: Literal["", "time-slicing", "MPS"] | Unknown
    path: str = ""


@dataclass(frozen=True)
class Cluster:
    """One API server with what is declared in it.

    `gpus` bounds all pods in it (the quota of the team whose vCluster this is). `scheduled_by` is
    the host where the host's KAI places the pods of this vCluster, and `team_queue` the only queue
    that its pods may name then. `reserved` are the namespaces of the platform, and `queues_of` the
    only queues that pods of a namespace may name, for the namespaces that it lists. `guarded` is
    whether a QueueGuard denies pods in every namespace. `grants` is what team stacks may have here;
    `platform` is the stack that says so, where this is a team stack. `features` are those of KAI
    that are used. `installed` are charts, which come from `sources`: of a whole stack where its
    settings are read, as the host's.
    """

    name: str
    path: str = ""
    kai: tuple[KaiRelease, ...] = ()
    queues: tuple[Queue, ...] = ()
    workloads: tuple[Workload, ...] = ()
    namespaced: tuple[Namespaced, ...] = ()
    virtual_clusters: tuple[VirtualCluster, ...] = ()
    device_plugins: tuple[DevicePlugin, ...] = ()
    gpus: Amount | None = None
    scheduled_by: Cluster | None = None
    team_queue: Text | None = None
    reserved: frozenset[str] = RESERVED
    queues_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    guarded: bool = False
    grants: tuple[Grant, ...] = ()
    platform: str = ""
    features: tuple[Feature, ...] = ()
    sources: Sources = field(default_factory=Sources)
    installed: tuple[Installed, ...] = ()

    @property
    def scheduling(self) -> Cluster:
        """The cluster whose queues and KAI count for the pods here."""
        return self.scheduled_by or self

    @cached_property
    def tree(self) -> QueueTree:
        """The queues of this cluster, indexed by name and parent."""
        return QueueTree(self.queues)


def called(name: Text | None) -> str:
    """A name for a sentence, also where it is not known yet."""
    if name is UNKNOWN:
        return "(name not known yet)"
    return name or "(no name)"


def workload_subject(workload: Workload, cluster: Cluster) -> str:
    """For example `Deployment api in namespace team-a of ml`."""
    name = called(workload.name) + (f" ({workload.part})" if workload.part else "")
    namespace = called(workload.namespace) if workload.namespace else "default"
    return f"{workload.kind} {name} in namespace {namespace} of {cluster.name}"


def queue_subject(name: Text, cluster: Cluster) -> str:
    """For example `queue train in ml`."""
    return f"queue {called(name)} in {cluster.name}"
