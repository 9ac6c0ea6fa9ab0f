"""Pods that run in a team's namespace and would be refused there, if they were made now.

By the guards' own policies, which an API server asks only about what is made and changed. What a
sum decides (quotas) is not looked at.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kai_fleet.guards import evaluation
from kai_fleet.guards.host_rules import CONTROL_PLANES, HostRules, foreign_nodes
from kai_fleet.guards.policies import Kind, Object
from kai_fleet.isolation.pod_security import baseline

# What an API server or a kubelet adds to a pod after it was made.
_LATER = ("status",)
_OF_PODS: tuple[Kind, ...] = ("devices", "pods", "traffic")


def refused(
    pods: Iterable[Mapping[str, Any]], rules: HostRules, nodes: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """The reason by the name of each pod that runs and would be refused.

    `nodes` are labels by the name of each node; one that is missing is not judged.
    """
    reasons = {}
    for pod in pods:
        over = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if over or pod["metadata"].get("deletionTimestamp"):
            continue
        if why := next(_reasons(pod, rules, nodes), None):
            name = str(pod["metadata"]["name"])
            reason = why.removeprefix(f"pod {name} ")  # whoever says it names the pod
            reasons[name] = why if reason == why else f"it {reason}"
    return reasons


def _reasons(
    pod: Mapping[str, Any], rules: HostRules, nodes: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    yield from baseline(pod)
    space = f"team-{rules.team}"
    control = _of_control_plane(pod, rules)
    user = evaluation.controller() if control else evaluation.account(space, f"vc-{rules.team}")
    request = evaluation.creation("pods", space, user, str(pod["metadata"]["name"]))
    bounds = rules.parameters()
    made = _as_made(pod, rules, control=control)
    for kind in _OF_PODS:
        yield from evaluation.refusals(kind, made, request, bounds)
    node = str(pod["spec"].get("nodeName") or "")
    if node in nodes and not control and _foreign(nodes[node], rules):
        yield f"it is on node {node}, which is none of the team's"


def _of_control_plane(pod: Mapping[str, Any], rules: HostRules) -> bool:
    labels = pod["metadata"].get("labels") or {}
    owners = pod["metadata"].get("ownerReferences") or []
    return (
        labels.get("app") in CONTROL_PLANES
        and labels.get("release") == rules.team
        and any(it.get("kind") in ("StatefulSet", "ReplicaSet") for it in owners)
    )


def _as_made(pod: Mapping[str, Any], rules: HostRules, *, control: bool) -> Object:
    """The pod as whoever made it wrote it: its scheduler gave it a node, KAI its group, and network
    plugins their annotations.
    """
    spec = dict(pod["spec"])
    if control or not rules.names_nodes:
        spec.pop("nodeName", None)
    if control:  # by its StatefulSet or Deployment, which the update declares
        spec["nodeSelector"] = dict(rules.control_pool or rules.pool)
    metadata = dict(pod["metadata"])
    metadata["labels"] = {
        key: value
        for key, value in (metadata.get("labels") or {}).items()
        if not (rules.beside_kai and key.split("/")[0] == "runai-gpu-group")
    }
    metadata["annotations"] = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if not (rules.beside_kai and key == "received-resource-type")
    }
    rest = {key: value for key, value in pod.items() if key not in _LATER}
    return {**rest, "metadata": metadata, "spec": spec}


def _foreign(labels: Mapping[str, str], rules: HostRules) -> bool:
    if rules.pool:
        return any(labels.get(key) != value for key, value in rules.pool.items())
    return any(_selects(selector, labels) for selector in foreign_nodes(rules))


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    named = (selector.get("matchLabels") or {}).items()
    among = selector.get("matchExpressions") or []
    return all(labels.get(key) == value for key, value in named) and all(
        labels.get(it["key"]) in it["values"] for it in among
    )
