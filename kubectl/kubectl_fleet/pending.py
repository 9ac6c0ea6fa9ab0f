"""`kubectl fleet pending`: why each pod waits, and what to do, in plain sentences."""

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
from kubectl_fleet.table import UNLIMITED, Glyphs, in_words, rounded, short
from kubectl_fleet.tree import SLACK, Usage

KINDS: Final = REASONS


def record(usage: Usage) -> dict[str, Any]:
    """Return the JSON: pods that wait, and what could not create its pods."""
    pods = []
    for pod, reason in _waiting(usage):
        guaranteed, standing = _standing(usage, pod) or (None, None)
        about: dict[str, Any] = {"namespace": pod.namespace, "name": pod.name, "queue": pod.queue}
        about |= {"created": pod.created, **pod.amounts, **reason._asdict()}
        pods.append({**about, "guaranteed": guaranteed, "standing": standing})
    return {"pending": pods, "denied": denied(usage.snapshot)}


def show(usage: Usage, glyphs: Glyphs) -> RenderableType:
    """Return a table that fits 80 columns."""
    view = usage.snapshot
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("pod", overflow="fold", ratio=2)
    table.add_column("asks for", overflow="fold", ratio=1)
    table.add_column("since", justify="right", no_wrap=True)
    table.add_column("why, and what to do", overflow="fold", ratio=5)

    def row(name: str, below: str, asks: str, since: str, *lines: str) -> None:
        title = Text.assemble((name, "bold"), (below and f"\n{below}", "dim"))
        table.add_row(title, asks, view.age(since), Text("\n".join([*filter(None, lines), ""])))

    for pod, reason in _waiting(usage):
        name, queue = view.name(pod.name, pod.namespace), f"queue {pod.queue}" if pod.queue else ""
        _, standing = _standing(usage, pod) or (None, "")
        fix = f"{glyphs.arrow} {reason.fix}"
        row(name, queue, "\n".join(_asks(pod)) or "-", pod.created, reason.cause, fix, standing)
    for maker in denied(view):
        name, fix = view.name(maker["name"], maker["namespace"]), f"{glyphs.arrow} {maker['fix']}"
        row(name, maker["kind"], "no pod", maker["since"], maker["cause"], fix)
    if table.row_count:
        return table
    return Group() if "pods" in view.forbidden else Text("no pod waits")


def _waiting(usage: Usage) -> Iterator[tuple[Pod, Reason]]:
    """Return the pods that are not started and why, those that wait longest first."""
    reasons = Reasons(usage)
    for pod in sorted(usage.shown, key=lambda pod: (pod.created, pod.namespace, pod.name)):
        if pod.phase == "Pending" and not pod.ending and (reason := reasons.of(pod)):
            yield pod, reason


def _asks(pod: Pod) -> Iterator[str]:
    for resource in RESOURCES:
        if resource == "gpu" and pod.gpu.memory is not None:
            many = f" on {pod.gpu.devices} GPUs" if pod.gpu.devices > 1 else ""
            yield f"{pod.gpu.memory} MiB of a GPU{many}"
        elif amount := pod.amounts[resource]:
            yield in_words(resource, amount)


def _standing(usage: Usage, pod: Pod) -> tuple[bool, str] | None:
    """Return whether the quotas of its queue and of those above have room for it, and a sentence.

    None for a pod that a limit keeps out, for one whose queue is not there, and for one that asks
    for nothing that is bounded.
    """
    room: list[tuple[bool, str]] = []
    above = list(usage.upwards(pod.queue)) if pod.by_kai and not pod.node else []
    for queue in above if above and not above[0].children else ():
        for resource in RESOURCES:
            share, amount = queue.shares[resource], pod.amounts[resource]
            after = share.in_use + amount
            if amount and share.limit != UNLIMITED and after > share.limit + SLACK:
                return None
            if amount and share.quota != UNLIMITED:
                left = short(resource, rounded(max(0.0, share.quota - share.in_use)))
                quota = in_words(resource, share.quota)
                sentence = f"queue {queue.name} has {left} left of {quota}"
                room.append((after <= share.quota + SLACK, sentence))
    if not room:
        return None
    guaranteed, sentence = min(room, key=lambda each: each[0])
    if guaranteed:
        return True, (
            f"it asks for what is guaranteed: {sentence}. KAI stops pods that borrow, if there are"
            " any, to make room for it"
        )
    return False, (
        f"it asks for more than is guaranteed: {sentence}. It gets what others leave over, and may"
        " be stopped again when they want it"
    )
