"""`fleet my pending`: why each pod waits, and what would have to happen, in the doctor's words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kai_fleet.releases import KAI
from kai_fleet_cli.doctor.checks import pending, rule_violations
from kai_fleet_cli.doctor.checks.kai import pod_groups
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.declared import DeclaredCluster
from kai_fleet_cli.doctor.objects import KubeObject
from kai_fleet_cli.gpu_usage.formatting import in_words
from kai_fleet_cli.gpu_usage.pods import PodUse
from kai_fleet_cli.my.ages import age
from kai_fleet_cli.my.bars import Ink
from kai_fleet_cli.my.guarantee import Guarantee, guarantee
from kai_fleet_cli.my.view import View

_CHECKS: Final = (rule_violations, pending, pod_groups)
_SOON: Final = "it was made a moment ago", "wait a minute"
_NOT_KNOWN: Final = "nothing that may be read here says why"


@dataclass(frozen=True)
class Waits:
    """A pod that waits, why, what would have to happen, and how it stands to its queue's quota."""

    pod: PodUse
    cause: str
    fix: str
    guarantee: Guarantee | None = None

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "namespace": self.pod.namespace,
            "name": self.pod.name,
            "queue": self.pod.queue,
            "created": self.pod.created,
            **self.pod.amounts.record(),
            "cause": self.cause,
            "fix": self.fix,
            "guaranteed": self.guarantee.guaranteed if self.guarantee else None,
            "standing": self.guarantee.sentence if self.guarantee else None,
        }


def record(view: View) -> dict[str, Any]:
    """The JSON."""
    return {**view.record(), "pending": [each.record() for each in waiting(view)]}


def waiting(view: View) -> list[Waits]:
    """The pods that are not started, those that wait longest first."""
    items = {it.pod_subject: it for it in map(KubeObject, view.answers.all("pods"))}
    said = _said(view)
    found = []
    for pod in view.pods:
        subject = f"pod {pod.name} in namespace {pod.namespace}"
        if pod.phase != "Pending" or pod.ending or (pod.node and subject not in said):
            continue
        cause, fix = said.get(subject) or _otherwise(view, pod, items[subject])
        about = guarantee(view.usage.queues, pod) if pod.waits else None
        found.append(Waits(pod, cause, fix, about))
    return sorted(found, key=lambda each: (each.pod.created, each.pod.namespace, each.pod.name))


def show(view: View, ink: Ink) -> RenderableType:
    """As a table of 80 columns, or as many as there are."""
    found = waiting(view)
    if not found:
        return Group() if view.blind else Text("no pod waits")
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("pod", overflow="fold", ratio=2)
    table.add_column("asks for", overflow="fold", ratio=1)
    table.add_column("since", justify="right", no_wrap=True)
    table.add_column("why, and what would have to happen", overflow="fold", ratio=5)
    for each in found:
        pod = each.pod
        place = "" if pod.namespace == (view.namespace or "default") else f"{pod.namespace}/"
        queue = f"\nqueue {pod.queue}" if pod.queue else ""
        arrow = "->" if ink.endless == "inf" else "→"
        table.add_row(
            Text.assemble((f"{place}{pod.name}", "bold"), (queue, "dim")),
            _asks(pod),
            age(pod.created, view.now),
            Text(f"{each.cause}\n{arrow} {each.fix}\n{_guarantee(each)}"),
        )
    return Group(table)


def _guarantee(each: Waits) -> str:
    return f"{each.guarantee.sentence}\n" if each.guarantee else ""


def _said(view: View) -> dict[str, tuple[str, str]]:
    """What the doctor's checks say first of each pod, cause and fix, by its subject."""
    look = Snapshot(_seen(view))
    found: dict[str, tuple[str, str]] = {}
    started = {
        f"pod {pod.name} in namespace {pod.namespace}" for pod in view.usage.pods if not pod.waits
    }
    for check in _CHECKS:
        for finding in check.check(look):
            # Of those only why they do not start: how they were placed is over.
            if check is not pending and finding.subject in started:
                continue
            found.setdefault(finding.subject, (finding.cause, finding.fix))
    return found


def _seen(view: View) -> ClusterState:
    """The cluster as the doctor's checks take it, with words for what a team does not have."""
    unreadable = dict(view.answers.forbidden)
    if not view.schedules_here:  # the KAI of the host: whether it serves is not seen here
        unreadable |= dict.fromkeys(("deployments", "queues", "podgroups"), "on the host")
    # Who may not see which KAI runs gets the words of the newest: queues say that there is one.
    unseen = "deployments" in view.answers.forbidden and view.schedules_here
    wanted = DeclaredCluster(
        declared=unseen,
        kai=list(KAI.values())[-1] if unseen else None,
        queues={it.name: it.spec for it in map(KubeObject, view.answers.all("queues"))},
        key="your team in the platform's stack file",
        queues_key="your team's queues in the platform's stack file",
    )
    return ClusterState(
        "this cluster",
        wanted,
        view.answers.objects,
        unreadable,
        now=view.now,
        update="ask the platform's engineers for an update of the stack",
        kubectl=view.kubectl,
    )


def _otherwise(view: View, pod: PodUse, item: KubeObject) -> tuple[str, str]:
    """Nothing is known to be wrong: it is new, or whoever schedules it says nothing here."""
    if item.spec.get("schedulingGates"):
        names = ", ".join(str(gate.get("name")) for gate in item.spec["schedulingGates"])
        return f"its scheduling gates are closed: {names}", "whoever set them has to open them"
    seconds = age(pod.created, view.now)
    if seconds.endswith("s"):
        return _SOON
    command = f"{view.kubectl} -n {pod.namespace} describe pod {pod.name}"
    return _NOT_KNOWN, f"look with: `{command}`"


def _asks(pod: PodUse) -> str:
    return "\n".join(_amounts(pod)) or "-"


def _amounts(pod: PodUse) -> Iterator[str]:
    if pod.gpu.mebibytes is not None:
        many = f" on {pod.gpu.devices} GPUs" if pod.gpu.devices > 1 else ""
        yield f"{pod.gpu.mebibytes} MiB of a GPU{many}"
    elif pod.amounts.gpu:
        yield in_words("gpu", pod.amounts.gpu)
    if pod.amounts.cpu:
        yield in_words("cpu", pod.amounts.cpu)
    if pod.amounts.memory:
        yield in_words("memory", pod.amounts.memory)
