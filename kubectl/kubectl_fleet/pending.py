"""`kubectl fleet pending`: why each pod waits, and what to do, in plain sentences."""

import time
from collections.abc import Iterator
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kai_usage.amounts import RESOURCES, in_words
from kai_usage.pods import Pod
from kubectl_fleet.denied import denials_in
from kubectl_fleet.messages import Reason
from kubectl_fleet.reasons import Reasons
from kubectl_fleet.tree import Usage

_MAX_SECONDS = 20.0  # to find the reasons
_TOO_LATE = Reason(
    f"so many pods wait that {_MAX_SECONDS:.0f} s did not do to find out why each does",
    "look at its namespace alone: kubectl fleet pending --namespace NAMESPACE",
)


def record(usage: Usage) -> dict[str, object]:
    """The JSON: the `pending` pods of `_waiting`, and objects whose pods are `denied`.

    `gpu`, `cpu` and `memory` are what a pod asks for: GPUs as KAI counts them, millicores, and 10^6
    bytes. `cause` and `fix` are sentences. `queue` is None without one, `created` "" without a time
    stamp, as is `since` of a denied one. Pods that have waited longest are first, and so are the
    objects that have been denied longest.
    """
    pods = [
        {
            "namespace": pod.namespace,
            "name": pod.name,
            "queue": pod.queue,
            "created": pod.created,
            **pod.amounts,
            **reason._asdict(),
        }
        for pod, reason in _waiting(usage)
    ]
    denials = [asdict(denial) for denial in denials_in(usage.snapshot)]
    return {"pending": pods, "denied": denials}


def show(usage: Usage) -> RenderableType:
    """A table as wide as the terminal at most; 80 columns do for usual names.

    First the pods of `_waiting`, also those with a node that do not start; then objects whose pods
    are denied. `since` is the age of a pod, or of a denial. Without either it is a sentence, or
    empty if pods may not be listed.
    """
    view = usage.snapshot
    table = _table()
    for pod, reason in _waiting(usage):
        queue = f"queue {pod.queue}" if pod.queue else ""
        table.add_row(
            _title(view.name_in_table(pod.name, pod.namespace), queue),
            "\n".join(_requests_in_words(pod)) or "-",
            view.age(pod.created),
            _why(reason.cause, reason.fix),
        )
    for denial in denials_in(view):
        table.add_row(
            _title(view.name_in_table(denial.name, denial.namespace), denial.kind),
            "no pod",
            view.age(denial.since),
            _why(denial.cause, denial.fix),
        )
    if table.row_count:
        return table
    if "pods" in view.forbidden:
        return Group()
    return Text("no pod waits")


def _table() -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("pod", overflow="fold", ratio=2)
    table.add_column("asks for", overflow="fold", ratio=1)
    table.add_column("since", justify="right", no_wrap=True)
    table.add_column("why, and what to do", overflow="fold", ratio=5)
    return table


def _title(name: str, line_below: str) -> Text:
    """A name, and below it a line; no line for ""."""
    title = Text().append(name, "bold")
    if line_below:
        title.append(f"\n{line_below}", "dim")
    return title


def _why(cause: str, fix: str) -> Text:
    """A cause, and below it what to do."""
    return Text(f"{cause}\n→ {fix}\n")


def _waiting(usage: Usage) -> Iterator[tuple[Pod, Reason]]:
    """Yield the pods that have not started, and why; those that wait longest first.

    Only pods that are shown. Left out are those that are being deleted, and those with a node that
    are on their way. After 20 seconds every pod that is left is yielded, also one on its way, with
    the reason that there are too many.
    """
    reasons = Reasons(usage)
    deadline = time.monotonic() + _MAX_SECONDS
    for pod in sorted(usage.shown_pods, key=lambda pod: (pod.created, pod.namespace, pod.name)):
        if pod.phase != "Pending" or pod.is_being_deleted:
            continue
        is_late = time.monotonic() > deadline
        reason = _TOO_LATE if is_late else reasons.first_reason(pod)
        if reason is not None:
            yield pod, reason


def _requests_in_words(pod: Pod) -> Iterator[str]:
    """What a pod asks for, a phrase for each resource; a share of GPU memory in MiB of each GPU.

    Nothing for a resource of which it asks for none. Entire GPUs and MIG devices come after a share
    of memory.
    """
    for resource in RESOURCES:
        amount = pod.amounts[resource]
        if resource == "gpu" and pod.gpu.memory_mib is not None:
            devices = f" on {pod.gpu.devices} GPUs" if pod.gpu.devices > 1 else ""
            yield f"{pod.gpu.memory_mib} MiB of a GPU{devices}"
            amount = pod.gpu.whole + pod.gpu.mig
        if amount:
            yield in_words(resource, amount)
