"""Helpers for pulumi.Input: compute with plain values and Outputs; the Args types that several
components share.
"""

from collections.abc import Callable, Iterable, Mapping
from inspect import isawaitable
from typing import Any, Final, NotRequired, TypedDict, TypeVar, cast

import pulumi
from pulumi.runtime import is_dry_run

T = TypeVar("T")
LEVELS: Final = ("baseline", "restricted", "off")  # of isolation


class TolerationArgs(TypedDict):
    """A taint of nodes that pods tolerate, as in a pod's `spec.tolerations`."""

    key: pulumi.Input[str]
    """The taint's key: `nvidia.com/gpu`."""
    operator: NotRequired[pulumi.Input[str]]
    """`Equal` or `Exists`. Default: `Equal` with a value, `Exists` without one."""
    value: NotRequired[pulumi.Input[str]]
    """The taint's value. Default: any."""
    effect: NotRequired[pulumi.Input[str]]
    """`NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default: every effect."""


def toleration_spec(toleration: TolerationArgs) -> pulumi.Input[dict[str, str]]:
    """A toleration as in a pod's spec, with its operator."""

    def spec(known: Mapping[str, str]) -> dict[str, str]:
        operator = known.get("operator") or ("Equal" if "value" in known else "Exists")
        value = {"value": known.get("value") or ""} if operator == "Equal" else {}
        effect = {"effect": known["effect"]} if known.get("effect") else {}
        return {"key": known["key"], "operator": operator, **value, **effect}

    return resolved(spec, toleration)


def toleration_text(toleration: TolerationArgs) -> pulumi.Input[str]:
    """A toleration as vCluster and the guards read it: `dedicated=ml:NoSchedule`, `gpu:`.

    The colon is needed without an effect, too: vCluster reads a bare key as an empty value.
    """

    def text(spec: Mapping[str, str]) -> str:
        value = f"={spec['value']}" if "value" in spec else ""
        return f"{spec['key']}{value}:{spec.get('effect', '')}"

    return resolved(text, toleration_spec(toleration))


class RegistryArgs(TypedDict):
    """Credentials to pull images from one registry."""

    username: pulumi.Input[str]
    """Name of an account that only reads, without a colon."""
    password: pulumi.Input[str]
    """Password or token of the account. It is kept as a secret."""


def has_output(value: Any) -> bool:
    """Whether a value is or contains an Output or an awaitable."""
    if isinstance(value, Mapping):
        return any(map(has_output, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_output, value))
    return isinstance(value, pulumi.Output) or isawaitable(value)


def resolved(f: Callable[..., T], *inputs: Any) -> pulumi.Input[T]:
    """Apply `f` to inputs: at once if all are plain, else by `Output.apply`.

    Declare no resource in `f`: a preview may not show it.
    """
    if not has_output(inputs):
        return f(*inputs)
    return pulumi.Output.all(*inputs).apply(lambda values: f(*values))


def joined(between: str, parts: Iterable[pulumi.Input[str]]) -> pulumi.Input[str]:
    """Join texts in their order."""
    return resolved(between.join, list(parts))


def or_last(value: pulumi.Output[T], last: T) -> pulumi.Output[T]:
    """The value, without what it depends on; the last one where this update left it unknown,
    because a resource failed. In a preview an unknown value stays unknown.
    """

    async def present() -> T:
        return cast(T, await value.future())

    async def known() -> T:
        return await present() if await value.is_known() else last

    if is_dry_run():
        return pulumi.Output(set(), present(), value.is_known(), value.is_secret())
    return pulumi.Output.from_input(known())


def without_none(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Drop keys whose value is None. Outputs are kept, whatever their value."""
    return {key: value for key, value in mapping.items() if value is not None}
