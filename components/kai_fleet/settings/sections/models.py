"""The base of every settings model, kinds of validators, and the fields at a place of a file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Self, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SecretStr,
    StringConstraints,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from kai_fleet.wording import MASK, listed

Location = tuple[str | int, ...]
SET_SECRET: Final = "`pulumi config set --secret --path`"  # a message has the whole command
Wrong = Iterator[tuple[str, str]]  # keys, and what is wrong there: `cause; fix`


class Grants(Enum):
    """What a field lets a team do, where more of it is not simply more."""

    NOTHING = "whatever it is"
    LESS = "the more there is of it, or if it is true"
    OTHER = "by any other value, fewer ones too"
    MOST_UNSET = "everything where it is unset or empty"


@dataclass(frozen=True)
class Rising:
    """The values of a field, from what lets a team do the least."""

    values: tuple[str, ...]


class Strict(BaseModel):
    """A mapping whose keys are all known, typed, and not converted from other types."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,  # a mistake in a kubeconfig must not print it
        allow_inf_nan=False,
    )

    @classmethod
    def key_of(cls, name: str) -> str:
        """A field's key in the stack file."""
        return cls.model_fields[name].alias or name

    @property
    def written(self) -> dict[str, Any]:
        """What is written here, without defaults."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    def over(self, own: Self | None) -> Self:
        """This one, of a stack, with what a team says for itself."""
        return self if own is None else self.model_copy(update=own.written)

    def useless(self, name: str, kinds_by_field: Mapping[str, Sequence[str]]) -> Wrong:
        """The keys that are written here and read only where the field `name` has other values."""
        kind, key = getattr(self, name), self.key_of(name)
        for field, kinds in kinds_by_field.items():
            if self.written.get(field) and kind not in kinds:
                fix = f"write {listed([f'{key}: {each}' for each in kinds])}, or drop it"
                yield self.key_of(field), f"has no use with {key} {kind}; {fix}"


def below(key: str, wrong: Wrong) -> Wrong:
    """The mistakes of a section, at their keys below its own."""
    return ((f"{key}.{path}", message) for path, message in wrong)


def like(pattern: str, longest: int = 253) -> StringConstraints:
    """Take texts of this form; what to write instead is in `mistakes`, by the form's beginning."""
    return StringConstraints(pattern=pattern, max_length=longest)


def short_for(key: str, kinds: Any, forms: Any) -> BeforeValidator:
    """Take a value alone for the mapping with that key: `gpu: 12` for `gpu: {quota: 12}`."""

    def whole(value: Any) -> Any:
        return {key: value} if isinstance(value, kinds) else value

    return BeforeValidator(whole, json_schema_input_type=forms)


def refuse(is_wrong: Callable[[Any], bool], sentence: str) -> AfterValidator:
    """Refuse values, also those for which the check itself raises ValueError; the sentence, which
    may have {value}, says why and what to write.
    """

    def check(value: Any) -> Any:
        with suppress(ValueError):
            if not is_wrong(value):
                return value
        raise ValueError(sentence.replace("{value}", repr(value)[:80]))

    return AfterValidator(check)


def refuse_secret(is_wrong: Callable[[str], bool], sentence: str) -> AfterValidator:
    """Refuse what was decrypted: only the engine's program has it. The sentence shows none of it.

    Who moves a ciphertext to a key that others read finds that another kind of secret is refused.
    """

    def is_refused(secret: SecretStr | None) -> bool:
        text = MASK if secret is None else secret.get_secret_value()
        return text != MASK and is_wrong(text)

    return refuse(is_refused, sentence)


def fields_beside(place: Location, model: Any) -> dict[str | int, FieldInfo]:
    """The fields that there are at a place of the file and beside it; none below a free key."""
    if len(place) > 1 and get_origin(model) in (dict, list):
        return fields_beside(place[1:], _without_options(get_args(model)[-1]))
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        return {}
    known = model.model_fields.items()
    fields: dict[str | int, FieldInfo] = {field.alias or name: field for name, field in known}
    if len(place) < 2:
        return fields
    field = fields.get(place[0])
    return fields_beside(place[1:], _without_options(field.annotation)) if field else {}


def _without_options(annotation: Any) -> Any:
    """The model, mapping or list in `X`, `X | None` or an annotated one; None for others."""
    if get_origin(annotation) in (dict, list):
        return annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_without_options(arg) for arg in get_args(annotation))
    return next((found for found in inner if found is not None), None)
