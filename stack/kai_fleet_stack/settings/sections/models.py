"""The base class of settings models, validators, and the fields at a path of a stack file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Any, ClassVar, Self, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from kai_fleet.wording import MASK, listed
from kai_fleet_policies.finding import Command
from kai_fleet_policies.key_paths import Location

T = TypeVar("T")
# Placeholder in messages: `secrets.with_command` replaces it by the complete command.
SET_SECRET = "`pulumi config set --secret --path`"
LIST_CONTEXTS = Command("kubectl config get-contexts")
# Mistakes: the key path, and what is wrong there as `cause; fix`.
Mistakes = Iterator[tuple[str, str]]


# Defaults of lists and of mappings: each section gets one of its own.
NO_ENTRIES: Any = Field(default_factory=list)
NO_KEYS: Any = Field(default_factory=dict)


class Grants(Enum):
    """What a field permits a team, if a larger value does not simply permit more.

    `fleet diff` finds by it the changes that permit a team more. A member reads on in its value:
    the field permits LESS if its value is larger, or true.
    """

    NOTHING = "whatever its value is"
    LESS = "if its value is larger, or true"
    OTHER = "by any other value, a smaller one too"
    MOST_UNSET = "if it is unset or empty"


@dataclass(frozen=True)
class Rising:
    """The values of a field, in the order from the least to the most that they permit a team."""

    values: tuple[str, ...]


class Strict(BaseModel):
    """A section of a stack file: unknown keys are refused, and values are not converted."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,  # a mistake in a kubeconfig must not print it
        allow_inf_nan=False,
    )

    described_by: ClassVar[Sequence[str]] = ()
    """TypedDicts of `kai_fleet` that describe the fields without a docstring: the first that has an
    argument of the field's name. The schema and docs/settings.md take its text.
    """

    @classmethod
    def key_of(cls, name: str) -> str:
        """A field's key in the stack file."""
        return cls.model_fields[name].alias or name

    @property
    def set_fields(self) -> dict[str, Any]:
        """The fields that the file sets, or that were filled in for it, by name; no defaults."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    def with_fields_of(self, team: Self | None) -> Self:
        """This section, of the stack, with the fields that a team's section sets over it.

        A section, list or mapping in a field of the team replaces that of the stack as a whole, an
        empty one and None too. Unchanged if the team has no section: None. The result is not
        validated again.
        """
        if team is None:
            return self
        return self.model_copy(update=team.set_fields)

    def useless(self, name: str, readers_by_field: Mapping[str, Sequence[str]]) -> Mistakes:
        """Fields that the file sets although the value of field `name` makes nothing read them.

        `readers_by_field` has, for each such field, the values of field `name` that read it; both
        are names in Python, and mistakes have the keys. Fields that were filled in count as set. An
        empty value, 0 and False are no mistake.
        """
        key = self.key_of(name)
        value = getattr(self, name)
        for field, readers in readers_by_field.items():
            if not self.set_fields.get(field) or value in readers:
                continue
            choices = [f"{key}: {reader}" for reader in readers]
            fix = f"write {listed(choices)}, or drop it"
            yield self.key_of(field), f"has no use with {key} {value}; {fix}"


def below(key: str, wrong: Mistakes) -> Mistakes:
    """The mistakes in the section at `key`, with `key` before their paths."""
    return ((f"{key}.{path}", message) for path, message in wrong)


def like(pattern: str, longest: int = 253) -> StringConstraints:
    """Accept texts that match the pattern, up to `longest` characters.

    The pattern has to begin with ^, and end with $ unless any text may follow, because a part that
    matches is enough. `mistakes.yaml` has to have words for its beginning: `form_of` takes the
    first that fit.
    """
    return StringConstraints(pattern=pattern, max_length=longest)


def short_for(key: str, kinds: type | UnionType, forms: object) -> BeforeValidator:
    """Accept a value of type `kinds` for the mapping `{key: value}`: 12 for `{quota: 12}`.

    `forms` is the type of all accepted values, for the schema.
    """

    def mapping(value: object) -> object:
        return {key: value} if isinstance(value, kinds) else value

    return BeforeValidator(mapping, json_schema_input_type=forms)


def refuse(is_wrong: Callable[[T], bool], sentence: str) -> AfterValidator:
    """Refuse values for which `is_wrong` is true or raises ValueError, whose text is not shown.

    `sentence` says why and what to write; `{value}` in it is replaced by the value as Python shows
    it, of a long one the first 80 characters.
    """

    def check(value: T) -> T:
        with suppress(ValueError):
            if not is_wrong(value):
                return value
        raise ValueError(sentence.replace("{value}", repr(value)[:80]))

    return AfterValidator(check)


def refuse_secret(is_wrong: Callable[[str], bool], sentence: str) -> AfterValidator:
    """Refuse decrypted texts for which `is_wrong` is true or raises ValueError.

    None passes, and so does MASK, which a plan has instead. `sentence` must not show the secret.
    Somebody who moves a ciphertext to another key, to read it there, is refused if that key is for
    another kind of secret.
    """

    def is_refused(secret: SecretStr | None) -> bool:
        if secret is None:
            return False
        text = secret.get_secret_value()
        return text != MASK and is_wrong(text)

    return refuse(is_refused, sentence)


def fields_beside(location: Location, model: object) -> dict[str | int, FieldInfo]:
    """The fields of the section that contains a path of the file, by their keys.

    Empty if the path leaves the models, such as below a chart's values, or ends at an entry of a
    mapping or list, such as a team.

    Args:
        location: the path from the model on, without `kai-fleet:`.
        model: a model, or the type of a mapping or list that has some; anything else has no fields.
    """
    if len(location) > 1 and get_origin(model) in (dict, list):
        return fields_beside(location[1:], _container(get_args(model)[-1]))
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        return {}
    fields: dict[str | int, FieldInfo] = {
        field.alias or name: field for name, field in model.model_fields.items()
    }
    if len(location) < 2:
        return fields
    field = fields.get(location[0])
    if field is None:
        return {}
    return fields_beside(location[1:], _container(field.annotation))


def _container(annotation: object) -> object:
    """The first model, mapping or list in `X`, `X | None` or `Annotated[X, …]`; else None."""
    if get_origin(annotation) in (dict, list):
        return annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        container = _container(argument)
        if container is not None:
            return container
    return None
