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
# A type as an annotation of a TypedDict gives it: a class, `list[str]`, `pulumi.Input[str]`, Any.
Hint: TypeAlias = object
# What to write for a type that is no mapping and no list.
_WRITE: Final[Mapping[Hint, str]] = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "a text between quotes",
}
_TYPES_IN_WORDS: Final = {
    bool: "true or false",
    str: "a text",
    list: "a list",
    int: "a number",
}
_DECIDES: Final = (
    "is an Output, and decides which resources are declared; write a plain value, such as one of"
    " pulumi.Config"
)
# How the running program spells arguments: `use_existing` in Python, `useExisting` elsewhere.
_SPELLING: ContextVar[Spelling] = ContextVar("spelling", default=str)


@dataclass(frozen=True)
class Allowed:
    """What a component accepts and requires, in addition to the types of its arguments.

    Args:
        choices: allowed texts of a field, or of the values in it, by its dotted name.
        needs: fields that are required if a field with choices has this text.
        short: the field that a plain value sets if it replaces a TypedDict, by the TypedDict.
        quantities: fields with numbers and texts, which the component checks itself.
    """

    choices: Texts = field(default_factory=dict)
    needs: Texts = field(default_factory=dict)
    short: Mapping[Hint, str] = field(default_factory=dict)
    quantities: Collection[str] = ()

    def below(self, field: str) -> dict[str, Collection[str]]:
        """The choices, for a component that takes these arguments in one of its fields."""
        return {f"{field}.{name}": texts for name, texts in self.choices.items()}


def check(
    component: str,
    kind: Hint,
    args: object,
    allowed: Allowed | None = None,
    more: Callable[[], Iterable[str]] = tuple,
) -> None:
    """Check the arguments of a component against their TypedDict.

    Args:
        component: type and name, for messages: `KaiScheduler ml`.
        kind: the TypedDict of `args`; only its fields of type pulumi.Input may be Outputs.
        more: gives further mistakes; called only if there are none of types.

    Raises:
        pulumi.RunError: arguments are unknown, missing, of another type or none of the choices, or
            have a mark of Pulumi's protocol; or an Output decides which resources are declared. The
            message has a line for each mistake.
    """
    mistakes = [f"{'.'.join(map(str, path))} {REFUSAL}" for path in marked(args)]
    checker = _Checker(allowed or Allowed())
    mistakes += checker.of_value("its arguments", kind, args, prefix="", choices_at="")
    mistakes = mistakes or list(more())
    if mistakes:
        raise pulumi.RunError("\n".join(f"{component}: {mistake}" for mistake in mistakes))


@contextmanager
def other_language() -> Iterator[None]:
    """Name arguments in messages as programs in other languages spell them: `useExisting`."""
    token = _SPELLING.set(camel)
    try:
        yield
    finally:
        _SPELLING.reset(token)


def camel(name: str) -> str:
    """A field's name in other languages, as the SDK derives it: `use_existing` is `useExisting`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


@cache
def fields_of(kind: Any) -> Mapping[str, Hint]:
    """Types of the fields of a TypedDict."""
    # The SDK's alias Input names Output and its type variable by texts.
    return typing.get_type_hints(kind, localns={"Output": pulumi.Output, "T": Any})


@dataclass(frozen=True)
class _Checker:
    """Finds the mistakes in arguments.

    `name` is a value's name in messages, `prefix` begins the names of its fields, and
    `allowed.choices` has the value's choices at `choices_at`.
    """

    allowed: Allowed

    def of_value(
        self, name: str, kind: Hint, value: object, prefix: str, choices_at: str
    ) -> Iterator[str]:
        """Mistakes in a value of type `kind`. None fits any type, an Output what takes Outputs."""
        if kind is Any or value is None:
            return
        if takes_output(kind) and is_output(value):
            return
        container = typing.get_origin(kind) or kind
        if typing.is_typeddict(kind):
            yield from self._of_typed_dict(name, kind, value, prefix)
        elif container is dict:
            yield from self._of_dict(name, kind, value, choices_at)
        elif container is list:
            yield from self._of_list(name, kind, value, prefix, choices_at)
        else:
            yield from _of_scalar(name, kind, value, self.allowed.choices.get(choices_at))

    def _of_typed_dict(self, name: str, kind: Any, value: object, prefix: str) -> Iterator[str]:
        short = self.allowed.short.get(kind)
        if short and not isinstance(value, Mapping):
            value = {short: value}
        if not isinstance(value, Mapping):
            yield _wrong_type(name, value, f"a mapping with {listed(_spelt_fields(kind))}")
            return
        hints = fields_of(kind)
        for key in value:
            if key not in hints:
                yield f"{prefix}{key} is no argument; {_instead(str(key), kind)}"
        required = {*kind.__required_keys__}
        for key, hint in hints.items():
            given = value.get(key)
            choices_at = f"{prefix}{key}"
            if key in value and key not in self.allowed.quantities:
                shown = f"{prefix}{_spelt(key)}"
                yield from self.of_value(shown, hint, given, f"{shown}.", choices_at)
            if choices_at in self.allowed.choices and isinstance(given, str):
                required.update(self.allowed.needs.get(given, ()))
        for key in hints:
            if key in required and value.get(key) is None:
                yield f"{prefix}{_spelt(key)} is missing; write it"

    def _of_dict(self, name: str, kind: Hint, value: object, choices_at: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield _wrong_type(name, value, "a mapping", _DECIDES)
            return
        value_kind = typing.get_args(kind)[1]
        for key, inner in value.items():
            path = f"{name}.{key}"
            if inner is None and typing.is_typeddict(value_kind):
                yield f"{path} is empty; write {{}}, or drop it"
            yield from self.of_value(path, value_kind, inner, f"{path}.", choices_at)

    def _of_list(
        self, name: str, kind: Hint, value: object, prefix: str, choices_at: str
    ) -> Iterator[str]:
        if not isinstance(value, list | tuple):
            yield _wrong_type(name, value, "a list", _DECIDES)
            return
        element_kind = typing.get_args(kind)[0]
        for element in value:
            yield from self.of_value(name, element_kind, element, prefix, choices_at)


def _of_scalar(
    name: str, kind: Hint, value: object, choices: Collection[str] | None
) -> Iterator[str]:
    """Mistakes in a text, a number or a boolean."""
    if has_output(value):
        yield f"{name} {_DECIDES}"
    elif choices is not None and isinstance(value, str) and value not in choices:
        yield f"{name} is {value!r}; write {listed([*choices])}"
    elif not _fits(kind, value):
        yield _wrong_type(name, value, _WRITE[_plain(kind)])


def _fits(kind: Hint, value: object) -> bool:
    """Whether a plain value has the type; any value fits a type that is not in _WRITE."""
    plain = _plain(kind)
    if plain is bool:
        return isinstance(value, bool)
    if plain in (int, float) and isinstance(value, bool):
        return False
    if plain is float:
        return isinstance(value, int | float)
    if plain is int:
        # Other languages send every number as a float.
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if plain is str:
        # A text of pulumi.Input may be the number that another resource gives.
        return isinstance(value, str | int | float if takes_output(kind) else str)
    return True


def takes_output(kind: Hint) -> bool:
    """Whether a value of this type, or a value in it, may be an Output."""
    return "Output" in str(kind)


def is_output(value: object) -> bool:
    """Whether a value itself, and not a value in it, is an Output or an awaitable."""
    return not isinstance(value, Mapping | list | tuple) and has_output(value)


def _plain(kind: Hint) -> Hint:
    """The type `T` of `pulumi.Input[T]`; another type unchanged."""
    return typing.get_args(kind)[0] if takes_output(kind) else kind


def _wrong_type(name: str, value: object, write: str, for_output: str = "") -> str:
    """The mistake; for an Output the text `for_output`, if there is one."""
    if is_output(value):
        default = f"is an Output; write {write}, whose values may be Outputs"
        return f"{name} {for_output or default}"
    # The value itself is not shown: it may be a password.
    return f"{name} is {_type_in_words(value)}; write {write}"


def _type_in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    return _TYPES_IN_WORDS.get(type(value), f"a {type(value).__name__}")


def _instead(key: str, kind: Hint) -> str:
    """What to write in place of an unknown argument."""
    names = _spelt_fields(kind)
    near = spelt_like(key, names)
    return f"write {near}" if near else f"write {listed(names, limit=40)}"


def _spelt_fields(kind: Hint) -> list[str]:
    return [_spelt(name) for name in fields_of(kind)]


def _spelt(name: str) -> str:
    """A field's name in the language of the running program."""
    return _SPELLING.get()(name)
