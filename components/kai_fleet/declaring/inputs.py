"""Compute with plain values and Outputs alike, and the Args types that several components share."""

from collections.abc import Callable, Iterable, Mapping
from inspect import isawaitable
from typing import Required, TypedDict, TypeVar, cast

from pulumi import Input, Output
from pulumi.runtime import is_dry_run

from kai_fleet.taints import Toleration

T = TypeVar("T")
# Labels or annotations of an object, or the labels of the nodes of a pool.
Labels = Mapping[str, Input[str]]
# Levels of a team's isolation, as texts of arguments.
LEVELS = ("baseline", "restricted", "off")


class TolerationArgs(TypedDict, total=False):
    """A taint of nodes that pods tolerate.

    Other than in a pod's spec, a toleration without a value means any value.
    """

    key: Required[Input[str]]
    """The taint's key, such as `nvidia.com/gpu`."""
    operator: Input[str]
    """`Equal` or `Exists`. Default: `Equal` with a value, `Exists` without one."""
    value: Input[str]
    """The taint's value. Default: any."""
    effect: Input[str]
    """The taint's effect: `NoSchedule`, `PreferNoSchedule` or `NoExecute`. Default: any."""


def plain_spec(toleration: Mapping[str, object]) -> Toleration:
    """Arguments without Outputs as an entry of a pod's spec, with the operator filled in.

    An empty operator counts as absent. With Equal an absent value is "", with any other operator it
    is left out; an empty effect is, too. Raises KeyError without a key.
    """
    operator = toleration.get("operator")
    if not operator:
        operator = "Exists"
        if "value" in toleration:
            operator = "Equal"
    spec = {"key": toleration["key"], "operator": operator}
    if operator == "Equal":
        spec["value"] = toleration.get("value") or ""
    if toleration.get("effect"):
        spec["effect"] = toleration["effect"]
    return cast("Toleration", spec)


def toleration_spec(toleration: TolerationArgs) -> Input[Toleration]:
    """The toleration as an entry of a pod's `spec.tolerations`, as `plain_spec` gives it.

    Raises KeyError without a key.
    """
    return resolved(plain_spec, toleration)


def toleration_text(toleration: TolerationArgs) -> Input[str]:
    """The toleration as vCluster and the guards read it: `dedicated=ml:NoSchedule`, `gpu:`.

    The colon is written without an effect, too: vCluster reads a bare key as an empty value. Raises
    KeyError without a key.
    """
    return resolved(_text, toleration_spec(toleration))


def _text(spec: Toleration) -> str:
    text = spec["key"]
    if "value" in spec:
        text += f"={spec['value']}"
    return f"{text}:{spec.get('effect', '')}"


class RegistryArgs(TypedDict):
    """Credentials to pull images from one registry."""

    username: Input[str]
    """The account's name, without a colon."""
    password: Input[str]
    """Password or token of the account, kept as a secret."""


def has_output(value: object) -> bool:
    """Whether the value is an Output or an awaitable, or has one at any depth.

    Values of mappings, lists and tuples are looked at, and keys are not.
    """
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return any(map(has_output, value))
    return isinstance(value, Output) or isawaitable(value)


def resolved(function: Callable[..., T], *inputs: object) -> Input[T]:
    """Call `function` with the inputs: at once if all are plain, else in `Output.apply`.

    Plain inputs have no Output at any depth. In `apply` errors of `function` are those of the
    Output, and a preview does not call it while a value is unknown. Declare no resource in it: a
    preview might not show that.
    """
    if not has_output(inputs):
        return function(*inputs)
    return Output.all(*inputs).apply(lambda known: function(*known))


def joined(separator: str, texts: Iterable[Input[str]]) -> Input[str]:
    """Join the texts in their order."""
    return resolved(separator.join, list(texts))


def or_last(value: Output[T], last: T) -> Output[T]:
    """An Output with the same value and no dependencies.

    In an update it is `last` if the value stays unknown because a resource failed, and never a
    secret. In a preview an unknown value stays unknown, and a secret one secret.
    """

    async def result() -> T:
        return cast(T, await value.future())

    async def result_or_last() -> T:
        if await value.is_known():
            return await result()
        return last

    if is_dry_run():
        return Output(set(), result(), value.is_known(), value.is_secret())
    return Output.from_input(result_or_last())


def without_none(mapping: Mapping[str, T | None]) -> dict[str, T]:
    """The mapping without keys whose value is None; an Output stays, whatever its value."""
    return {key: value for key, value in mapping.items() if value is not None}
