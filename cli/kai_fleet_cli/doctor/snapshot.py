"""The objects read from a stack's clusters, and look-ups that several checks share."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from itertools import islice
from typing import Any

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.store_use import StoreUse
from kai_fleet.releases import KaiRelease
from kai_fleet_cli.doctor.required import Required
from kai_fleet_policies.finding import Command, Fix
from kai_fleet_policies.model.cluster import HOST, ClusterModel, DeclaredTeam
from kai_fleet_policies.model.installed import Kai
from kai_fleet_policies.model.queues import DeclaredQueue, QueueIndex
from kai_fleet_stack.settings import Settings
from kai_usage.cluster_usage import ClusterUsage, count
from kai_usage.deployments import is_scheduler, kai_version
from kai_usage.keys import KAI_NAMESPACE, RESERVED
from kai_usage.pods import Pod
from kai_usage.scheduling import PodSurroundings, claims_of, surroundings_of
from kai_usage.times import seconds_since

_ObjectKey = tuple[str, str, str | None]  # resource, name and namespace
_UNSCHEDULED = "FailedScheduling"  # the reason of a scheduler's event
_EVENTS = 20  # of one object: checks judge the newest ones
_CONTROL_PLANES = ("vcluster", "vcluster-etcd")  # values of the label app
_FORBIDDEN = str(HTTPStatus.FORBIDDEN.value)
_BUSY = str(HTTPStatus.TOO_MANY_REQUESTS.value)
UPDATE = Command("pulumi up")
# The resources that tell what pods hold and wait for.
COUNTED = ("deployments", "nodes", "pods", "podgroups", "queues")
Objects = Mapping[str, Sequence[Mapping[str, Any]]]  # JSON, by resource: `pods`, `nodes`


class UnreadError(Exception):
    """A check asked for a list that this run did not read, so its result is unknown.

    `resource` is the list, such as `pods`. `why` begins with the HTTP status of the answer if there
    was one; 403 and 429 choose the words of the message. The message is a clause without a cluster:
    `this user may not list pods there (403 Forbidden)`.
    """

    def __init__(self, resource: str, why: str) -> None:
        subject = "its API server does not"
        if why.startswith(_FORBIDDEN):
            subject = "this user may not"
        elif why.startswith(_BUSY):
            subject = "its API server is too busy to"
        super().__init__(f"{subject} list {resource} there ({why})")


@dataclass(frozen=True)
class Cluster:
    """One API server with the objects read from it.

    A method or property that looks at objects raises UnreadError if their resource was not read,
    and one of MALFORMED if an object is malformed. `unread` and `around` return why a resource was
    not read. Look-ups are kept: `objects` must not change later.

    Args:
        name: `host`, or the team whose vCluster it is.
        desired: What the stack declares in it.
        objects: Objects by resource, a key of `reads.yaml` or `apiservices`. A resource that the
            API does not serve has an empty list. One that was refused or not asked for has none.
        unreadable: Why a resource was not read, by resource: HTTP status and reason. Refused
            `apiservices` are not in it.
        now: The time of the read, by the clock of this machine.
        update_command: The command for an update that corrects a change made by hand.
        kubectl: The kubectl command for the cluster.
        unserved: The resources that the API does not serve.
        partial: By resource the namespace that it was read from, if not from all.
        host_kubectl: The kubectl command for the host, which has the cluster's nodes.
    """

    name: str
    desired: ClusterModel = field(default_factory=ClusterModel)
    objects: Objects = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    update_command: Command = UPDATE
    kubectl: str = "kubectl"
    unserved: frozenset[str] = frozenset()
    partial: Mapping[str, str] = field(default_factory=dict)
    host_kubectl: str = "kubectl"

    def require(self, resource: str, namespace: str | None = None) -> None:
        """Raise UnreadError unless a resource was read in a namespace, or in all for None."""
        if resource in self.unreadable:
            raise UnreadError(resource, self.unreadable[resource])
        if resource not in self.objects:
            raise UnreadError(resource, "it was not asked for them")
        if resource in self.partial and self.partial[resource] != namespace:
            raise UnreadError(
                resource, f"{_FORBIDDEN} outside of namespace {self.partial[resource]}"
            )

    def unread(self, *resources: str) -> str:
        """Return the message of UnreadError for the first of these that was not read in all
        namespaces; "" if all were.

        One namespace is not enough, and a resource that was not asked for was not read.
        """
        try:
            for resource in resources:
                self.require(resource)
        except UnreadError as error:
            return str(error)
        return ""

    def serves(self, resource: str) -> bool:
        """Whether the API serves a resource. One namespace that was read is enough to tell.

        Raises UnreadError if the resource was not read at all.
        """
        self.require(resource, self.partial.get(resource))
        return resource not in self.unserved

    @property
    def apply_command(self) -> Command:
        """The command that applies an edit of the stack file: an update without `--refresh`."""
        return Command(self.update_command.line.replace(" --refresh", ""))

    @property
    def helm(self) -> str:
        """The helm command for the cluster, with the same kubeconfig and context as `kubectl`."""
        return self.kubectl.replace("kubectl", "helm", 1).replace(" --context ", " --kube-context ")

    def command(self, arguments: str) -> Command:
        """Return the command of kubectl with these arguments, which the caller has quoted.

        They may have the markers of `faults.py`, such as NAME.
        """
        return Command(f"{self.kubectl} {arguments}")

    def recreate_release(self, release: str, namespace: str) -> Fix:
        """Return a fix that creates missing objects of a Helm release again: no update does it."""
        at = f"-n {namespace}"
        manifest = f"{self.helm} {at} get manifest {release}"
        command = Command(f"{manifest} | {self.kubectl} {at} apply -f -")
        return ("make it again as the release has it: ", command)

    def all(self, resource: str) -> Sequence[KubeObject]:
        """Return the objects of a resource in all namespaces."""
        self.require(resource)
        return self._by_resource[resource]

    def find(self, resource: str, name: str, namespace: str | None = None) -> KubeObject | None:
        """Return the object of that name; None without any.

        Without `namespace` it is the first one in all namespaces, or the cluster-scoped one. For
        `namespaces` it is enough that the Namespace of this name was read.
        """
        self.require(resource, name if resource == "namespaces" else namespace)
        return self._by_name.get((resource, name, namespace))

    def within(self, resource: str, namespace: str) -> Iterator[KubeObject]:
        """Return an iterator over the objects of a resource in one namespace.

        The call itself raises UnreadError; the iteration raises one of MALFORMED.
        """
        self.require(resource, namespace)
        return (item for item in self._by_resource[resource] if item.namespace == namespace)

    def around(
        self, pod: KubeObject, nodes_of: "Cluster", pool: Mapping[str, str]
    ) -> PodSurroundings:
        """Return the objects around a pod without a node, or only why they were not read.

        Claims and volumes are empty for a pod that mounts no claim.

        Args:
            pod: A pod of this cluster.
            nodes_of: The cluster to take nodes from.
            pool: Labels of the nodes that the pod may use; empty for all nodes.
        """
        claims: Iterable[KubeObject] = ()
        volumes: Sequence[KubeObject] = ()
        try:
            nodes = nodes_of.all("nodes")
            if any(claims_of(pod)):
                claims = self.within("persistentvolumeclaims", pod.namespace)
                volumes = self.all("persistentvolumes")
        except UnreadError as error:
            return PodSurroundings(unread=str(error))
        return surroundings_of(pod, nodes, pool, claims, volumes)

    @cached_property
    def _by_resource(self) -> Mapping[str, Sequence[KubeObject]]:
        """All objects by resource. One resource that is no list of mappings raises for all."""
        return {resource: [*map(KubeObject, items)] for resource, items in self.objects.items()}

    @cached_property
    def _by_name(self) -> Mapping[_ObjectKey, KubeObject]:
        """Objects by resource, name and namespace; the first of a name also with None."""
        by_name = dict[_ObjectKey, KubeObject]()
        for resource, objects in self._by_resource.items():
            for item in objects:
                by_name.setdefault((resource, item.name, item.namespace), item)
                by_name.setdefault((resource, item.name, None), item)
        return by_name

    @cached_property
    def usage(self) -> ClusterUsage:
        """The pods, nodes and queues with the GPUs that pods hold and wait for, and KAI's version.

        Raises UnreadError unless all of COUNTED were read in all namespaces. Pods that have ended,
        and those in RESERVED, are not among `pods`.
        """
        return count({resource: self.all(resource) for resource in COUNTED})

    def gpus_held_in(self, namespace: str) -> float:
        """Return the GPUs that the pods of a namespace hold, as queues count them: shares as
        fractions, MIG slices as GPUs. Pods of other schedulers count. Raises what `usage` raises.
        """
        pods = (pod for pod in self.usage.pods if pod.namespace == namespace)
        return sum(pod.gpu_amount for pod in pods if not pod.waits)

    @property
    def queues(self) -> list[DeclaredQueue]:
        """The Queue objects of the cluster, as queues of the rules' model."""
        return [DeclaredQueue.of(queue.name, queue.spec) for queue in self.all("queues")]

    @cached_property
    def tree(self) -> QueueIndex:
        """The queues of the cluster, and those that the stack declares.

        A queue that is in both is as the cluster has it.
        """
        return QueueIndex((*self.queues, *self.desired.queues))

    @cached_property
    def pod_uses(self) -> Mapping[str, Pod]:
        """What each pod of `usage` holds or waits for, by `NAMESPACE/NAME`. Raises as `usage`."""
        return {pod.namespaced_name: pod for pod in self.usage.pods}

    @property
    def kai(self) -> KaiRelease | None:
        """Release of the cluster's KAI; None without one, or if the table lacks its version.

        That is the declared KAI, whether it runs or not; the running one only if another stack
        declares the cluster. Only that one needs a list, `deployments`, and if it is newer than the
        table it has the entry of a known version.
        """
        if self.desired.declared:
            return self.desired.scheduler.release
        return Kai(self.version, untested=True).release

    @property
    def version(self) -> str | None:
        """The version of the KAI that runs; None if none runs or its image has no tag."""
        return kai_version(self.within("deployments", KAI_NAMESPACE))

    @cached_property
    def most_gpus(self) -> float:
        """The most of the declared GPU resource that one Ready node advertises, cordoned or not.

        0 without such a node.
        """
        resource = self.desired.gpu_resource
        ready = (node for node in self.all("nodes") if node.is_true("Ready"))
        return max((node.gpus(resource) for node in ready), default=0.0)

    @cached_property
    def schedulers(self) -> list[KubeObject]:
        """The Deployments in KAI's namespace that are KAI schedulers by their names."""
        return list(filter(is_scheduler, self.within("deployments", KAI_NAMESPACE)))

    def events_of(self, item: KubeObject) -> list[KubeObject]:
        """Return the last 20 warnings and Bound events about one object, the newest first.

        Events with another UID are left out: those about an earlier object of the same name, or
        about another kind. An event without a UID counts for each kind, and for an object without a
        UID all events of its name count.
        """
        uid = item["metadata"].get("uid")
        events = self._events[item.namespace, item.name]
        about_item = (
            event for event in events if uid in (None, event["involvedObject"].get("uid", uid))
        )
        return list(islice(about_item, _EVENTS))

    @cached_property
    def _events(self) -> defaultdict[tuple[str, str], list[KubeObject]]:
        """Events by namespace and name of their object, the newest first.

        Those of both lists of events; each must have been read in all namespaces.
        """
        by_object = defaultdict[tuple[str, str], list[KubeObject]](list)
        events = [*self.all("events"), *self.all("bound")]
        for event in sorted(events, key=lambda event: event.last_seen, reverse=True):
            if about := event.get("involvedObject"):
                namespace = about.get("namespace", event.namespace)
                by_object[namespace, str(about.get("name"))].append(event)
        return by_object

    def messages_of(self, *objects: KubeObject) -> list[str]:
        """Return the messages about objects in this order: of each its events, then its status.

        Without events in which a scheduler says why a pod has no node, if it has one by now, and
        without "".
        """
        messages = list[str]()
        for item in objects:
            has_node = bool(item.spec.get("nodeName"))
            for event in self.events_of(item):
                if not has_node or event.get("reason") != _UNSCHEDULED:
                    messages.append(str(event.get("message") or ""))
            messages.extend(item.messages)
        return [message for message in messages if message]

    def age_seconds(self, item: KubeObject) -> float:
        """Return the seconds from an object's creation until `now`; 0 if that is unknown.

        Negative if the API server's clock is ahead of this machine's.
        """
        return seconds_since(item["metadata"].get("creationTimestamp"), self.now)


@dataclass(frozen=True)
class TeamState:
    """A team's vCluster as the host shows it, and its inside if its API server answered.

    Args:
        team: What the stack declares for the team.
        inside: The cluster in the vCluster; None if it was not read, and before an update.
        unreached: Why its API server was not reached, its kubeconfig not used or its answers not
            taken, as a clause. "" if `inside` was read, and if it was not asked: before an update,
            or if another stack declares it.
        certificate_ends: When the client certificate expires; None if unknown.
        foreign: Somebody else than the vCluster wrote its kubeconfig Secret.
        hidden: Its Secret or its Service on the host could not be read; `unreached` says why.
        store: How full its store is; empty if the host does not tell.
        kubeconfig: The one that its inside is read with, a secret; "" if there is none.
    """

    team: DeclaredTeam
    inside: Cluster | None = None
    unreached: str = ""
    certificate_ends: datetime | None = None
    foreign: bool = False
    hidden: bool = False
    store: StoreUse = field(default_factory=StoreUse)
    kubeconfig: str = field(default="", repr=False)

    @property
    def declared_elsewhere(self) -> bool:
        """Whether another stack declares the vCluster, and this one its namespace and bounds."""
        return not self.team.inside.declared

    def control_plane_pods(self, host: Cluster) -> list[KubeObject]:
        """Return the pods of the vCluster's API server and etcd, by labels that its chart writes.

        Raises UnreadError if the host's pods were not read in its namespace, and one of MALFORMED.
        """
        return [
            pod
            for pod in host.within("pods", self.team.namespace)
            if pod.labels.get("release") == self.team.name
            and pod.labels.get("app") in _CONTROL_PLANES
        ]


@dataclass(frozen=True)
class Snapshot:
    """Everything that one run read.

    Args:
        settings: The settings of the stack.
        host: The host cluster.
        teams: The state of each team that this run looks at, by its name; grants are among them.
        required: Objects that have to exist in the clusters.
        update_command: The command for an update of what is in vClusters.
        lost: What is lost in each vCluster that is another one than the last update saw, in words,
            by team.
        before_update: Only the host was read, before an update: what the update creates may be
            missing.
    """

    settings: Settings
    host: Cluster
    teams: Mapping[str, TeamState] = field(default_factory=dict)
    required: Sequence[Required] = ()
    update_command: Command = UPDATE
    lost: Mapping[str, str] = field(default_factory=dict)
    before_update: bool = False

    @property
    def sees_whole_host(self) -> bool:
        """Whether it has all of the host: a team's own stack sees its namespace there, and the
        nodes of its pool.
        """
        return not self.settings.platform_stack

    @property
    def insides(self) -> list[Cluster]:
        """The clusters in the vClusters that answered, and whose answers were taken."""
        return [state.inside for state in self.teams.values() if state.inside is not None]

    @property
    def clusters(self) -> list[Cluster]:
        """The host, then `insides`."""
        return [self.host, *self.insides]

    def skipped_namespaces(self, cluster: Cluster) -> frozenset[str]:
        """Return RESERVED, and for the host the namespaces of teams whose vCluster answered, too.

        Users' pods of these are read in the vCluster.
        """
        if cluster.name != HOST:
            return RESERVED
        read_inside = [state for state in self.teams.values() if state.inside]
        return RESERVED.union(state.team.namespace for state in read_inside)

    def pods(self, cluster: Cluster) -> list[KubeObject]:
        """Return the users' pods of a cluster, ended ones among them. No pod is in two clusters.

        Raises UnreadError, or one of MALFORMED.
        """
        skipped = self.skipped_namespaces(cluster)
        return [pod for pod in cluster.all("pods") if pod.namespace not in skipped]

    def team_of(self, cluster: Cluster) -> DeclaredTeam | None:
        """Return the team whose vCluster this is; None for the host, or if `teams` lacks it."""
        state = self.teams.get(cluster.name)
        return state.team if state is not None else None

    def around(self, pod: KubeObject, cluster: Cluster) -> PodSurroundings:
        """Return the objects around a pod: the host's nodes, for a team those of its pool.

        Or only why they were not read. Raises one of MALFORMED.
        """
        team = self.team_of(cluster)
        if team is None:
            return cluster.around(pod, cluster, {})
        return cluster.around(pod, self.host, team.node_pool)

    def scheduling_cluster(self, cluster: Cluster) -> Cluster:
        """Return the cluster whose KAI places the pods of this one: the host in mode host.

        Else the cluster itself, even if it has no KAI.
        """
        team = self.team_of(cluster)
        if team is not None and team.mode == "host":
            return self.host
        return cluster
