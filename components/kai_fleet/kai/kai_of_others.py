"""What a KAI that others installed has on a host already: its priority classes, default queues."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pulumi

from kai_fleet.cluster.existing_objects import ExistingObjects
from kai_fleet.provider.queues import DEFAULT_QUEUES, PATH, TREE, differences, different
from kai_fleet.releases.chart_values import unknown_keys
from kubectl_fleet.declared.queues import DeclaredQueue
from kubectl_fleet.releases import KaiRelease
from kubectl_fleet.releases.keys import KAI_NAMESPACE

# As each chart makes them.
CLASSES: Final[Mapping[str, int]] = {
    "train": 50,
    "build-preemptible": 75,
    "build": 100,
    "inference": 125,
}
_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses/"
_OWN: Final = f"{KAI_NAMESPACE}/kai-scheduler"
_WITHOUT: Final[Mapping[str, Any]] = {"defaultPriorityClasses": {"enabled": False}}
_TAKE: Final = (
    "kubectl annotate priorityclass {0} --overwrite meta.helm.sh/release-name=kai-scheduler"
    f" meta.helm.sh/release-namespace={KAI_NAMESPACE} && kubectl label priorityclass {{0}}"
    " --overwrite app.kubernetes.io/managed-by=Helm"
)


def priority_values(
    release: KaiRelease, own: Mapping[str, Any], existing: ExistingObjects
) -> Mapping[str, Any]:
    """The values by which the priority classes of others are used, and neither made nor deleted.

    `own` are the values that are written for this KAI, which decide where they speak of it. Raises
    pulumi.RunError where those of others do not fit, before anything is made.
    """
    if "defaultPriorityClasses" in own:
        return {}
    there = {name: existing.at(f"{_CLASSES}{name}") for name in CLASSES}
    others = {it: found for it, found in there.items() if found and found.get("release") != _OWN}
    if not others:
        return {}
    has_switch = not unknown_keys("kai", release.version, _WITHOUT)
    wrong = [
        f"{name} has {found.get('value'):.0f} in place of {CLASSES[name]}"
        for name, found in others.items()
        if found.get("value") != CLASSES[name]
    ]
    if has_switch and not wrong and all(there.values()):
        return _WITHOUT
    absent = [name for name, found in there.items() if not found]
    why = "; ".join(wrong) or (f"there is no {absent[0]}" if absent else "")
    if has_switch:
        raise pulumi.RunError(
            f"kai-fleet:kai: priority classes of KAI ({', '.join(others)}) are in this cluster,"
            f" made by others, and do not fit: {why}. Nothing was made. Have their owner make them"
            " as KAI does, or write values: {defaultPriorityClasses: {enabled: false}} to go on"
            " with them as they are"
        )
    name = min(others)
    raise pulumi.RunError(
        f"kai-fleet:kai: priority classes of KAI ({', '.join(others)}) are in this cluster, made"
        f" by others{f' ({why})' if why else ''}, and the chart of {release.version} cannot leave"
        " them out. Nothing was made. Take KAI v0.16.7 or newer, or hand each of them over, such"
        f" as: {_TAKE.format(name)}"
    )


def refuse_different_queues(queues: Iterable[DeclaredQueue], existing: ExistingObjects) -> None:
    """Say how default queues that a KAI's chart left differ from the declared ones.

    Raises pulumi.RunError, before anything is made.
    """
    for queue in queues:
        found = existing.at(f"{PATH}/{queue.name}") if queue.name in DEFAULT_QUEUES else None
        if found and TREE not in found["labels"]:
            differs = differences(found.get("spec") or {}, queue.spec)
            if differs:
                raise pulumi.RunError(
                    f"{queue.path}: {different(str(queue.name), differs)}. Nothing was made"
                )
