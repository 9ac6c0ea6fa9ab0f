"""The expressions (CEL) by which the host judges what is made in a team's namespace.

They ask nobody who he is: whoever may write there acts for the team. The exceptions are what only
Kubernetes' own controllers, its nodes or the host's KAI write, and what the accounts of the
namespace itself would change about the vCluster that they run in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.components.guard.queue_guard_rules import Expression, names, text
from kai_fleet.components.isolation.rules import devices, protected_fields, traffic
from kai_fleet.components.isolation.rules.model import (
    CONTROL_PLANES,
    HostRules,
    by_controllers,
    by_kai,
)
from kai_fleet.components.isolation.rules.restricted import restricted
from kai_fleet.components.kai.keys import QUEUE_LABEL, SCHEDULER

# What the guard is asked about, by group and version of the API.
WATCHED: Final[Mapping[str, list[str]]] = {
    "": [
        *("pods", "pods/ephemeralcontainers", "pods/status"),
        *("services", "endpoints", "configmaps", "secrets"),
    ],
    "discovery.k8s.io": ["endpointslices"],
    "apps": ["statefulsets", "deployments", "replicasets"],
}


def match_conditions(rules: HostRules) -> list[Expression]:
    """A pod that exists is judged again only where what is judged changes."""
    labels = "object.metadata.?labels.orValue({})", "oldObject.metadata.?labels.orValue({})"
    notes = (
        "object.metadata.?annotations.orValue({})",
        "oldObject.metadata.?annotations.orValue({})",
    )
    watched = (
        f"k.matches({text(devices.RUNTIME_ANNOTATION)}) || k.matches({text(traffic.ATTACHMENT)})"
    )
    changed = [
        *(f"{labels[0]}[?{text(k)}] != {labels[1]}[?{text(k)}]" for k in ("app", "release")),
        f"{notes[0]}.exists(k, ({watched}) && {notes[0]}[?k] != {notes[1]}[?k])",
    ]
    if rules.restricted:  # KAI's images are an exception
        kinds = ("containers", "initContainers")
        changed += [f"{_images('object', k)} != {_images('oldObject', k)}" for k in kinds]
    if rules.beside_kai:
        queue = [f"{each}[?{text(QUEUE_LABEL)}]" for each in labels]
        changed.append(
            f"(!{by_kai()} && ({protected_fields.marks_changed()} || {queue[0]} != {queue[1]}))"
        )
    sub = "request.?subResource.orValue('')"
    return [
        {
            "name": "new-or-changed",
            "expression": f"request.resource.resource != 'pods' || ({sub} == 'status'"
            f" ? {protected_fields.status_changed()} : (request.operation == 'CREATE'"
            f" || {sub} == 'ephemeralcontainers' || {' || '.join(changed)}))",
        }
    ]


def _images(of: str, kind: str) -> str:
    return f"{of}.spec.?{kind}.orValue([]).map(c, c.?image.orValue(''))"


def variables(rules: HostRules) -> list[Expression]:
    """What the validations share; each is computed once, and only where it is asked for."""
    found = {
        "o": "dyn(object)",
        "status": "request.?subResource.orValue('') == 'status'",
        "pod": "request.resource.resource == 'pods' && !variables.status",
        "template": "request.resource.group == 'apps'",
        "labels": "variables.o.metadata.?labels.orValue({})",
        "annotations": "variables.o.metadata.?annotations.orValue({})",
        "control": f"{by_controllers()} && {_is_control(rules.team)}",
        "containers": "variables.o.spec.containers"
        " + variables.o.spec.?initContainers.orValue([])"
        " + variables.o.spec.?ephemeralContainers.orValue([])",
        "selector": "variables.o.spec.?nodeSelector.orValue({})",
        "node": "variables.o.spec.?nodeName.orValue('')",
        **devices.variables(rules),
        "subject": "(request.resource.resource == 'pods' ? 'pod ' : request.resource.resource"
        " + ' ') + variables.o.metadata.?name.orValue("
        "variables.o.metadata.?generateName.orValue('') + '…')",
    }
    return [{"name": name, "expression": expression} for name, expression in found.items()]


def _is_control(team: str) -> str:
    return (
        f"variables.labels[?'app'].orValue('') in {names(CONTROL_PLANES)}"
        f" && variables.labels[?'release'].orValue('') == {text(team)}"
    )


def validations(rules: HostRules) -> list[dict[str, Any]]:
    """What must hold, with the sentence for what it does not hold for; the first one is told."""
    pods = [
        *(protected_fields.of_marks(rules) if rules.beside_kai else []),
        *_nodes(rules),
        *devices.of_pods(rules),
        *_priority(rules),
        (
            f"variables.control || !({_is_control(rules.team)})",
            "' has the labels app and release of the control plane of its vCluster; use others'",
        ),
        *traffic.of_pods(rules),
    ]
    if rules.queues_only:
        pods.append(
            (
                "size(variables.asking) == 0"
                f" || variables.o.spec.?schedulerName.orValue('') == {text(SCHEDULER)}",
                f"' asks for GPUs beside the queues of the team; write schedulerName: {SCHEDULER}"
                " and the label kai.scheduler/queue'",
            )
        )
    if rules.restricted:
        pods += restricted(rules.platform_images)
    found = [(f"!variables.pod || ({expression})", message) for expression, message in pods]
    found += [
        *devices.of_keys(rules),
        *traffic.of_services(rules),
        *protected_fields.of_status(),
        *protected_fields.of_templates(),
    ]
    return [
        {
            "expression": expression,
            "messageExpression": f"variables.subject + {message} +"
            f" {text(f' (isolation of team {rules.team})')}",
            "reason": "Forbidden",
        }
        for expression, message in found
    ]


def _labels(pool: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in sorted(pool.items())) + "}"


def _selects(pool: Mapping[str, str]) -> str:
    return " && ".join(
        f"variables.selector[?{text(key)}].orValue('') == {text(value)}"
        for key, value in sorted(pool.items())
    )


def _nodes(rules: HostRules) -> list[tuple[str, str]]:
    once = "request.operation != 'CREATE'"  # nobody can change it afterwards
    control = "false"
    if rules.control_pool:
        control = f"variables.control && variables.node == '' && {_selects(rules.control_pool)}"
    found = []
    if not rules.names_nodes:
        found.append(
            (
                f"{once} || variables.node == ''",
                "' names node ' + variables.node + ' itself, past its scheduler; drop nodeName'"
                + (
                    f" + {text(f', and write nodeSelector: {_labels(rules.pool)}')}"
                    if rules.pool
                    else ""
                ),
            )
        )
    if rules.pool:
        found.append(
            (
                f"{once} || ({control}) || ({_selects(rules.pool)})"
                + (" || variables.node != ''" if rules.names_nodes else ""),
                text(
                    f" is not held to the team's nodes; write nodeSelector: {_labels(rules.pool)}"
                ),
            )
        )
    return found


def _priority(rules: HostRules) -> list[tuple[str, str]]:
    allowed = list(rules.priorities)
    write = f"write one of {', '.join(allowed)}" if allowed else "drop it"
    return [
        (
            "variables.o.spec.?priorityClassName.orValue('') == ''"
            f" || variables.o.spec.priorityClassName in {names(allowed)}"
            " || (variables.o.spec.?priority.orValue(0) <= 0"
            " && !variables.o.spec.priorityClassName.startsWith('system-'))",
            "' has priorityClassName ' + variables.o.spec.priorityClassName + ', which preempts the"
            f" pods of other teams; {write}, or have the platform write it in"
            " isolation.priorityClasses'",
        )
    ]
