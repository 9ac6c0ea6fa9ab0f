"""Tolerations as arguments and a stack file have them, and what pods and guards get of them."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict, cast

from pulumi import Input

from kai_fleet.cluster.kube.taints import Toleration
from kai_fleet.inputs import resolved


class TolerationArgs(TypedDict):
    """A taint of nodes that pods tolerate.

    Other than in a pod's spec, a toleration without a value means any value.
    """

    key: Input[str]
    """The taint's key, such as `nvidia.com/gpu`."""
    operator: NotRequired[Input[str]]
    """`Equal` or `Exists`. Default: `Equal` with a value, `Exists` without one."""
    value: NotRequired[Input[str]]
    """The taint's value. Default: any."""
    effect: NotRequired[Input[str]]
    """The taint's effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default: any."""


def plain_spec(toleration: Mapping[str, object]) -> Toleration:
    """Arguments without Outputs as an entry of a pod's spec, with the operator filled in."""
    operator = toleration.get("operator")
    if not operator:
        operator = "Equal" if "value" in toleration else "Exists"
    spec = {"key": toleration["key"], "operator": operator}
    if operator == "Equal":
        spec["value"] = toleration.get("value") or ""
    if toleration.get("effect"):
        spec["effect"] = toleration["effect"]
    return cast("Toleration", spec)


def toleration_spec(toleration: TolerationArgs) -> Input[Toleration]:
    """The toleration as an entry of a pod's `spec.tolerations`, with its operator filled in."""
    return resolved(plain_spec, toleration)


def toleration_text(toleration: TolerationArgs) -> Input[str]:
    """The toleration as vCluster and the guards read it: `dedicated=ml:NoSchedule`, `gpu:`.

    The colon is written without an effect, too: vCluster reads a bare key as an empty value.
    """
    return resolved(_text, toleration_spec(toleration))


def _text(spec: Toleration) -> str:
    text = spec["key"]
    if "value" in spec:
        text += f"={spec['value']}"
    return f"{text}:{spec.get('effect', '')}"
