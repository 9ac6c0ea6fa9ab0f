"""Taints of nodes, and what tolerates them, as Kubernetes decides it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict

Taint = Mapping[str, str]


class Toleration(TypedDict, total=False):
    """An entry of a pod's `spec.tolerations`.

    Without a key every taint is meant, without an effect every effect. Without an operator it is
    Equal, and without a value that is "".
    """

    key: str
    operator: Literal["", "Equal", "Exists"]
    value: str
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"]


# Taints that Kubernetes sets, and takes away again, begin with this.
_TEMPORARY = "node.kubernetes.io/"


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration of a pod matches a taint. An unknown operator matches nothing."""
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("key") not in (None, "", taint["key"]):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return operator == "Exists"


def closing_taint(
    tolerations: Sequence[Toleration], nodes: Sequence[Iterable[Taint]]
) -> Taint | None:
    """The first node's taint that keeps pods off if each node has one; else None.

    Pods have only these tolerations, and `nodes` has the taints of each node. PreferNoSchedule and
    taints that Kubernetes sets itself keep nothing off. None without nodes.
    """
    closing = [_untolerated(tolerations, taints) for taints in nodes]
    if not closing or None in closing:
        return None
    return closing[0]


def _untolerated(tolerations: Sequence[Toleration], taints: Iterable[Taint]) -> Taint | None:
    """The first taint of a node that keeps pods off and is not temporary; None without one."""
    for taint in taints:
        keeps_pods_off = taint.get("effect") in ("NoSchedule", "NoExecute")
        if not keeps_pods_off or taint["key"].startswith(_TEMPORARY):
            continue
        if not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def toleration_to_write(taint: Mapping[str, object]) -> str:
    """A toleration of the taint as a stack file has it: `{key: "gpu", effect: "NoSchedule"}`.

    Of a toleration it is that one. A field that is empty is left out.
    """
    parts = [key for key in ("key", "operator", "value", "effect") if taint.get(key)]
    fields = ", ".join(f"{key}: {json.dumps(taint[key])}" for key in parts)
    return f"{{{fields}}}"
