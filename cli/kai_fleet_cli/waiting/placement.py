"""Why no node takes a pod, by the nodes that it may go to: their taints, cordons and room.

A scheduler counts every node of the cluster in its message, and most are of other pools.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kai_fleet.kube.objects import KubeObject, in_pool
from kai_fleet_cli.waiting.finding import Reason
from kai_fleet_cli.waiting.read_cluster import ClusterPods

# The known messages that say how many nodes did not fit for which reason.
COUNTED: Final = frozenset({"no-such-node", "taint", "no-room"})
_KEEPS_OFF: Final = ("NoSchedule", "NoExecute")
_CORDONED: Final = "node.kubernetes.io/unschedulable"
_SHOWN: Final = 3


def by_nodes(of: ClusterPods, pod: KubeObject) -> Reason | None:
    """Why none of the nodes with the labels that a pod has to have takes it; None where some may,
    or where nodes are not read.
    """
    team = of.team
    # A scheduler inside goes by its copies of nodes, without the taints that the vCluster's pods
    # are made to tolerate; in other modes the host's scheduler goes by its own.
    inside = team is not None and team.mode == "virtual" and of.cluster.all("nodes")
    where = of.cluster if inside or "nodes" in of.host.unreadable else of.host
    if "nodes" in where.unreadable:
        return None
    pool = team.node_pool if team is not None else {}
    own = [node for node in where.all("nodes") if in_pool(node.labels, pool)]
    fits = [node for node in own if _wants(pod, node)]
    if not own:
        return None  # `nodes` says so
    if not fits:
        of_pool = "of its pool " if pool else ""
        return Reason(
            f"none of the {len(own)} nodes {of_pool}has the labels that it asks for"
            f" ({_asked(pod)})",
            "write a nodeSelector, or node affinity, that nodes of its pool have",
        )
    cordoned = [node for node in fits if node.spec.get("unschedulable")]
    tainted = {node.name: taints for node in fits if (taints := _untolerated(pod, node))}
    left = [it for it in fits if it not in cordoned and it.name not in tainted]
    if any(node.is_true("Ready") for node in left):
        return None
    causes, fixes = [], []
    if tainted:
        taints = sorted({taint for of_node in tainted.values() for taint in of_node})
        causes.append(f"{len(tainted)} tainted ({', '.join(taints[:_SHOWN])})")
        fixes.append("write a toleration for the taint, or take it from nodes of the pool")
    if cordoned:
        names = ", ".join(node.name for node in cordoned[:_SHOWN])
        causes.append(f"{len(cordoned)} cordoned ({names})")
        fixes.append("uncordon a node once its maintenance is over")
    if left:
        causes.append(f"{len(left)} not Ready ({', '.join(node.name for node in left[:_SHOWN])})")
        fixes.append("mend a node that is not Ready")
    return Reason(
        f"none of the {len(fits)} nodes with its labels takes it: {', '.join(causes)}",
        "; or ".join(fixes),
    )


def no_room(text: str) -> Reason:
    """Of a pod that some nodes may take, by what they are and a scheduler's message."""
    return Reason(
        f"no node that may take it has room for it: {' '.join(text.split())[:240]}",
        "ask for less, end other pods, or add nodes to the pool",
        "no-room",
    )


def _untolerated(pod: KubeObject, node: KubeObject) -> list[str]:
    return [
        f"{it['key']}{'=' + it['value'] if it.get('value') else ''}:{it['effect']}"
        for it in node.spec.get("taints") or []
        if it.get("effect") in _KEEPS_OFF
        and it["key"] != _CORDONED
        and not any(_tolerates(each, it) for each in pod.spec.get("tolerations") or [])
    ]


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    if toleration.get("operator") == "Exists":
        return True
    same = toleration.get("value", "") == taint.get("value", "")
    return bool(toleration.get("key")) and same


def _terms(pod: KubeObject) -> Sequence[Mapping[str, Any]]:
    affinity = (pod.spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return required.get("nodeSelectorTerms") or []


def _wants(pod: KubeObject, node: KubeObject) -> bool:
    """Whether a node has the labels that a pod asks for."""
    terms = _terms(pod)
    return in_pool(node.labels, pod.spec.get("nodeSelector") or {}) and (
        not terms
        or any(
            all(_has(node.labels.get(it["key"]), it) for it in term.get("matchExpressions") or [])
            and all(_has(node.name, it) for it in term.get("matchFields") or [])
            for term in terms
        )
    )


def _has(value: str | None, expression: Mapping[str, Any]) -> bool:
    values = expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return True  # Gt and Lt: the scheduler's word counts


def _asked(pod: KubeObject) -> str:
    labels = [f"{key}={it}" for key, it in (pod.spec.get("nodeSelector") or {}).items()]
    labels += [
        f"{it['key']} {it.get('operator')} {', '.join(it.get('values') or [])}".strip()
        for term in _terms(pod)
        for it in term.get("matchExpressions") or []
    ]
    return "; ".join(labels) or "by its node affinity"
