"""Pods that run in a team's namespace and would be refused there, if they were made now.

By plain functions about the same `HostRules` that the guard's expressions are written of: an API
server judges nothing that exists already, and no evaluator of CEL for Python knows its optional
fields. What a sum decides (quotas) and what another object decides is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from kai_fleet.components.isolation.rules import devices
from kai_fleet.components.isolation.rules.devices import VISIBLE
from kai_fleet.components.isolation.rules.model import CONTROL_PLANES, HostRules
from kai_fleet.components.isolation.rules.pod_security_fields import (
    Object,
    baseline,
    containers_of,
    restricted,
)
from kai_fleet.components.isolation.rules.restricted import KAI_MOUNTS, kai_image
from kai_fleet.components.isolation.rules.traffic import ATTACHMENT
from kai_fleet.components.kai.keys import FRACTION, MEMORY, SCHEDULER
from kai_fleet.components.settings.quantities import parse_quantity


def refused(
    pods: Iterable[Object], rules: HostRules, nodes: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """The reason by the name of each pod that runs and would be refused.

    `nodes` are labels by the name of each node; of one that is not there nothing is said.
    """
    found = {}
    for pod in pods:
        over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if over or pod["metadata"].get("deletionTimestamp"):
            continue
        if why := next(_reasons(pod, rules, nodes), None):
            found[str(pod["metadata"]["name"])] = why
    return found


def _reasons(
    pod: Object, rules: HostRules, nodes: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    yield from baseline(pod)
    labels = pod["metadata"].get("labels") or {}
    control = False
    if labels.get("app") in CONTROL_PLANES and labels.get("release") == rules.team:
        control = any(
            it.get("kind") == "StatefulSet" for it in pod["metadata"].get("ownerReferences") or []
        )
        if not control:
            yield "it has the labels app and release of the control plane of its vCluster"
    yield from _devices(pod, rules)
    yield from _priority(pod["spec"], rules)
    if not control:
        yield from _nodes(pod["spec"], rules, nodes)
    if rules.restricted and not control and not _runs_kai(pod["spec"], rules):
        yield from restricted(pod)


def _runs_kai(spec: Object, rules: HostRules) -> bool:
    """Whether KAI's programs run there and nothing else."""
    image = re.compile(kai_image(rules.platform_images))
    root = (spec.get("securityContext") or {}).get("runAsUser") == 0
    return not root and all(_as_shipped(each, image) for each in containers_of(spec))


def _as_shipped(each: Object, image: re.Pattern[str]) -> bool:
    name, context = str(each.get("image")), each.get("securityContext") or {}
    brought = "command" in each or "lifecycle" in each or ("args" in each and "/crd-up" in name)
    probes = (each.get(probe) or {} for probe in ("livenessProbe", "readinessProbe"))
    mounts = (mount.get("mountPath") for mount in each.get("volumeMounts") or [])
    return (
        image.search(name) is not None
        and not brought
        and not any("exec" in probe for probe in (*probes, each.get("startupProbe") or {}))
        and all(mount in KAI_MOUNTS for mount in mounts)
        and context.get("runAsUser") != 0
        and not (context.get("capabilities") or {}).get("add")
    )


def _nodes(spec: Object, rules: HostRules, nodes: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    pool = rules.pool.items()
    node = spec.get("nodeName") or ""
    if node in nodes and any(nodes[node].get(key) != value for key, value in pool):
        yield f"it is on node {node}, which is none of the team's"
    chosen = rules.names_nodes and node
    if not chosen and any((spec.get("nodeSelector") or {}).get(k) != v for k, v in pool):
        yield "its nodeSelector does not hold it to the team's nodes"


def _devices(pod: Object, rules: HostRules) -> Iterator[str]:
    spec, notes = pod["spec"], pod["metadata"].get("annotations") or {}
    share = devices.SHARED in notes and (FRACTION in notes or MEMORY in notes)
    own = None
    if rules.kai != "none" and share:
        own = f"{notes[devices.SHARED]}-" if rules.kai == "host" else ""
    for each in containers_of(spec):
        name = f"its container {each.get('name')}"
        resources = each.get("resources") or {}
        for key in [*(resources.get("limits") or {}), *(resources.get("requests") or {})]:
            if devices.denied(key, rules):
                yield f"{name} asks for {key}, and the team is granted {', '.join(rules.devices)}"
        for env in each.get("env") or []:
            if _chooses(env, own):
                yield f"{name} sets {env['name']}"
        for source in each.get("envFrom") or []:
            prefix = source.get("prefix") or ""
            if prefix and any(it.startswith(prefix) for it in devices.DEVICE_VARIABLES):
                yield f"{name} has the envFrom prefix {prefix}"
        for mount in each.get("volumeMounts") or []:
            if "nvidia-container-devices" in str(mount.get("mountPath")):
                yield f"{name} has a mount below nvidia-container-devices"
    if spec.get("resourceClaims") and not rules.claims:
        yield "it claims devices by DRA, and the team is granted none"
    for key in notes:
        if re.search(devices.RUNTIME_ANNOTATION, key):
            yield f"its annotation {key} asks the container runtime for devices or rights"
        if re.search(ATTACHMENT, key) and not rules.attachments:
            yield f"its annotation {key} joins another network"
    yield from _runtime_class(spec, rules, own)
    if rules.kai == "host" and sum(_shares(each, own) for each in containers_of(spec)) > 1:
        yield "it takes the GPU of its share in more than one container"
    asks = any(_asks(each, rules, own) for each in containers_of(spec))
    if rules.beside_kai and rules.kai == "none" and spec.get("schedulerName") == SCHEDULER:
        yield f"its schedulerName is {SCHEDULER}, and the team has no queue there"
    if rules.queues_only and asks and spec.get("schedulerName") != SCHEDULER:
        yield f"it asks for GPUs, and its schedulerName is not {SCHEDULER}"


def _runtime_class(spec: Object, rules: HostRules, own: str | None) -> Iterator[str]:
    named = str(spec.get("runtimeClassName") or "")
    every = containers_of(spec)
    asking = [each for each in every if _asks(each, rules, own)]
    bare = [each for each in every if each not in asking and not _without(each)]
    classes = ("", *rules.runtime_classes)
    if named not in classes and bare and (rules.shared_nodes or not asking):
        yield (
            f"its runtimeClassName {named} may show every GPU of the node to container"
            f" {bare[0].get('name')}"
        )


def _asks(each: Object, rules: HostRules, own: str | None) -> bool:
    limits = (each.get("resources") or {}).get("limits") or {}
    if any(parse_quantity(limits.get(name, 0)) > Decimal(0) for name in devices.gpus(rules)):
        return True
    if rules.claims and (each.get("resources") or {}).get("claims"):
        return True
    return _shares(each, own)


def _shares(each: Object, own: str | None) -> bool:
    return any(_kais(env, own) for env in each.get("env") or [])


def _without(each: Object) -> bool:
    return any(
        env.get("name") == VISIBLE and env.get("value") in ("void", "none")
        for env in each.get("env") or []
    )


def _kais(env: Mapping[str, Any], own: str | None) -> bool:
    reference = (env.get("valueFrom") or {}).get("configMapKeyRef") or {}
    if own is None or env.get("name") != VISIBLE or reference.get("key") != VISIBLE:
        return False
    return str(reference.get("name")).startswith(own)


def _chooses(env: Mapping[str, Any], own: str | None) -> bool:
    """`own` begins the names of the pod's ConfigMaps of KAI; None where KAI shares it no GPU."""
    if env.get("name") not in devices.DEVICE_VARIABLES or _kais(env, own):
        return False
    return "valueFrom" in env or (env.get("value") or "") not in devices.NO_DEVICE


def _priority(spec: Object, rules: HostRules) -> Iterator[str]:
    named = str(spec.get("priorityClassName") or "")
    higher = named.startswith("system-") or int(spec.get("priority") or 0) > 0
    if named and named not in rules.priorities and higher:
        yield f"its priorityClassName is {named}"
