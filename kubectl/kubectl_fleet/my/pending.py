"""`fleet my pending`: why each pod waits, and what would have to happen, in the doctor's words."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_fleet.declared.queues import UNLIMITED, Resource
from kubectl_fleet.kube.text import plain
from kubectl_fleet.my.bars import Glyphs
from kubectl_fleet.my.view import View
from kubectl_fleet.objects import KubeObject
from kubectl_fleet.releases import KAI
from kubectl_fleet.rules.judged import JudgedCluster, JudgedKai
from kubectl_fleet.usage.amounts import SLACK, in_words, rounded, short
from kubectl_fleet.usage.pods import PodUse
from kubectl_fleet.usage.queues import QueueUse, queue_of, upwards
from kubectl_fleet.waiting import pending, pod_groups, rule_violations
from kubectl_fleet.waiting.finding import Reason
from kubectl_fleet.waiting.read_cluster import ClusterPods
from kubectl_fleet.waiting.refused import owner_of, refusals

_RESOURCES: Final[tuple[Resource, ...]] = ("gpu", "cpu", "memory")


class _Waiting(NamedTuple):
    """A pod that waits, or what makes pods that are denied, so that there are none.

    `record` is its JSON, the others are what a table has beside it: a line below its name, what it
    asks for, and a time stamp.
    """

    record: dict[str, Any]
    below: str
    asks: str
    since: str


def record(view: View) -> dict[str, Any]:
    """The JSON."""
    of = _pods_of(view)
    return {
        "pending": [each.record for each in _pending(view, of)],
        "denied": [each.record for each in _denied(view, of)],
    }


def show(view: View, glyphs: Glyphs) -> RenderableType:
    """As a table of 80 columns, or as many as there are."""
    of = _pods_of(view)
    every = [*_pending(view, of), *_denied(view, of)]
    if not every:
        return Group() if view.blind else Text("no pod waits")
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("pod", overflow="fold", ratio=2)
    table.add_column("asks for", overflow="fold", ratio=1)
    table.add_column("since", justify="right", no_wrap=True)
    table.add_column("why, and what would have to happen", overflow="fold", ratio=5)
    for it, below, asks, since in every:
        name = (view.name(it["name"], it["namespace"]), "bold")
        lines = [it["cause"], f"{glyphs.arrow} {it['fix']}"]
        lines += [it["standing"]] if it.get("standing") else []
        table.add_row(
            Text.assemble(name, (f"\n{below}" if below else "", "dim")),
            asks,
            view.age(since),
            Text("\n".join([*lines, ""])),
        )
    return Group(table)


def _pending(view: View, of: ClusterPods) -> list[_Waiting]:
    """The pods that are not started, those that wait longest first."""
    items = {it.pod_subject: it for it in of.cluster.all("pods")}
    reasons = _reasons(view, of)
    pods = []
    for pod in sorted(view.pods, key=lambda pod: (pod.created, pod.namespace, pod.name)):
        if pod.phase != "Pending" or pod.ending or (pod.node and pod.subject not in reasons):
            continue
        cause, fix = reasons.get(pod.subject) or _otherwise(view, pod, items[pod.subject])
        queues = view.usage.queues if pod.waits else {}
        guaranteed, standing = _guarantee(queues, pod) or (None, None)
        told = {
            "namespace": pod.namespace,
            "name": pod.name,
            "queue": pod.queue,
            "created": pod.created,
            **asdict(pod.amounts),
            "cause": cause,
            "fix": fix,
            "guaranteed": guaranteed,
            "standing": standing,
        }
        queue, asks = f"queue {pod.queue}" if pod.queue else "", "\n".join(_requests(pod))
        pods.append(_Waiting(told, queue, asks or "-", pod.created))
    return pods


def _denied(view: View, of: ClusterPods) -> list[_Waiting]:
    """What could not make its pods, of which the others know nothing."""
    every: dict[tuple[str, str, str], _Waiting] = {}
    for refusal in refusals(of):
        if refusal.kind == "Pod" or not view.shows(refusal):
            continue
        (kind, name), namespace = owner_of(of.cluster, refusal), refusal.namespace
        look = of.cluster.describe(refusal.kind, refusal.name, namespace)
        reason = of.cluster.explain(refusal.text) or Reason(refusal.text, look)
        told = {
            "kind": kind,
            "name": name,
            "namespace": namespace,
            "cause": plain(reason.cause),
            "fix": plain(reason.fix),
            "since": refusal.since,
        }
        every[kind, name, namespace] = _Waiting(told, kind, "no pod", refusal.since)
    return [every[it] for it in sorted(every, key=lambda it: (every[it].since, it[2], it[1]))]


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
        queues=tuple(map(queue_of, view.cluster.all("queues"))),
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


def _guarantee(queues: Mapping[str, QueueUse], pod: PodUse) -> tuple[bool, str] | None:
    """Whether its queue and those above it have as much left of their quotas, and a sentence.

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
                    return None
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
    return None
