"""Plain values and Outputs in one argument: compute with both, and refuse Outputs where one decides
what is declared. With it, the arguments that several components share.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import isawaitable
from typing import Any, NotRequired, TypedDict, TypeVar

import pulumi

T = TypeVar("T")


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


class RegistryArgs(TypedDict):
    """Credentials by which images of one registry are pulled."""

    username: pulumi.Input[str]
    """Name of an account that only reads, without a colon."""
    password: pulumi.Input[str]
    """Password or token of the account. It is kept as a secret."""


def has_output(value: Any) -> bool:
    """Whether a value is, or holds, what is known only once a resource is there."""
    if isinstance(value, Mapping):
        return any(map(has_output, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_output, value))
    return isinstance(value, pulumi.Output) or isawaitable(value)


def resolved(f: Callable[..., T], *inputs: Any) -> pulumi.Input[T]:
    """Call `f` with the values of inputs: at once where all are plain, else once they are known.

    Declare no resource in `f`: a preview would not show it.
    """
    if not has_output(inputs):
        return f(*inputs)
    return pulumi.Output.all(*inputs).apply(lambda values: f(*values))


def joined(between: str, parts: Iterable[pulumi.Input[str]]) -> pulumi.Input[str]:
    """Join texts in their order."""
    return resolved(between.join, list(parts))


def plain(component: str, field: str, value: T) -> T:
    """Return a value that decides which resources there are.

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
        pulumi.RunError: it is another text.
    """
    if plain(component, field, value) not in choices:
        *others, last = choices
        known = f"{', '.join(others)} or {last}" if others else last
        raise pulumi.RunError(f"{component}: {field} is {value!r}; write {known}")
    return value


def without_none(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Drop the keys that have no value. An Output stays, whatever it turns out to be."""
    return {key: value for key, value in mapping.items() if value is not None}
