"""What was read of one API server, and the questions that several checks have about it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, TypeAlias

from kai_fleet.fleet.cluster import Cluster, Team
from kai_fleet.kube.objects import KubeObject, seconds_since
from kai_fleet.kube.pods import PodUse
from kai_fleet.releases import KaiRelease
from kai_fleet.releases.keys import KAI_NAMESPACE, POD_GROUP, RESERVED, SCHEDULER
from kai_fleet_cli.usage import ClusterUsage, count, running_version
from kai_fleet_cli.waiting.finding import Finding, Health, Reason, meaning

Findings: TypeAlias = Iterator[Finding]
OF_ITS_STACK: Final = "an update of its stack"
_SCHEDULERS: Final = ("scheduler", "kai-scheduler-")


@dataclass(frozen=True)
class ReadCluster:
    """One API server as its answers show it.

    `objects` are by the plural name of their kind; a kind that is not served, or that this user
    may not read, is not in it, and the latter is in `unreadable`. `update` says, for a sentence,
    what makes the stack as declared; `kubectl` how this cluster is asked by hand.
    """

    name: str
    wanted: Cluster = field(default_factory=Cluster)
    objects: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    update: str = OF_ITS_STACK
    kubectl: str = "kubectl"

    @property
    def is_unread(self) -> bool:
        """Whether this user may read nothing of it."""
        return bool(self.unreadable) and not any(self.objects.values())

    @property
    def apply(self) -> str:
        """What has an edit of the stack file take effect, for a sentence."""
        return self.update.replace(" --refresh", "")

    @property
    def helm(self) -> str:
        """How Helm is asked about this cluster, as kubectl is."""
        return self.kubectl.replace("kubectl", "helm", 1).replace(" --context ", " --kube-context ")

    def all(self, kind: str) -> Sequence[KubeObject]:
        """The objects of a kind; none where it is not served."""
        return self._by_kind.get(kind, ())

    def named(self, kind: str, name: str, namespace: str | None = None) -> KubeObject | None:
        """One object of a kind, the first of that name where `namespace` is None."""
        items = self._by_name.get((kind, name), ())
        return next((it for it in items if namespace in (None, it.namespace)), None)

    def within(self, kind: str, namespace: str) -> Iterator[KubeObject]:
        """The objects of a kind in one namespace."""
        return (item for item in self.all(kind) if item.namespace == namespace)

    @cached_property
    def _by_kind(self) -> Mapping[str, Sequence[KubeObject]]:
        return {kind: [KubeObject(it) for it in items] for kind, items in self.objects.items()}

    @cached_property
    def _by_name(self) -> Mapping[tuple[str, str], list[KubeObject]]:
        items: dict[tuple[str, str], list[KubeObject]] = defaultdict(list)
        for kind, of_kind in self._by_kind.items():
            for item in of_kind:
                items[kind, item.name].append(item)
        return items

    @cached_property
    def usage(self) -> ClusterUsage:
        """Who holds what here, and who waits."""
        return count(self._by_kind)

    def use_of(self, pod: KubeObject) -> PodUse | None:
        """What a pod holds or waits for; None for one that is ended, or is Kubernetes' own."""
        return self._uses.get((pod.namespace, pod.name))

    @cached_property
    def _uses(self) -> Mapping[tuple[str, str], PodUse]:
        return {(pod.namespace, pod.name): pod for pod in self.usage.pods}

    @cached_property
    def gpus_by_group(self) -> Mapping[tuple[str, str | None], list[float]]:
        """The GPUs of each pod that names a PodGroup, by namespace and group, the fewest first."""
        amounts: dict[tuple[str, str | None], list[float]] = defaultdict(list)
        for pod in self.all("pods"):
            if name := pod.annotations.get(POD_GROUP):
                use = self.use_of(pod)
                amounts[pod.namespace, name].append(use.amounts.gpu if use is not None else 0.0)
        return {group: sorted(each) for group, each in amounts.items()}

    @property
    def kai(self) -> KaiRelease | None:
        """The KAI that is wanted, else the one that runs, as the release table knows it."""
        return self.wanted.release if self.wanted.declared else self.usage.release

    @property
    def running_version(self) -> str | None:
        """The version of the KAI that runs."""
        return running_version(self.all("deployments"))

    @property
    def schedulers(self) -> list[str]:
        """The deployments that are KAI schedulers."""
        names = [item.name for item in self.within("deployments", KAI_NAMESPACE)]
        return [it for it in names if it == _SCHEDULERS[0] or it.startswith(_SCHEDULERS[1])]

    @property
    def device_plugins(self) -> list[str]:
        """The DaemonSets that advertise NVIDIA's GPUs, as NAMESPACE/NAME."""
        every = self.all("daemonsets")
        return [f"{item.namespace}/{item.name}" for item in every if item.is_device_plugin]

    @property
    def user_pods(self) -> list[KubeObject]:
        """The pods that are not Kubernetes', KAI's or the GPU operator's own."""
        return [pod for pod in self.all("pods") if pod.namespace not in RESERVED]

    @property
    def kai_pods(self) -> list[KubeObject]:
        """The pods that KAI is to schedule."""
        return [pod for pod in self.user_pods if pod.spec.get("schedulerName") == SCHEDULER]

    def events_of(self, item: KubeObject, kind: str = "events") -> list[KubeObject]:
        """The events about one object, oldest first: warnings, or those of kind `bound`."""
        events = self._events.get((kind, item.namespace, item.name), ())
        uid = item["metadata"].get("uid")
        return [it for it in events if not uid or it["involvedObject"].get("uid") in (uid, None)]

    @cached_property
    def _events(self) -> Mapping[tuple[str, str, str], list[KubeObject]]:
        """By kind, and by the namespace and name of what they are about, oldest first."""
        events: dict[tuple[str, str, str], list[KubeObject]] = defaultdict(list)
        for kind in ("events", "bound"):
            for event in sorted(self.all(kind), key=lambda event: event.last_seen):
                if about := event.get("involvedObject"):
                    namespace = about.get("namespace", event.namespace)
                    events[kind, namespace, str(about.get("name"))].append(event)
        return events

    def age(self, item: KubeObject) -> float:
        """Seconds since an object was made."""
        return seconds_since(item["metadata"].get("creationTimestamp"), self.now)

    def explain(self, *texts: str) -> Reason | None:
        """What the first known of the messages means, its fix with this cluster's places."""
        known = next(filter(None, map(meaning, texts)), None)
        if known is None:
            return None
        fix = known.fix.format(
            key=self.wanted.key,
            queues=self.wanted.queues_key,
            update=self.update,
            apply=self.apply,
            kubectl=self.kubectl,
        )
        return known._replace(fix=fix)

    def apply_release(self, release: str, namespace: str) -> str:
        """The command that makes the objects of a Helm release again, in backticks."""
        at = f"-n {namespace}"
        return f"`{self.helm} {at} get manifest {release} | {self.kubectl} {at} apply -f -`"

    def describe(self, kind: str, name: str, namespace: str) -> str:
        """A fix where nobody knows more: the command that shows an object and its events."""
        return f"look with: `{self.kubectl} -n {namespace} describe {kind} {name}`"

    def delete_pods(self, pods: Sequence[KubeObject]) -> str:
        """The commands that delete these pods: one for each namespace, in backticks."""
        by_namespace: dict[str, list[str]] = {}
        for pod in pods:
            by_namespace.setdefault(pod.namespace, []).append(pod.name)
        return ", ".join(
            f"`{self.kubectl} -n {namespace} delete pod {' '.join(names)}`"
            for namespace, names in by_namespace.items()
        )

    def broken(
        self, subject: str, cause: str, fix: str | None = None, same: str = "", check: str = ""
    ) -> Finding:
        """Something that does not work; an update of the stack mends it where `fix` is None.

        `check` is for a finding that does not have its check's name, `same` as in `Finding`.
        """
        fix = self.update if fix is None else fix
        return Finding(check, Health.BROKEN, self.name, subject, cause, fix, same=same)

    def warning(self, subject: str, cause: str, fix: str, *, check: str = "") -> Finding:
        """Something that may not work, or not for long."""
        return Finding(check, Health.WARNING, self.name, subject, cause, fix)

    def well(self, subject: str, *, check: str = "") -> Finding:
        """Something that was looked at and is well."""
        return Finding(check, Health.OK, self.name, subject)

    def or_well(self, findings: Iterable[Finding], subject: str) -> Iterator[Finding]:
        """The findings; where there is none, that the subject is well."""
        problems = list(findings)
        yield from problems or [self.well(subject)]


@dataclass(frozen=True)
class ClusterPods:
    """The users' pods of a cluster, and what decides about them.

    `scheduling` is the cluster whose KAI places them and `host` the one that has the nodes, both
    often the same one. `team` is whose vCluster it is, None for a cluster that is no team's.
    """

    cluster: ReadCluster
    pods: Sequence[KubeObject]
    scheduling: ReadCluster
    host: ReadCluster
    team: Team | None = None
