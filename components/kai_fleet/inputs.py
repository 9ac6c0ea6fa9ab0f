"""Helpers for pulumi.Input: compute with plain values and Outputs, refuse Outputs that decide which
resources are declared; and the Args types that several components share.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import isawaitable
from typing import Any, Final, NotRequired, TypedDict, TypeVar, cast

import pulumi

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
    return resolved(_toleration_spec, toleration)


def toleration_text(toleration: TolerationArgs) -> pulumi.Input[str]:
    """A toleration as vCluster and the guards read it: `dedicated=ml:NoSchedule`, `gpu:`.

    The colon is needed without an effect, too: vCluster reads a bare key as an empty value.
    """
    return resolved(_toleration_text, toleration)


def _toleration_spec(toleration: Mapping[str, str]) -> dict[str, str]:
    value, effect = toleration.get("value"), toleration.get("effect")
    operator = toleration.get("operator") or ("Exists" if value is None else "Equal")
    spec = {"key": toleration["key"], "operator": operator}
    if operator == "Equal":
        spec["value"] = value or ""
    return {**spec, "effect": effect} if effect else spec


def _toleration_text(toleration: Mapping[str, str]) -> str:
    spec = _toleration_spec(toleration)
    value = f"={spec['value']}" if "value" in spec else ""
    return f"{spec['key']}{value}:{spec.get('effect', '')}"


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


def extended(
    mapping: pulumi.Input[Mapping[str, Any]], more: Mapping[str, Any]
) -> pulumi.Input[dict[str, Any]]:
    """Add keys to a mapping, which is one Output in programs of other languages."""
    if isinstance(mapping, pulumi.Output):
        return mapping.apply(lambda known: pulumi.Output.from_input({**known, **more}))
    return {**cast(Mapping[str, Any], mapping), **more}


def joined(between: str, parts: Iterable[pulumi.Input[str]]) -> pulumi.Input[str]:
    """Join texts in their order."""
    return resolved(between.join, list(parts))


def plain(component: str, field: str, value: T) -> T:
    """Return a value that decides which resources are declared.

    Args:
        component: type and name, for the message: `KaiScheduler ml`.

    Raises:
        TypeError: the value is or holds an Output.
    """
    if has_output(value):
        raise TypeError(
            f"{component}: {field} is an Output, and decides which resources are declared; write a"
            " plain value, such as one of pulumi.Config"
        )
    return value


def one_of(component: str, field: str, value: str, choices: Collection[str]) -> str:
    """Return a plain text that is one of the choices.

    Raises:
        TypeError: it is an Output.
        pulumi.RunError: it is not one of the choices.
    """
    if plain(component, field, value) not in choices:
        *others, last = choices
        known = f"{', '.join(others)} or {last}" if others else last
        raise pulumi.RunError(f"{component}: {field} is {value!r}; write {known}")
    return value


def required(component: str, field: str, args: Mapping[str, Any], keys: Iterable[str]) -> None:
    """Raise pulumi.RunError where a key that an argument needs is absent."""
    for key in keys:
        if key not in args:
            raise pulumi.RunError(f"{component}: {field}.{key} is missing; write it")


def without_none(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Drop keys whose value is None. Outputs are kept, whatever their value."""
    return {key: value for key, value in mapping.items() if value is not None}
