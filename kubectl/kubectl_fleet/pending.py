"""`kubectl fleet pending`: why each pod waits, and what to do, in plain sentences."""

import time
from collections.abc import Iterator
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubectl_fleet.cluster import REASONS
from kubectl_fleet.denied import denied
from kubectl_fleet.gpu import Pod
from kubectl_fleet.messages import Reason
from kubectl_fleet.reasons import Reasons
from kubectl_fleet.requests import RESOURCES
from kubectl_fleet.table import in_words
from kubectl_fleet.tree import Usage

KINDS: Final = REASONS
_SECONDS: Final = 20.0  # to find the reasons
_LATE: Final = Reason(
    f"so many pods wait that {_SECONDS:.0f} s did not do to find out why each does",
    "look at its namespace alone: kubectl fleet pending --namespace NAMESPACE",
)


def record(usage: Usage) -> dict[str, Any]:
    """Return the JSON: pods that wait, and what could not create its pods."""
    pods = []
    for pod, reason in _waiting(usage):
        about: dict[str, Any] = {"namespace": pod.namespace, "name": pod.name, "queue": pod.queue}
        pods.append({**about, "created": pod.created, **pod.amounts, **reason._asdict()})
    return {"pending": pods, "denied": denied(usage.snapshot)}


def show(usage: Usage) -> RenderableType:
    """Return a table, of 80 columns for usual names."""
    view = usage.snapshot
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("pod", overflow="fold", ratio=2)
    table.add_column("asks for", overflow="fold", ratio=1)
    table.add_column("since", justify="right", no_wrap=True)
    table.add_column("why, and what to do", overflow="fold", ratio=5)

    def row(name: str, below: str, asks: str, since: str, *lines: str) -> None:
        title = Text.assemble((name, "bold"), (below and f"\n{below}", "dim"))
        table.add_row(title, asks, view.age(since), Text("\n".join([*lines, ""])))

    for pod, reason in _waiting(usage):
        name, queue = view.name(pod.name, pod.namespace), f"queue {pod.queue}" if pod.queue else ""
        fix = f"→ {reason.fix}"
        row(name, queue, "\n".join(_asks(pod)) or "-", pod.created, reason.cause, fix)
    for owner in denied(view):
        name, fix = view.name(owner["name"], owner["namespace"]), f"→ {owner['fix']}"
        row(name, owner["kind"], "no pod", owner["since"], owner["cause"], fix)
    if table.row_count:
        return table
    return Group() if "pods" in view.forbidden else Text("no pod waits")


def _waiting(usage: Usage) -> Iterator[tuple[Pod, Reason]]:
    """Return the pods that are not started and why, those that wait longest first."""
    reasons, ends = Reasons(usage), time.monotonic() + _SECONDS
    for pod in sorted(usage.shown, key=lambda pod: (pod.created, pod.namespace, pod.name)):
        if pod.phase != "Pending" or pod.ending:
            continue
        late = time.monotonic() > ends
        if why := _LATE if late else reasons.of(pod):
            yield pod, why


def _asks(pod: Pod) -> Iterator[str]:
    for resource in RESOURCES:
        if resource == "gpu" and pod.gpu.memory is not None:
            many = f" on {pod.gpu.devices} GPUs" if pod.gpu.devices > 1 else ""
            yield f"{pod.gpu.memory} MiB of a GPU{many}"
        elif amount := pod.amounts[resource]:
            yield in_words(resource, amount)
