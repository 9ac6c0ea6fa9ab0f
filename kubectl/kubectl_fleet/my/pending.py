"""`fleet my pending`: why each pod waits, and what would have to happen, in the doctor's words."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_fleet.declared.queues import DeclaredQueue
from kubectl_fleet.kube.text import plain
from kubectl_fleet.live.finding import Reason
from kubectl_fleet.live.objects import KubeObject
from kubectl_fleet.my.bars import Glyphs
from kubectl_fleet.my.view import View
from kubectl_fleet.releases import KAI
from kubectl_fleet.rules.judged import JudgedCluster, JudgedKai
from kubectl_fleet.usage.amounts import SLACK, UNLIMITED, Resource, in_words, rounded, short
from kubectl_fleet.usage.pods import PodUse
from kubectl_fleet.usage.queues import QueueUse, upwards
from kubectl_fleet.waiting import pending, pod_groups, rule_violations
from kubectl_fleet.waiting.read_cluster import ClusterPods
from kubectl_fleet.waiting.refused import owner_of, refusals

_RESOURCES: Final[tuple[Resource, ...]] = ("gpu", "cpu", "memory")


@dataclass(frozen=True)
class PendingPod:
    """A pod that waits, why, and what would have to happen.

    `standing` is a sentence about the quotas of its queue and of those above it, and `guaranteed`
    whether they have as much left as it asks for; None where nothing bounds it.
    """

    pod: PodUse
    cause: str
    fix: str
    guaranteed: bool | None = None
    standing: str | None = None

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "namespace": self.pod.namespace,
            "name": self.pod.name,
            "queue": self.pod.queue,
            "created": self.pod.created,
            **asdict(self.pod.amounts),
            "cause": self.cause,
            "fix": self.fix,
            "guaranteed": self.guaranteed,
            "standing": self.standing,
        }


@dataclass(frozen=True)
class DeniedPods:
    """What makes pods that are denied, so that there are none; why, and what would have to happen.

    `since` is a time stamp.
    """

    kind: str
    name: str
    namespace: str
    cause: str
    fix: str
    since: str = ""


def record(view: View) -> dict[str, Any]:
    """The JSON."""
    of = _pods_of(view)
    return {
        **view.record(),
        "pending": [each.record() for each in _waiting(view, of)],
        "denied": [asdict(each) for each in _denied(view, of)],
    }


def show(view: View, glyphs: Glyphs) -> RenderableType:
    """As a table of 80 columns, or as many as there are."""
    of = _pods_of(view)
    pods, without = _waiting(view, of), _denied(view, of)
    if not pods and not without:
        return Group() if view.blind else Text("no pod waits")
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("pod", overflow="fold", ratio=2)
    table.add_column("asks for", overflow="fold", ratio=1)
    table.add_column("since", justify="right", no_wrap=True)
    table.add_column("why, and what would have to happen", overflow="fold", ratio=5)
    for each in pods:
        asks = "\n".join(_requests(each.pod)) or "-"
        queue = f"queue {each.pod.queue}" if each.pod.queue else ""
        standing = f"{each.standing}\n" if each.standing else ""
        name, since = view.name(each.pod.name, each.pod.namespace), view.age(each.pod.created)
        why = f"{each.cause}\n{glyphs.arrow} {each.fix}\n{standing}"
        table.add_row(_two(name, queue), asks, since, Text(why))
    for none in without:
        name = view.name(none.name, none.namespace)
        why = f"{none.cause}\n{glyphs.arrow} {none.fix}\n"
        table.add_row(_two(name, none.kind), "no pod", view.age(none.since), Text(why))
    return Group(table)


def _two(name: str, below: str) -> Text:
    return Text.assemble((name, "bold"), (f"\n{below}" if below else "", "dim"))


def _waiting(view: View, of: ClusterPods) -> list[PendingPod]:
    """The pods that are not started, those that wait longest first."""
    items = {it.pod_subject: it for it in of.cluster.all("pods")}
    reasons = _reasons(view, of)
    pods = []
    for pod in view.pods:
        if pod.phase != "Pending" or pod.ending or (pod.node and pod.subject not in reasons):
            continue
        cause, fix = reasons.get(pod.subject) or _otherwise(view, pod, items[pod.subject])
        about = _guarantee(view.usage.queues, pod) if pod.waits else (None, None)
        pods.append(PendingPod(pod, cause, fix, *about))
    return sorted(pods, key=lambda each: (each.pod.created, each.pod.namespace, each.pod.name))


def _denied(view: View, of: ClusterPods) -> list[DeniedPods]:
    """What could not make its pods, of which the others know nothing."""
    cluster, every = of.cluster, dict[tuple[str, str, str], DeniedPods]()
    for refusal in refusals(of):
        if refusal.kind == "Pod" or not view.shows(refusal):
            continue
        look = cluster.describe(refusal.kind, refusal.name, refusal.namespace)
        reason = cluster.explain(refusal.text) or Reason(refusal.text, look)
        place = (*owner_of(cluster, refusal), refusal.namespace)
        every[place] = DeniedPods(*place, plain(reason.cause), plain(reason.fix), refusal.since)
    return sorted(every.values(), key=lambda each: (each.since, each.namespace, each.name))


def _reasons(view: View, of: ClusterPods) -> dict[str, tuple[str, str]]:
    """The first finding about each pod, as cause and fix, by its subject."""
    reasons: dict[str, tuple[str, str]] = {}
    started = {pod.subject for pod in view.usage.pods if not pod.waits}
    groups = pod_groups.check(of.cluster) if of.cluster.kai is not None else ()
    judged = ((rule_violations.check(of), False), (pending.check(of), True), (groups, False))
    for findings, also_started in judged:
        for finding in findings:
            # Of those only why they do not start: how they were placed is over.
            if also_started or finding.subject not in started:
                reasons.setdefault(finding.subject, (finding.cause, finding.fix))
    return reasons


def _pods_of(view: View) -> ClusterPods:
    """The cluster and its pods as they are judged, with words for what a team does not have."""
    unreadable = dict(view.cluster.unreadable)
    if not view.schedules_here:  # the KAI of the host: whether it serves is not seen here
        unreadable |= dict.fromkeys(("deployments", "queues", "podgroups"), "on the host")
    # Who may not see which KAI runs gets the words of the newest: queues say that there is one.
    unseen = "deployments" in view.cluster.unreadable and view.schedules_here
    wanted = JudgedCluster(
        declared=unseen,
        kai=(JudgedKai(list(KAI)[-1]),) if unseen else (),
        queues=tuple(DeclaredQueue(it.name, spec=it.spec) for it in view.cluster.all("queues")),
        key="your team in the platform's stack file",
        queues_key="your team's queues in the platform's stack file",
    )
    cluster = replace(view.cluster, wanted=wanted, unreadable=unreadable)
    return ClusterPods(cluster, cluster.user_pods, cluster, cluster)


def _otherwise(view: View, pod: PodUse, item: KubeObject) -> tuple[str, str]:
    """Nothing is known to be wrong: it is new, or whoever schedules it says nothing here."""
    if gates := item.spec.get("schedulingGates"):
        names = ", ".join(str(gate.get("name")) for gate in gates)
        return f"its scheduling gates are closed: {names}", "whoever set them has to open them"
    if view.age(pod.created).endswith("s"):
        return "it was made a moment ago", "wait a minute"
    look = view.cluster.describe("pod", pod.name, pod.namespace)
    return "nothing that may be read here says why", look


def _requests(pod: PodUse) -> Iterator[str]:
    for resource in _RESOURCES:
        if resource == "gpu" and pod.gpu.mebibytes is not None:
            many = f" on {pod.gpu.devices} GPUs" if pod.gpu.devices > 1 else ""
            yield f"{pod.gpu.mebibytes} MiB of a GPU{many}"
        elif amount := pod.amounts.of(resource):
            yield in_words(resource, amount)


def _guarantee(queues: Mapping[str, QueueUse], pod: PodUse) -> tuple[bool, str] | tuple[None, None]:
    """By the quotas of its queue and of those above it.

    A limit that keeps the pod out comes before them: of GPUs the doctor's cause says it, and then
    there is None. So it is for a pod whose queue is not there, or that asks for nothing that is
    bounded.
    """
    bounded = beyond = ""
    for queue in upwards(queues, pod.queue if pod.scheduled_by_kai else None):
        for resource in _RESOURCES:
            share, amount = queue.share(resource), pod.amounts.of(resource)
            if not amount:
                continue
            if share.limit != UNLIMITED and share.in_use + amount > share.limit + SLACK:
                if resource == "gpu":
                    return None, None
                asks, limit = in_words(resource, amount), in_words(resource, share.limit)
                held = f"holds {short(resource, share.in_use)} of at most {limit}"
                never = f"may hold {limit} at most: it never runs"
                holds = never if amount > share.limit + SLACK else held
                return False, f"it asks for {asks}, and queue {queue.name} {holds}"
            if share.quota != UNLIMITED:
                left = short(resource, rounded(max(0.0, share.quota - share.in_use)))
                of = in_words(resource, share.quota)
                bounded = bounded or f"queue {queue.name} has {left} left of {of}"
                if share.in_use + amount > share.quota + SLACK:
                    beyond = beyond or f"queue {queue.name} has {left} left of {of}"
    if beyond:
        return False, (
            f"it asks for more than is guaranteed: {beyond}. It gets what others leave over, and"
            " may be stopped again when they want it"
        )
    if bounded:
        return True, (
            f"it asks for what is guaranteed: {bounded}. KAI stops pods that borrow, if there are"
            " any, to make room for it"
        )
    return None, None
