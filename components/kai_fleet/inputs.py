"""Helpers for pulumi.Input: compute with plain values and Outputs, and check arguments; the Args
types that several components share.
"""

import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from inspect import isawaitable
from typing import Any, Final, NotRequired, TypeAlias, TypedDict, TypeVar

import pulumi

from kai_fleet.marks import REFUSAL, marked
from kai_fleet.wording import listed

T = TypeVar("T")
LEVELS: Final = ("baseline", "restricted", "off")  # of isolation
Texts: TypeAlias = Mapping[str, Collection[str]]
NO: Final[Texts] = {}


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


@cache
def _fields(kind: Any) -> Mapping[str, Any]:
    """Types of the fields of Args; the SDK's alias Input names its Output by a text."""
    return typing.get_type_hints(kind, localns={"Output": pulumi.Output, "T": Any})


def check(
    component: str, kind: Any, args: Any, choices: Texts = NO, needs: Texts = NO, at: str = ""
) -> None:
    """Refuse an argument that is missing, is no choice, or is an Output that decides on resources.

    Args:
        component: type and name, for messages: `KaiScheduler ml`.
        kind: the TypedDict of `args`; only its fields of type pulumi.Input may be Outputs.
        choices: allowed texts of a field, or of the items in it, by its dotted name.
        needs: fields that a choice requires beside it.
        at: prefix of the fields' names.

    Raises:
        TypeError: an Output.
        pulumi.RunError: a missing argument, one that is no choice, or a mark of Pulumi's protocol.
    """
    for place in marked(args):
        raise pulumi.RunError(f"{component}: {at}{'.'.join(map(str, place))} {REFUSAL}")
    required = {*kind.__required_keys__}
    for key, hint in _fields(kind).items():
        if key not in args:
            continue
        field, value = f"{at}{key}", args[key]
        for name, part, item in _parts(field, hint, value):
            if typing.is_typeddict(part) and isinstance(item, Mapping):
                check(component, part, item, choices, needs, f"{name}.")
            elif "Output" in str(part) or part is Any:
                continue
            elif has_output(item):
                raise TypeError(
                    f"{component}: {name} is an Output, and decides which resources are declared;"
                    " write a plain value, such as one of pulumi.Config"
                )
            elif item not in (known := choices.get(field, (item,))):
                raise pulumi.RunError(f"{component}: {name} is {item!r}; write {listed([*known])}")
        if field in choices and isinstance(value, str):
            required |= {*needs.get(value, ())}
    for key in _fields(kind):
        if key in required and key not in args:
            raise pulumi.RunError(f"{component}: {at}{key} is missing; write it")


def _parts(field: str, hint: Any, value: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, type and value of a field, or of each item in it."""
    if typing.get_origin(hint) is dict and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _parts(f"{field}.{key}", typing.get_args(hint)[1], item)
    elif typing.get_origin(hint) is list and isinstance(value, list):
        for item in value:
            yield from _parts(field, typing.get_args(hint)[0], item)
    else:
        yield field, hint, value


def without_none(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Drop keys whose value is None. Outputs are kept, whatever their value."""
    return {key: value for key, value in mapping.items() if value is not None}
