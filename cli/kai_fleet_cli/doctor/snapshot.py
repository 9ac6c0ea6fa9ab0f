"""The objects read from a stack's clusters, and look-ups that several checks share."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from kai_fleet.cluster.kube.objects import KubeObject, seconds_since
from kai_fleet.cluster.scheduling import Around, around, claims_of
from kai_fleet.cluster.store_use import StoreUse
from kai_fleet.releases import KaiRelease
from kai_fleet.releases.keys import KAI_NAMESPACE, RESERVED
from kai_fleet.settings import Settings
from kai_fleet_cli.doctor.required import Required
from kai_fleet_cli.doctor.usage import ClusterUsage, count, queue_of, version_of
from kai_fleet_policies.model.cluster import HOST, Kai, Team
from kai_fleet_policies.model.cluster import Cluster as Declaration
from kai_fleet_policies.model.pod_use import PodUse
from kai_fleet_policies.model.queues import QueueIndex

_UNSCHEDULED: Final = "FailedScheduling"  # the reason of a scheduler's event
_EVENTS: Final = 20  # of one object that are judged, the last ones
_CONTROL_PLANES: Final = ("vcluster", "vcluster-etcd")  # the label app of a control plane
_MAY_NOT: Final = str(HTTPStatus.FORBIDDEN.value)
_BUSY: Final = str(HTTPStatus.TOO_MANY_REQUESTS.value)


class UnreadError(Exception):
    """A list was asked for that this run has not read. What rests on it is not known.

    `why` begins with the status of the answer, where there was one.
    """

    def __init__(self, kind: str, why: str) -> None:
        self.why = why
        subject = "its API server does not"
        if why.startswith(_MAY_NOT):
            subject = "this user may not"
        elif why.startswith(_BUSY):
            subject = "its API server is too busy to"
        super().__init__(f"{subject} list {kind} there ({why})")


@dataclass(frozen=True)
class Cluster:
    """One API server, by the objects read from it.

    Args:
        name: `host`, or the team whose vCluster it is.
        desired: What the stack declares in it.
        objects: By the plural of their kind. To ask for a kind that is absent here raises
            UnreadError; one that the API does not serve has no objects.
        unreadable: Why a kind was not read: the status of the answer, and its words.
        update: The command that makes the cluster as declared, or words.
        kubectl: The kubectl command for it.
        unserved: The kinds that the API does not have.
        partial: The one namespace of which a kind was read.
        host: The kubectl command for the cluster that has its nodes.
    """

    name: str
    desired: Declaration = field(default_factory=Declaration)
    objects: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    update: str = "an update of its stack"
    kubectl: str = "kubectl"
    unserved: frozenset[str] = frozenset()
    partial: Mapping[str, str] = field(default_factory=dict)
    host: str = "kubectl"

    def require(self, kind: str, namespace: str | None = None) -> None:
        """Raise UnreadError unless a kind was read: all of it, or that of one namespace."""
        if kind in self.unreadable:
            raise UnreadError(kind, self.unreadable[kind])
        if kind not in self.objects:
            raise UnreadError(kind, "it was not asked for them")
        if kind in self.partial and self.partial[kind] != namespace:
            raise UnreadError(kind, f"{_MAY_NOT} outside of namespace {self.partial[kind]}")

    def asked(self, kind: str) -> bool:
        """Whether a kind is one of those that this run asks for."""
        return kind in self.objects or kind in self.unreadable

    def unread(self, *kinds: str) -> str:
        """Why not all of these kinds were read; "" where they were."""
        try:
            for kind in kinds:
                self.require(kind)
        except UnreadError as error:
            return str(error)
        return ""

    def serves(self, kind: str) -> bool:
        """Whether its API has a kind, of which one namespace may be all that was read."""
        self.require(kind, self.partial.get(kind))
        return kind not in self.unserved

    @property
    def apply(self) -> str:
        """The command that applies an edit of the stack file."""
        return self.update.replace(" --refresh", "")

    @property
    def helm(self) -> str:
        """The helm command for it."""
        return self.kubectl.replace("kubectl", "helm", 1).replace(" --context ", " --kube-context ")

    def recreate_release(self, release: str, namespace: str) -> str:
        """The command that creates a Helm release's objects again, which an update does not."""
        at = f"-n {namespace}"
        command = f"{self.helm} {at} get manifest {release} | {self.kubectl} {at} apply -f -"
        return f"make it again as the release has it: `{command}`"

    def all(self, kind: str) -> Sequence[KubeObject]:
        """The objects of a kind, by its plural."""
        self.require(kind)
        return self._by_kind[kind]

    def named(self, kind: str, name: str, namespace: str | None = None) -> KubeObject | None:
        """One object, the first of that name where `namespace` is None."""
        self.require(kind, name if kind == "namespaces" else namespace)
        return self._by_name.get((kind, name, namespace))

    def around(
        self,
        pod: KubeObject,
        nodes_of: "Cluster | None" = None,
        pool: Mapping[str, str] = MappingProxyType({}),
    ) -> Around:
        """What stands around a pod without a node: the nodes of another cluster, or those here, of
        which it may use those of the pool. Where a list of it was not read, only why.
        """
        claims, volumes = list[KubeObject](), list[KubeObject]()
        try:
            every = (nodes_of or self).all("nodes")
            if any(claims_of(pod)):
                claims = [*self.within("persistentvolumeclaims", pod.namespace)]
                volumes = [*self.all("persistentvolumes")]
        except UnreadError as error:
            return Around(unread=str(error))
        return around(pod, every, pool, claims, volumes)

    def within(self, kind: str, namespace: str) -> Iterator[KubeObject]:
        """The objects of a kind in one namespace."""
        self.require(kind, namespace)
        return (item for item in self._by_kind[kind] if item.namespace == namespace)

    @cached_property
    def _by_kind(self) -> Mapping[str, Sequence[KubeObject]]:
        return {kind: [*map(KubeObject, items)] for kind, items in self.objects.items()}

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str, str | None], KubeObject]:
        items: dict[tuple[str, str, str | None], KubeObject] = {}
        for kind, of_kind in self._by_kind.items():
            for item in of_kind:
                items.setdefault((kind, item.name, item.namespace), item)
                items.setdefault((kind, item.name, None), item)
        return items

    @cached_property
    def usage(self) -> ClusterUsage:
        """Who holds what here, and who waits."""
        kinds = ("deployments", "nodes", "pods", "podgroups", "queues")
        return count({kind: self.all(kind) for kind in kinds})

    @cached_property
    def tree(self) -> QueueIndex:
        """The existing queues and the declared ones."""
        return QueueIndex((*map(queue_of, self.all("queues")), *self.desired.queues))

    @cached_property
    def uses(self) -> Mapping[str, PodUse]:
        """What each pod holds or waits for, but for ended ones and Kubernetes' own."""
        return {pod.namespaced_name: pod for pod in self.usage.pods}

    @property
    def kai(self) -> KaiRelease | None:
        """The KAI that is declared, else the one that runs, as the release table knows it."""
        if self.desired.declared:
            return self.desired.scheduler.release
        return Kai(self.version, untested=True).release

    @property
    def version(self) -> str | None:
        """The version of the KAI that runs."""
        return version_of(self.within("deployments", KAI_NAMESPACE))

    @cached_property
    def most_gpus(self) -> float:
        """The most GPUs that one Ready node has; a cordoned one has them when it is uncordoned."""
        ready = [node for node in self.all("nodes") if node.is_true("Ready")]
        return max((node.gpus(self.desired.gpu_resource) for node in ready), default=0.0)

    @cached_property
    def schedulers(self) -> list[KubeObject]:
        """The deployments that are KAI schedulers."""
        names = ("scheduler", "kai-scheduler-")
        parts = self.within("deployments", KAI_NAMESPACE)
        return [item for item in parts if item.name == names[0] or item.name.startswith(names[1])]

    def events_of(self, item: KubeObject) -> list[KubeObject]:
        """The last events about one object, the newest first."""
        uid, events = item["metadata"].get("uid"), self._events[item.namespace, item.name]
        own = (each for each in events if uid in (None, each["involvedObject"].get("uid", uid)))
        return list(islice(own, _EVENTS))

    @cached_property
    def _events(self) -> defaultdict[tuple[str, str], list[KubeObject]]:
        events = defaultdict[tuple[str, str], list[KubeObject]](list)
        every = [*self.all("events"), *self.all("bound")]
        for event in sorted(every, key=lambda event: event.last_seen, reverse=True):
            if about := event.get("involvedObject"):
                namespace = about.get("namespace", event.namespace)
                events[namespace, str(about.get("name"))].append(event)
        return events

    def messages_of(self, *items: KubeObject) -> list[str]:
        """The messages about pods or their owners: the last events first, then their own status.

        What a scheduler said of a pod that has a node by now is over.
        """
        texts: list[str] = []
        for item in items:
            is_placed = bool(item.spec.get("nodeName"))
            for event in self.events_of(item):
                if not is_placed or event.get("reason") != _UNSCHEDULED:
                    texts.append(str(event.get("message") or ""))
            texts += item.messages
        return [text for text in texts if text]

    def age(self, item: KubeObject) -> float:
        """Seconds since an object was created."""
        return seconds_since(item["metadata"].get("creationTimestamp"), self.now)


@dataclass(frozen=True)
class TeamState:
    """A team's vCluster from outside, and its inside where its API answered.

    Args:
        unreached: Why it did not answer.
        hidden: Because the way to it could not be read on the host.
        foreign: Because somebody else than the vCluster wrote its Secret.
        certificate_ends: When the client certificate expires.
        store: How full its store is, as far as the host tells.
    """

    team: Team
    inside: Cluster | None = None
    unreached: str = ""
    certificate_ends: datetime | None = None
    foreign: bool = False
    hidden: bool = False
    store: StoreUse = field(default_factory=StoreUse)

    @property
    def granted(self) -> bool:
        """Whether another stack makes the vCluster, and this one its namespace and bounds."""
        return not self.team.inside.declared

    def control_plane_pods(self, host: Cluster) -> Iterator[KubeObject]:
        """The pods of the vCluster itself, not those that run in it."""
        pods = host.within("pods", self.team.namespace)
        own = (pod for pod in pods if pod.labels.get("release") == self.team.name)
        return (pod for pod in own if pod.labels.get("app") in _CONTROL_PLANES)


@dataclass(frozen=True)
class Snapshot:
    """Everything that one run read. `update` is the command for what is inside vClusters.

    `lost` is what was in vClusters that are other ones than the last update saw, by team.
    """

    settings: Settings
    host: Cluster
    teams: Mapping[str, TeamState] = field(default_factory=dict)
    required: Sequence[Required] = ()
    update: str = "an update of its stack"
    lost: Mapping[str, str] = field(default_factory=dict)
    ahead: bool = False  # it was read before an update, and of the host alone

    @property
    def clusters(self) -> list[Cluster]:
        """Every API server that answered, the host first."""
        return [self.host, *(team.inside for team in self.teams.values() if team.inside)]

    def apart(self, cluster: Cluster) -> frozenset[str]:
        """The namespaces that are no user's, or whose pods are read inside their vClusters."""
        read = (state.team.namespace for state in self.teams.values() if state.inside)
        return RESERVED | frozenset(read if cluster.name == HOST else ())

    def pods(self, cluster: Cluster) -> list[KubeObject]:
        """The users' pods of a cluster; each pod belongs to one cluster."""
        apart = self.apart(cluster)
        return [pod for pod in cluster.all("pods") if pod.namespace not in apart]

    def team_of(self, cluster: Cluster) -> Team | None:
        """The team whose vCluster this is; None for the host."""
        state = self.teams.get(cluster.name)
        return state.team if state is not None else None

    def around(self, pod: KubeObject, cluster: Cluster) -> Around:
        """What stands around a pod of a cluster: of a team, the host's nodes of its pool."""
        team = self.team_of(cluster)
        if team is None:
            return cluster.around(pod)
        return cluster.around(pod, self.host, team.node_pool)

    def scheduling(self, cluster: Cluster) -> Cluster:
        """The cluster whose KAI places the pods of this one: the host's in host mode."""
        team = self.team_of(cluster)
        return self.host if team is not None and team.mode == "host" else cluster
