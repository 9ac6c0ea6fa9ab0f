"""Refuse arguments of a component that its TypedDict does not describe, all of them at once."""

import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import pulumi

from kai_fleet.declaring.inputs import has_output
from kai_fleet.marks import REFUSAL, paths_of_marks
from kai_fleet.wording import listed, spelt_like

Texts = Mapping[str, Collection[str]]
# A type as an annotation of a TypedDict gives it: a class, `Sequence[str]`, `pulumi.Input[str]`,
# `pulumi.Input[str] | HostGuards`, Any.
Hint = object
# What to write for a type that is no mapping and no list.
_WRITE: Mapping[Hint, str] = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "a text between quotes",
}
_TYPES_IN_WORDS = {
    bool: "true or false",
    str: "a text",
    list: "a list",
    int: "a number",
}
_DECIDES = (
    "is an Output, and decides which resources are declared; write a plain value, such as one of"
    " pulumi.Config"
)
# Whether the running program is in Python: it writes `use_existing`, others `useExisting`, and
# only it passes components.
_IN_PYTHON: ContextVar[bool] = ContextVar("in_python", default=True)


@dataclass(frozen=True)
class Allowed:
    """What a component accepts and requires, in addition to the types of its arguments.

    Args:
        choices: allowed texts of a field, or of the values in it, by its dotted name.
        needs: fields that are required beside a field with choices that has this text, by the text.
        short: the field that a plain value sets if it replaces a TypedDict, by the TypedDict.
        quantities: fields with numbers and texts, which the component checks itself: here any value
            of them passes, None too.
        replaces: fields that may not be given beside another one, by that other one.

    The names in `needs`, `quantities` and `replaces` are Python's, without dots, and hold in every
    TypedDict that has such fields.
    """

    choices: Texts = field(default_factory=dict)
    needs: Texts = field(default_factory=dict)
    short: Mapping[Hint, str] = field(default_factory=dict)
    quantities: Collection[str] = ()
    replaces: Texts = field(default_factory=dict)

    def below(self, field: str) -> dict[str, Collection[str]]:
        """The choices for a component that takes these arguments in this field of its own."""
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
        kind: the TypedDict of `args`. Fields of type pulumi.Input or Any may be Outputs.
        allowed: what the component accepts and requires besides; None for nothing.
        more: gives further mistakes; called only if this check finds none.

    Raises:
        pulumi.RunError: arguments are unknown, missing, contradicting, of another type or none of
            the choices, or have a mark of Pulumi's protocol; or an Output decides which resources
            are declared. The message has a line for each mistake.
    """
    mistakes = [f"{'.'.join(map(str, path))} {REFUSAL}" for path in paths_of_marks(args)]
    mistakes += _Checker(allowed or Allowed()).of_value("", kind, args, choices_at="")
    mistakes = mistakes or list(more())
    if mistakes:
        raise pulumi.RunError("\n".join(f"{component}: {mistake}" for mistake in mistakes))


@contextmanager
def other_language() -> Iterator[None]:
    """While it is open, messages name arguments as other languages do, `useExisting`, and a field
    that takes only components is unknown. Arguments still have Python's names.
    """
    token = _IN_PYTHON.set(False)
    try:
        yield
    finally:
        _IN_PYTHON.reset(token)


def camel(name: str) -> str:
    """A field's name in other languages, as the SDK derives it: `use_existing` is `useExisting`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


@cache
def fields_of(kind: Any) -> Mapping[str, Hint]:
    """Types of the fields of a TypedDict, without NotRequired around them."""
    # The SDK's alias Input names Output and its type variable by texts.
    return get_type_hints(kind, localns={"Output": pulumi.Output, "T": Any})


@dataclass(frozen=True)
class _Checker:
    """Finds the mistakes in arguments.

    `name` is a value's name in messages, spelt as in the program's language; "" for all arguments
    of the component. `allowed.choices` has the value's choices at `choices_at`: its dotted name, or
    that of the mapping or list that it is an entry of.
    """

    allowed: Allowed

    def of_value(self, name: str, kind: Hint, value: object, choices_at: str) -> Iterator[str]:
        """Mistakes in a value of type `kind`.

        Any takes every value. Else None fits nothing, a component what names its class, and an
        Output what `takes_output`.
        """
        if kind is Any or isinstance(value, components_of(kind)):
            return
        if value is None:
            yield f"{name} is None; leave it out"
            return
        if takes_output(kind) and is_output(value):
            return
        plain = _plain(kind)
        container = get_origin(plain) or plain
        if is_typeddict(plain):
            yield from self._of_typed_dict(name, plain, value)
        elif container is Mapping:
            yield from self._of_mapping(name, plain, value, choices_at)
        elif container is Sequence:
            yield from self._of_list(name, plain, value, choices_at)
        else:
            yield from _of_scalar(name, kind, value, self.allowed.choices.get(choices_at))

    def _of_typed_dict(self, name: str, kind: Any, value: object) -> Iterator[str]:
        """Mistakes in a TypedDict, and required fields that are absent or None.

        A value that is no mapping counts as the field that `allowed.short` names. Fields that
        `allowed.needs` adds are required only if `kind` has them.
        """
        short = self.allowed.short.get(kind)
        if short and not isinstance(value, Mapping):
            value = {short: value}
        if not isinstance(value, Mapping):
            write = f"a mapping with {listed(_spelt_fields(kind))}"
            yield _wrong_type(name or "its arguments", value, write)
            return
        prefix = f"{name}." if name else ""
        yield from self._of_names(kind, value, prefix)
        hints = _fields_here(kind)
        required = {*kind.__required_keys__}
        for key, hint in hints.items():
            given = value.get(key)
            choices_at = f"{prefix}{key}"
            if given is not None and key not in self.allowed.quantities:
                yield from self.of_value(f"{prefix}{_spelt(key)}", hint, given, choices_at)
            if choices_at in self.allowed.choices and isinstance(given, str):
                required.update(self.allowed.needs.get(given, ()))
        for key in hints:
            if value.get(key) is not None:
                continue
            if key in required:
                yield f"{prefix}{_spelt(key)} is missing; write it"
            elif key in value and key not in self.allowed.quantities:
                yield f"{prefix}{_spelt(key)} is None; leave it out"

    def _of_names(self, kind: Hint, value: Mapping[str, object], prefix: str) -> Iterator[str]:
        """Mistakes: unknown arguments, and those beside another one that replaces them.

        `prefix` is the name of `value` and a dot, or "" for the component. Only unknown arguments
        get it: the others are named as `allowed.replaces` names them.
        """
        hints = _fields_here(kind)
        names = _spelt_fields(kind)
        for key in value:
            if key not in hints:
                near = spelt_like(str(key), names) or listed(names, limit=40)
                yield f"{prefix}{key} is no argument; write {near}"
        for replacing, replaced in self.allowed.replaces.items():
            if replacing not in hints or value.get(replacing) is None:
                continue
            for key in replaced:
                if value.get(key) is not None:
                    yield f"{key} is given beside {replacing}, which replaces it; drop one of them"

    def _of_mapping(self, name: str, kind: Hint, value: object, choices_at: str) -> Iterator[str]:
        """Mistakes in a mapping and its values.

        None in place of a TypedDict in it is one.
        """
        value_kind = get_args(kind)[1]
        if not isinstance(value, Mapping):
            yield _wrong_type(
                name, value, "a mapping", "" if takes_output(value_kind) else _DECIDES
            )
            return
        for key, inner in value.items():
            path = f"{name}.{key}"
            if inner is None and is_typeddict(value_kind):
                yield f"{path} is empty; write {{}}, or drop it"
                continue
            yield from self.of_value(path, value_kind, inner, choices_at)

    def _of_list(self, name: str, kind: Hint, value: object, choices_at: str) -> Iterator[str]:
        """Mistakes in a list and its elements, all with the name of the list."""
        element_kind = get_args(kind)[0]
        if not isinstance(value, list | tuple):
            yield _wrong_type(name, value, "a list", "" if takes_output(element_kind) else _DECIDES)
            return
        for element in value:
            yield from self.of_value(name, element_kind, element, choices_at)


def _of_scalar(
    name: str, kind: Hint, value: object, choices: Collection[str] | None
) -> Iterator[str]:
    """The mistake in a text, a number or a boolean, or in place of a component; at most one.

    `of_value` has accepted components, and Outputs where they may be: what is left in their place
    is always a mistake. The first that applies: no component, an Output, a text that is none of
    the choices, another type.

    Args:
        choices: the texts that are allowed; None for any.
    """
    if components_of(kind) == (kind,):
        write = _in_words(kind)
        yield _wrong_type(name, value, write, f"is an Output; write {write}")
    elif has_output(value):
        yield f"{name} {_DECIDES}"
    elif choices is not None and isinstance(value, str) and value not in choices:
        yield f"{name} is {value!r}; write {listed([*choices])}"
    elif not _fits(kind, value):
        yield _wrong_type(name, value, _in_words(kind))


def _fits(kind: Hint, value: object) -> bool:
    """Whether a plain value has the type; any value fits a type that is not in _WRITE.

    A whole float is an int. With pulumi.Input a number or boolean is a text.
    """
    plain = _plain(kind)
    if plain not in _WRITE:
        return True
    if plain is str:
        # A text of pulumi.Input may be the number that another resource gives.
        return isinstance(value, str | int | float if takes_output(kind) else str)
    if plain is bool or isinstance(value, bool):
        return plain is type(value)
    if plain is int and isinstance(value, float):
        # Other languages send every number as a float.
        return value.is_integer()
    return isinstance(value, int | float)


def takes_output(kind: Hint) -> bool:
    """Whether a value of this type may itself be an Output: not only a value in it."""
    return any(get_origin(part) is pulumi.Output for part in get_args(kind))


def components_of(kind: Hint) -> tuple[type[pulumi.ComponentResource], ...]:
    """The components that a Python program may pass as a value of this type."""
    parts = get_args(kind) if _is_union(kind) else (kind,)
    return tuple(
        part
        for part in parts
        if isinstance(part, type) and issubclass(part, pulumi.ComponentResource)
    )


def is_output(value: object) -> bool:
    """Whether a value itself, and not a value in it, is an Output or an awaitable."""
    return not isinstance(value, Mapping | list | tuple) and has_output(value)


def _is_union(kind: Hint) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _plain(kind: Hint) -> Hint:
    """The type `T` of `pulumi.Input[T]`, alone or before components; another type unchanged."""
    return get_args(kind)[0] if _is_union(kind) else kind


def _in_words(kind: Hint) -> str:
    """What to write for a type that is no mapping and no list; components only in Python."""
    words = [f"a {component.__name__}" for component in components_of(kind) if _IN_PYTHON.get()]
    plain = _plain(kind)
    if plain in _WRITE:
        words.append(_WRITE[plain])
    return " or ".join(words)


def _wrong_type(name: str, value: object, write: str, for_output: str = "") -> str:
    """The mistake; for an Output the text `for_output`, if there is one.

    `write` completes "write", and `for_output` is a predicate of `name`.
    """
    if is_output(value):
        default = f"is an Output; write {write}, whose values may be Outputs"
        return f"{name} {for_output or default}"
    # The value itself is not shown: it may be a password.
    return f"{name} is {_type_in_words(value)}; write {write}"


def _type_in_words(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    return _TYPES_IN_WORDS.get(type(value), f"a {type(value).__name__}")


def _spelt_fields(kind: Hint) -> list[str]:
    return [_spelt(name) for name in _fields_here(kind)]


def _fields_here(kind: Hint) -> Mapping[str, Hint]:
    """Types of the fields that the running program's language has, by Python's names."""
    hints = fields_of(kind)
    if _IN_PYTHON.get():
        return hints
    return {name: hint for name, hint in hints.items() if hint not in components_of(hint)}


def _spelt(name: str) -> str:
    """A field's name in the language of the running program."""
    return name if _IN_PYTHON.get() else camel(name)
