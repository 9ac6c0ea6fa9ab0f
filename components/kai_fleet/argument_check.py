"""Refuse arguments of a component that its TypedDict does not describe, all of them at once."""

import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeAlias

import pulumi

from kai_fleet.inputs import has_output
from kai_fleet.marks import REFUSAL, marked
from kai_fleet.wording import listed, spelt_like

Texts: TypeAlias = Mapping[str, Collection[str]]
Spelling: TypeAlias = Callable[[str], str]
# What to write for a type that is no mapping and no list.
_WRITE: Final = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "a text between quotes",
}
_DECIDES: Final = (
    "is an Output, and decides which resources are declared; write a plain value, such as one of"
    " pulumi.Config"
)
# How the running program spells arguments: `node_pool` in Python, `nodePool` elsewhere.
_SPELLING: ContextVar[Spelling] = ContextVar("spelling", default=str)


@dataclass(frozen=True)
class Allowed:
    """What a component takes beside what the types of its arguments say.

    Args:
        choices: allowed texts of a field, or of the items in it, by its dotted name.
        needs: fields that a choice requires beside it.
        short: the field for which a plain value in place of a TypedDict stands.
        quantities: fields that take numbers and texts, which the component reads.
    """

    choices: Texts = field(default_factory=dict)
    needs: Texts = field(default_factory=dict)
    short: Mapping[Any, str] = field(default_factory=dict)
    quantities: Collection[str] = ()

    def below(self, field: str) -> dict[str, Collection[str]]:
        """The choices of a component whose arguments are in a field of another one."""
        return {f"{field}.{name}": texts for name, texts in self.choices.items()}


def check(
    component: str,
    kind: Any,
    args: Any,
    allowed: Allowed | None = None,
    more: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Refuse arguments that are unknown, missing, of another type or no choice, and Outputs that
    decide on resources.

    Args:
        component: type and name, for messages: `KaiScheduler ml`.
        kind: the TypedDict of `args`; only its fields of type pulumi.Input may be Outputs.
        more: gives what else is wrong, once the types are right.

    Raises:
        pulumi.RunError: every mistake, a line each; also for a mark of Pulumi's protocol.
    """
    mistakes = [f"{'.'.join(map(str, place))} {REFUSAL}" for place in marked(args)]
    mistakes += _of_value("its arguments", kind, args, allowed or Allowed(), "")
    mistakes = mistakes or [*more()]
    if mistakes:
        raise pulumi.RunError("\n".join(f"{component}: {mistake}" for mistake in mistakes))


@contextmanager
def other_language() -> Iterator[None]:
    """Name arguments as programs in other languages spell them: `nodePool`."""
    token = _SPELLING.set(camel)
    try:
        yield
    finally:
        _SPELLING.reset(token)


def camel(name: str) -> str:
    """A field's name in other languages, as the SDK derives it: `node_pool` is `nodePool`."""
    first, *rest = name.split("_")
    return "".join((first, *(part.capitalize() for part in rest)))


@cache
def fields_of(kind: Any) -> Mapping[str, Any]:
    """Types of the fields of a TypedDict; the SDK's alias Input names its Output by a text."""
    return typing.get_type_hints(kind, localns={"Output": pulumi.Output, "T": Any})


def _of_value(
    name: str, kind: Any, value: Any, allowed: Allowed, at: str, chosen: str = ""
) -> Iterator[str]:
    """What is wrong with a value for a type. `at` begins the names of its fields, `chosen` has the
    choices for it.
    """
    if kind is Any or value is None or (takes_output(kind) and is_output(value)):
        return
    container = typing.get_origin(kind) or kind
    if typing.is_typeddict(kind):
        short = allowed.short.get(kind)
        if short and not isinstance(value, Mapping):
            value = {short: value}
        if isinstance(value, Mapping):
            yield from _of_fields(kind, value, allowed, at)
        else:
            yield _wrong_type(name, value, f"a mapping with {_known(kind)}")
    elif container is dict:
        items = value.items() if isinstance(value, Mapping) else ()
        for key, item in items:
            inner = f"{name}.{key}"
            if item is None and typing.is_typeddict(typing.get_args(kind)[1]):
                yield f"{inner} is empty; write {{}}, or drop it"
            yield from _of_value(
                inner, typing.get_args(kind)[1], item, allowed, f"{inner}.", chosen
            )
        if not isinstance(value, Mapping):
            yield _wrong_type(name, value, "a mapping", _DECIDES)
    elif container is list:
        for item in value if isinstance(value, list | tuple) else ():
            yield from _of_value(name, typing.get_args(kind)[0], item, allowed, at, chosen)
        if not isinstance(value, list | tuple):
            yield _wrong_type(name, value, "a list", _DECIDES)
    else:
        yield from _of_scalar(name, kind, value, allowed.choices.get(chosen))


def _of_fields(kind: Any, args: Mapping[str, Any], allowed: Allowed, at: str) -> Iterator[str]:
    """What is wrong with the fields of a TypedDict."""
    hints, required = fields_of(kind), {*kind.__required_keys__}
    for key in args:
        if key not in hints:
            yield f"{at}{key} is no argument; {_instead(str(key), kind)}"
    for key, hint in hints.items():
        name, value = f"{at}{_SPELLING.get()(key)}", args.get(key)
        chosen = f"{at}{key}"
        if key in args and key not in allowed.quantities:
            yield from _of_value(name, hint, value, allowed, f"{name}.", chosen)
        if chosen in allowed.choices and isinstance(value, str):
            required |= {*allowed.needs.get(value, ())}
    for key in hints:
        if key in required and args.get(key) is None:
            yield f"{at}{_SPELLING.get()(key)} is missing; write it"


def _of_scalar(name: str, kind: Any, value: Any, choices: Collection[str] | None) -> Iterator[str]:
    """What is wrong with a text, a number or a boolean."""
    if has_output(value):
        yield f"{name} {_DECIDES}"
    elif choices is not None and isinstance(value, str) and value not in choices:
        yield f"{name} is {value!r}; write {listed([*choices])}"
    else:
        # A text of pulumi.Input may be the number that another resource gives.
        plain = _plain(kind)
        texts = (str, int, float) if takes_output(kind) else (str,)
        fitting = {bool: (bool,), float: (int, float), int: (int,), str: texts}.get(
            plain, (object,)
        )
        if plain is int and isinstance(value, float) and value.is_integer():
            return  # other languages send every number as a fraction
        is_wrong_bool = isinstance(value, bool) and plain in (int, float)
        if is_wrong_bool or not isinstance(value, fitting):
            yield _wrong_type(name, value, _WRITE[plain])


def takes_output(kind: Any) -> bool:
    """Whether a value of a type, or a part of it, may be an Output."""
    return "Output" in str(kind)


def is_output(value: Any) -> bool:
    """Whether a value itself is an Output or an awaitable."""
    return not isinstance(value, Mapping | list | tuple) and has_output(value)


def _plain(kind: Any) -> Any:
    """The type of a value that pulumi.Input takes; another type as it is."""
    return typing.get_args(kind)[0] if takes_output(kind) else kind


def _wrong_type(name: str, value: Any, write: str, of_output: str = "") -> str:
    if is_output(value):
        return f"{name} {of_output or f'is an Output; write {write}, whose values may be Outputs'}"
    # Not the value, which may be a password.
    return f"{name} is {_type_in_words(value)}; write {write}"


def _type_in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    words = {bool: "true or false", str: "a text", list: "a list", int: "a number"}
    return words.get(type(value), f"a {type(value).__name__}")


def _instead(key: str, kind: Any) -> str:
    """What to write in place of an argument that there is not."""
    names = [_SPELLING.get()(name) for name in fields_of(kind)]
    near = spelt_like(key, names)
    return f"write {near}" if near else f"write {listed(names, limit=40)}"


def _known(kind: Any) -> str:
    names = [_SPELLING.get()(name) for name in fields_of(kind)]
    return listed(names)
