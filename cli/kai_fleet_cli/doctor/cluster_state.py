"""What was read of one API server, and the questions that several checks have about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

from kai_fleet.cluster.tenant_kubeconfig import mending_commands, name_writer
from kai_fleet.kai.keys import KAI_NAMESPACE, RESERVED, SCHEDULER
from kai_fleet.releases import KaiRelease, UnknownVersionError, kai
from kai_fleet.releases.helm_record import Forged
from kai_fleet_cli.doctor.declared import DeclaredCluster, DeclaredTeam
from kai_fleet_cli.doctor.finding import Finding, Health
from kai_fleet_cli.doctor.objects import (
    Object,
    image_tag,
    name_of,
    namespace_of,
    seconds_since,
    spec,
    when,
)
from kai_fleet_cli.usage.counting import ClusterUsage, count
from kai_fleet_cli.usage.pods import PodUse
from kai_fleet_cli.usage.reading import ClusterObjects

RESERVATIONS: Final = "kai-resource-reservation"
OF_ITS_STACK: Final = "an update of its stack"
_SCHEDULERS: Final = ("scheduler", "kai-scheduler-")


@dataclass(frozen=True)
class ClusterState:
    """One API server as its answers show it.

    `objects` are by the plural name of their kind; a kind that is not served, or that this user
    may not read, is not in it, and the latter is in `unreadable`. `update` says, for a sentence,
    what makes the stack as declared; `kubectl` how this cluster is asked by hand.
    """

    name: str
    wanted: DeclaredCluster = field(default_factory=DeclaredCluster)
    objects: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    update: str = OF_ITS_STACK
    kubectl: str = "kubectl"

    @property
    def helm(self) -> str:
        """How Helm is asked about this cluster, as kubectl is."""
        return self.kubectl.replace("kubectl", "helm", 1).replace(" --context ", " --kube-context ")

    def deleted(self, pods: Sequence[Object]) -> str:
        """The commands that delete these pods: one for each namespace, in backticks."""
        by_namespace: dict[str, list[str]] = {}
        for pod in pods:
            by_namespace.setdefault(namespace_of(pod), []).append(name_of(pod))
        return ", ".join(
            f"`{self.kubectl} -n {namespace} delete pod {' '.join(names)}`"
            for namespace, names in by_namespace.items()
        )

    def all(self, kind: str) -> Sequence[Object]:
        """The objects of a kind; none where it is not served."""
        return self.objects.get(kind, ())

    def named(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """One object of a kind, the first of that name where no namespace is said."""
        found = self._by_name.get((kind, name), ())
        return next((it for it in found if namespace in (None, namespace_of(it))), None)

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], list[Object]]:
        found: dict[tuple[str, str], list[Object]] = defaultdict(list)
        for kind, items in self.objects.items():
            for item in items:
                found[kind, name_of(item)].append(item)
        return found

    @cached_property
    def usage(self) -> ClusterUsage:
        """Who holds what here, and who waits."""
        return count(ClusterObjects(self.objects))

    @cached_property
    def uses(self) -> Mapping[tuple[str, str], PodUse]:
        """The pods that hold something or wait, by namespace and name."""
        return {(pod.namespace, pod.name): pod for pod in self.usage.pods}

    def within(self, kind: str, namespace: str) -> Iterator[Object]:
        """The objects of a kind in one namespace."""
        return (item for item in self.all(kind) if namespace_of(item) == namespace)

    @property
    def kai(self) -> KaiRelease | None:
        """The KAI that is wanted, else the one that runs, as the release table knows it."""
        if self.wanted.declared:
            return self.wanted.release
        running = self.running_version
        try:
            return kai(running, untested=True) if running else None
        except UnknownVersionError:
            return None

    @property
    def running_version(self) -> str | None:
        """The version of the KAI that runs, by the image of its operator or scheduler."""
        for name in ("kai-operator", "scheduler", "kai-scheduler-default", "binder"):
            item = self.named("deployments", name, KAI_NAMESPACE)
            if item is not None:
                return image_tag(item)
        return None

    @property
    def schedulers(self) -> list[str]:
        """The deployments that are KAI schedulers."""
        return [
            name_of(item)
            for item in self.within("deployments", KAI_NAMESPACE)
            if name_of(item) == _SCHEDULERS[0] or name_of(item).startswith(_SCHEDULERS[1])
        ]

    @property
    def user_pods(self) -> list[Object]:
        """The pods that are not Kubernetes', KAI's or the GPU operator's own."""
        return [pod for pod in self.all("pods") if namespace_of(pod) not in RESERVED]

    @property
    def kai_pods(self) -> list[Object]:
        """The pods that KAI is to schedule."""
        return [pod for pod in self.user_pods if spec(pod).get("schedulerName") == SCHEDULER]

    def events_of(self, item: Object, kind: str = "events") -> list[Object]:
        """The events about one object, oldest first: warnings, or those of kind `bound`."""
        uid = item["metadata"].get("uid")
        found = [
            event
            for event in self._about.get((kind, name_of(item)), ())
            if (about := event.get("involvedObject") or {})
            and (
                about.get("uid") == uid
                if uid and about.get("uid")
                else about.get("name") == name_of(item)
                and about.get("namespace", namespace_of(item)) == namespace_of(item)
            )
        ]
        return sorted(found, key=when)

    @cached_property
    def _about(self) -> Mapping[tuple[str, str], list[Object]]:
        found: dict[tuple[str, str], list[Object]] = defaultdict(list)
        for kind in ("events", "bound"):
            for event in self.all(kind):
                name = (event.get("involvedObject") or {}).get("name")
                found[kind, str(name)].append(event)
        return found

    def age(self, item: Object) -> float:
        """Seconds since an object was made."""
        return seconds_since(item["metadata"].get("creationTimestamp"), self.now)

    def filled_in(self, text: str) -> str:
        """A text of `known_messages` with this cluster's places named."""
        wanted = self.wanted
        for place, name in (
            ("{key}", wanted.key),
            ("{queues}", wanted.queues_key),
            ("{update}", self.update),
            ("{kubectl}", self.kubectl),
        ):
            text = text.replace(place, name)
        return text

    def broken(self, check: str, subject: str, cause: str, fix: str, same: str = "") -> Finding:
        """Something that does not work."""
        return Finding(check, Health.BROKEN, self.name, subject, cause, fix, same=same)

    def warning(self, check: str, subject: str, cause: str, fix: str) -> Finding:
        """Something that may not work, or not for long."""
        return Finding(check, Health.WARNING, self.name, subject, cause, fix)

    def well(self, check: str, subject: str) -> Finding:
        """Something that was looked at and is well."""
        return Finding(check, Health.OK, self.name, subject)


@dataclass(frozen=True)
class TeamState:
    """A team's vCluster from outside, and its inside where its API answered.

    `unreached` says why it did not; `foreign`: because somebody else than the vCluster wrote its
    Secret. `certificate_ends` is the end of the client certificate.
    `update` is what makes the team's own stack as declared, where it has one. `records` are Helm's
    of the vCluster's release that its chart did not make; None where they were not looked at.
    """

    wanted: DeclaredTeam
    inside: ClusterState | None = None
    unreached: str = ""
    certificate_ends: datetime | None = None
    update: str = ""
    foreign: bool = False
    records: Sequence[Forged] | None = None


@dataclass(frozen=True)
class Snapshot:
    """Everything that one run of the doctor read."""

    host: ClusterState
    teams: Mapping[str, TeamState] = field(default_factory=dict)

    @property
    def foreign(self) -> list[str]:
        """Of each team whose way in somebody else wrote: what is there, and what mends it."""
        return [
            f"team {name}: {team.unreached}. {name_writer(name)}. Have it written again: "
            + " and ".join(mending_commands(name, team.wanted.namespace, self.host.kubectl))
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

    def own_pods(self, cluster: ClusterState) -> list[Object]:
        """The users' pods of a cluster, each of which is in one cluster only."""
        copied = self.copied(cluster)
        return [pod for pod in cluster.user_pods if namespace_of(pod) not in copied]

    def scheduling(self, cluster: ClusterState) -> ClusterState:
        """The cluster whose KAI places the pods of this one: the host's in host mode."""
        team = self.teams.get(cluster.name)
        if team is None or cluster is self.host:
            return cluster
        if team.wanted.declared:
            return self.host if team.wanted.mode == "host" else cluster
        return self.host if cluster.kai is None and self.host.kai is not None else cluster
