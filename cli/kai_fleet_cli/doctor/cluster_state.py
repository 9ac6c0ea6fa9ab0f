"""Read an API server of a stack, and answer what several checks ask of what was read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from kai_fleet.cluster.tenant_kubeconfig import mending_commands, name_writer
from kai_fleet.fleet.model import HOST, DeclaredCluster, DeclaredTeam
from kai_fleet.guards.host_rules import CONTROL_PLANES
from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import RefusedError, UnreachableError
from kai_fleet.kube.objects import KubeObject
from kai_fleet.releases.helm_record import Forged
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet_cli.waiting.read_cluster import OF_ITS_STACK as OF_ITS_STACK
from kai_fleet_cli.waiting.read_cluster import ClusterPods, ReadCluster
from kai_fleet_cli.waiting.read_cluster import Findings as Findings


@dataclass(frozen=True)
class ClusterState(ReadCluster):
    """The same with all that the stack declares in it."""

    wanted: DeclaredCluster = field(default_factory=DeclaredCluster)

    def refused(self, *kinds: str) -> str:
        """Why these kinds, or pods, were not counted; "" where they were."""
        refused = [kind for kind in kinds or ("pods",) if kind in self.unreadable]
        why = self.unreadable[refused[0]] if refused else ""
        return f"this user may not list {' and '.join(refused)} there ({why})" if refused else ""

    def said_of(self, item: KubeObject) -> list[str]:
        """The messages about an object: the last events first, then what a pod says of itself."""
        events = [str(it.get("message") or "") for it in reversed(self.events_of(item))]
        return [*events, item.unscheduled, *item.waiting]

    def control_plane(self, team: DeclaredTeam) -> KubeObject | None:
        """What runs a team's vCluster: a StatefulSet, or a Deployment where it has no volume."""
        kinds = ("statefulsets", "deployments")
        return next(filter(None, (self.named(k, team.name, team.namespace) for k in kinds)), None)

    def vcluster_version(self, team: DeclaredTeam) -> str | None:
        """The version of vCluster that runs for a team, by the label of its chart."""
        item = self.control_plane(team)
        chart = item.labels.get("chart", "").removeprefix("vcluster-") if item else ""
        return f"v{chart}" if chart else None

    def control_plane_pods(self, team: DeclaredTeam) -> Iterator[KubeObject]:
        """The pods of a team's vCluster itself, not those that run in it."""
        for pod in self.within("pods", team.namespace):
            if pod.labels.get("app") in CONTROL_PLANES and pod.labels.get("release") == team.name:
                yield pod


@dataclass(frozen=True)
class TeamState:
    """A team's vCluster from outside, and its inside where its API answered.

    `unreached` says why it did not; `foreign`: because somebody else than the vCluster wrote its
    Secret. `certificate_ends` is the end of the client certificate.
    `provider_unreached`: its API server has no answer from the team's identity provider.
    `update` is what makes the stack that has it as declared. `records` are Helm's
    of the vCluster's release that its chart did not make; None where they were not looked at.
    `pull_secrets` are the types of its Secrets for images that could be read, "" of one that is
    not there.
    """

    wanted: DeclaredTeam
    inside: ClusterState | None = None
    unreached: str = ""
    certificate_ends: datetime | None = None
    update: str = OF_ITS_STACK
    foreign: bool = False
    provider_unreached: bool = False
    records: Sequence[Forged] | None = None
    pull_secrets: Mapping[str, str] = field(default_factory=dict)

    def mending(self, host: ClusterState) -> tuple[str, ...]:
        """The commands after which the vCluster has written its kubeconfig again."""
        team = self.wanted
        return mending_commands(team.name, team.namespace, host.kubectl, team.store.workload)


@dataclass(frozen=True)
class Snapshot:
    """Everything that one run of the doctor read."""

    host: ClusterState
    teams: Mapping[str, TeamState] = field(default_factory=dict)

    @property
    def foreign(self) -> list[str]:
        """Of each team whose kubeconfig is not its vCluster's: what is there, and what mends it."""
        return [
            f"team {name}: {team.unreached}. {name_writer(name)}. Have it written again:"
            f" {' and '.join(team.mending(self.host))}"
            for name, team in self.teams.items()
            if team.foreign
        ]

    @property
    def clusters(self) -> list[ClusterState]:
        """Every API server that answered, the host first."""
        return [self.host, *(team.inside for team in self.teams.values() if team.inside)]

    @property
    def with_kai(self) -> list[ClusterState]:
        """Those of them that run a KAI, or are to."""
        return [cluster for cluster in self.clusters if cluster.kai is not None]

    def copied(self, cluster: ClusterState) -> frozenset[str]:
        """The namespaces of the host whose pods are looked at inside the vClusters they are of."""
        if cluster is not self.host:
            return frozenset()
        return frozenset(t.wanted.namespace for t in self.teams.values() if t.inside is not None)

    def wanted_of(self, cluster: ClusterState) -> DeclaredTeam | None:
        """The team whose vCluster this is; None for the host."""
        team = self.teams.get(cluster.name)
        return team.wanted if team is not None else None

    @property
    def pods_of_each(self) -> Iterator[ClusterPods]:
        """The users' pods of each cluster, with what decides about them; each in one only."""
        for cluster in self.clusters:
            copied, team = self.copied(cluster), self.wanted_of(cluster)
            own = [pod for pod in cluster.user_pods if pod.namespace not in copied]
            yield ClusterPods(cluster, own, self.scheduling(cluster), self.host, team)

    def scheduling(self, cluster: ClusterState) -> ClusterState:
        """The cluster whose KAI places the pods of this one: the host's in host mode."""
        team = self.wanted_of(cluster)
        if team is None or cluster is self.host:
            return cluster
        if team.declared:
            return self.host if team.mode == "host" else cluster
        return self.host if cluster.kai is None and self.host.kai is not None else cluster


AT_ONCE: Final = 6  # questions to one API server
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_KAI: Final = f"namespaces/{KAI_NAMESPACE}"
# What is read of every API server, by kind; a selector keeps the answer small. `{}` is where the
# namespace goes for a user who may list the kind in one only.
READS: Final[Mapping[str, str]] = {
    "nodes": "/api/v1/nodes",
    "namespaces": "/api/v1/namespaces",
    "pods": "/api/v1/{}pods",
    "services": "/api/v1/{}services",
    "events": "/api/v1/{}events?fieldSelector=type=Warning",
    "bound": "/api/v1/{}events?fieldSelector=reason=Bound",
    "resourcequotas": "/api/v1/{}resourcequotas",
    "networkpolicies": "/apis/networking.k8s.io/v1/{}networkpolicies",
    "validatingadmissionpolicies": f"{_ADMISSION}/validatingadmissionpolicies",
    "validatingadmissionpolicybindings": f"{_ADMISSION}/validatingadmissionpolicybindings",
    "deployments": "/apis/apps/v1/{}deployments",
    "daemonsets": "/apis/apps/v1/{}daemonsets",
    "statefulsets": "/apis/apps/v1/{}statefulsets",
    "replicasets": "/apis/apps/v1/{}replicasets",
    "jobs": "/apis/batch/v1/{}jobs",
    "endpointslices": f"/apis/discovery.k8s.io/v1/{_KAI}/endpointslices",
    "runtimeclasses": "/apis/node.k8s.io/v1/runtimeclasses",
    "clusterroles": f"{_RBAC}/clusterroles",
    "validatingwebhookconfigurations": f"{_ADMISSION}/validatingwebhookconfigurations",
    "mutatingwebhookconfigurations": f"{_ADMISSION}/mutatingwebhookconfigurations",
    "queues": "/apis/scheduling.run.ai/v2/queues",
    "podgroups": "/apis/scheduling.run.ai/v2alpha2/podgroups",
    "configs": "/apis/kai.scheduler/v1/configs",
    "schedulingshards": "/apis/kai.scheduler/v1/schedulingshards",
    "topologies": "/apis/kai.scheduler/v1alpha1/topologies",
    "releases": f"/api/v1/{_KAI}/secrets?labelSelector=owner=helm,name=kai-scheduler",
    "clusterpolicycrd": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    "?fieldSelector=metadata.name=clusterpolicies.nvidia.com",
}
_OF_MONITORING: Final = (
    "/apis/monitoring.coreos.com/v1/podmonitors?fieldSelector=metadata.name=kai-fleet"
)
# Where groups of an identity provider enter a vCluster.
_OF_GROUPS: Final[Mapping[str, str]] = {
    "clusterrolebindings": f"{_RBAC}/clusterrolebindings",
    "rolebindings": f"{_RBAC}/{{}}rolebindings",
}
# Of the host alone, and for a cause alone: what a control plane waits for, and what leads to a
# vCluster by each type of access. Who may not read it misses a cause only.
_OF_HOST: Final[Mapping[str, str]] = {
    "persistentvolumeclaims": "/api/v1/{}persistentvolumeclaims",
    "storageclasses": "/apis/storage.k8s.io/v1/storageclasses",
}
_OF_ACCESS: Final[Mapping[str, Mapping[str, str]]] = {
    "Ingress": {"ingressclasses": "/apis/networking.k8s.io/v1/ingressclasses"},
    "Gateway": {"gateways": "/apis/gateway.networking.k8s.io/v1/gateways"},
}


def read(
    api: Api,
    blank: ClusterState,
    namespace: str | None = None,
    *,
    groups: bool = False,
) -> ClusterState:
    """A cluster with its objects. Raises UnreachableError where it stops answering.

    `namespace` is read where this user may not list a kind in all, `groups` asks for what groups
    may do besides.
    """
    # No list, and asked for as one: credentials that are not accepted are told of alike.
    _, refused = api.lists({"version": "/version"}, 1)
    for error in refused.values():
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise UnreachableError(f"it answers {error}")
    optional = _optional(blank)
    paths = {**READS, **(_OF_GROUPS if groups else {}), **optional}
    if blank.wanted.monitoring:
        paths["podmonitors"] = _OF_MONITORING
    objects, refused = api.lists(paths, AT_ONCE)
    if namespace is not None:
        denied = [kind for kind, it in refused.items() if it.status == HTTPStatus.FORBIDDEN]
        inside = {kind: paths[kind] for kind in denied if "{}" in paths[kind]}
        own, still = api.lists(inside, AT_ONCE, namespace)
        if "namespaces" in denied:
            with suppress(RefusedError):
                own["namespaces"] = [api.get(f"{paths['namespaces']}/{namespace}")]
        objects |= own
        refused = {kind: still.get(kind, it) for kind, it in refused.items() if kind not in own}
    unreadable = {
        kind: str(error)
        for kind, error in refused.items()
        if error.status != HTTPStatus.NOT_FOUND and kind not in optional
    }
    if not objects and not unreadable:
        raise UnreachableError("what answers there is no Kubernetes API")
    return replace(blank, objects=objects, unreadable=unreadable, now=datetime.now(UTC))


def _optional(blank: ClusterState) -> dict[str, str]:
    """What is read for a cause alone."""
    if blank.name != HOST:
        return {}
    types = {team.access.type for team in blank.wanted.teams if team.access is not None}
    of_access = {kind: path for it in types for kind, path in _OF_ACCESS.get(it, {}).items()}
    return {**_OF_HOST, **of_access}
