"""What stays as Kubernetes and KAI wrote it, because quotas, Services and KAI count by it."""

from __future__ import annotations

from typing import Final

from kai_fleet.components.guard.queue_guard_rules import names, of_team, text
from kai_fleet.components.isolation.rules.devices import SHARED
from kai_fleet.components.isolation.rules.model import HostRules, by_kai, by_nodes, by_tenant
from kai_fleet.components.kai.keys import (
    CONTAINER,
    DEVICES,
    FRACTION,
    MEMORY,
    QUEUE_LABEL,
    SCHEDULER,
)

# A quota stops to count a pod that has ended; a Service sends traffic to the address of a pod.
_STATUS: Final = ("phase", "podIP", "podIPs", "hostIP", "hostIPs")
# KAI's binder finds the pods of a shared GPU by this label, in all namespaces.
GROUP: Final = "runai-gpu-group"
_RECEIVED: Final = "received-resource-type"
# By these KAI counts what a running pod holds.
_COUNTED: Final = (_RECEIVED, SHARED, FRACTION, MEMORY, DEVICES, CONTAINER)
_GROUPS: Final = f"k == {text(GROUP)} || k.startsWith({text(f'{GROUP}/')})"


def status_changed() -> str:
    """Whether what a quota or a Service goes by has changed in a pod's status, in CEL."""
    return "(" + " || ".join(f"object.status.?{f} != oldObject.status.?{f}" for f in _STATUS) + ")"


def marks_changed() -> str:
    """Whether a label or annotation has changed by which KAI counts a pod, in CEL."""
    new, old = (f"{each}.metadata.?labels.orValue({{}})" for each in ("object", "oldObject"))
    notes = [f"{each}.metadata.?annotations.orValue({{}})" for each in ("object", "oldObject")]
    return (
        f"([{new}, {old}].exists(m, m.exists(k, ({_GROUPS}) && {new}[?k] != {old}[?k]))"
        f" || {names(_COUNTED)}.exists(k, {notes[0]}[?k] != {notes[1]}[?k]))"
    )


def of_status() -> list[tuple[str, str]]:
    """What holds for the status of a pod."""
    return [
        (
            f"!variables.status || {by_nodes()}",
            "' has a phase or an address in its status that no node wrote; leave these to"
            " Kubernetes, and write conditions only'",
        )
    ]


def of_marks(rules: HostRules) -> list[tuple[str, str]]:
    """What holds for a pod beside a KAI of the host."""
    labels = f"variables.labels.exists(k, {_GROUPS})"
    received = f"{text(_RECEIVED)} in variables.annotations"
    found = [
        (
            f"{by_kai()} || (request.operation == 'CREATE' ? !({labels} || {received})"
            f" : !{marks_changed()})",
            f"' has {GROUP}, {_RECEIVED} or its share of a GPU not as KAI left them; write a share"
            f" when the pod is made, and leave the others to KAI'",
        )
    ]
    if rules.kai == "none":
        found.append(
            (
                f"variables.o.spec.?schedulerName.orValue('') != {text(SCHEDULER)}",
                f"' asks for {SCHEDULER}, and the team has no queue there; drop schedulerName, or"
                " have the platform give the team mode host and a queue'",
            )
        )
    else:
        named = f"variables.labels[?{text(QUEUE_LABEL)}].orValue('')"
        own = of_team(named, names(rules.queues), rules.queue_prefix, rules.foreign_queues)
        write = f"; write the label {QUEUE_LABEL}: {', '.join(rules.queues)}"
        found.append(
            (
                f"{named} == '' || {own}",
                f"' names queue ' + {named} + {text(f', which is no queue of the team{write}')}",
            )
        )
    return found


def of_templates() -> list[tuple[str, str]]:
    """What holds for StatefulSets and the like: who runs in one does not change what runs in it."""
    template = "spec.template.spec"
    labels = "spec.template.metadata.?labels"
    return [
        (
            f"!variables.template || !{by_tenant()} || (request.operation =="
            f" 'UPDATE' && variables.o.{template} == dyn(oldObject).{template}"
            f" && variables.o.{labels} == dyn(oldObject).{labels})",
            "' would run something else in the place of the control plane; change it by the values"
            " of the vCluster, in the stack that installs it'",
        )
    ]
