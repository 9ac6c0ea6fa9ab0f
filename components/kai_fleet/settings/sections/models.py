"""The base of every settings model, and the keys that a model has at each place of a file."""

from collections.abc import Iterator
from typing import Any, Final, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, SecretStr
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo


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


Location = tuple[str | int, ...]
NAMED: Final = "*"  # a step over a name that the user chose


def fields(model: type[BaseModel] | None) -> dict[str | int, FieldInfo]:
    """A model's fields by their keys in the file."""
    own = model.model_fields.items() if model else ()
    return {field.alias or name: field for name, field in own}


def model_at(location: Location, model: type[BaseModel]) -> type[BaseModel] | None:
    """The settings model that describes a place of the file."""
    here: Any = model
    for part in location:
        if get_origin(here) in (dict, list):
            here = _without_options(get_args(here)[-1])
        else:
            field = fields(here).get(part)
            here = _without_options(field.annotation) if field else None
    return here if isinstance(here, type) else None


def secret_places(
    model: type[BaseModel], above: Location = (), seen: tuple[type[BaseModel], ...] = ()
) -> Iterator[Location]:
    """Every key that holds a secret; `*` stands for a name. Queues have none."""
    if model in seen:
        return
    for key, field in fields(model).items():
        here, place = _without_options(field.annotation), (*above, key)
        if SecretStr in (field.annotation, *get_args(field.annotation)):
            yield place
        while get_origin(here) is dict:
            here, place = _without_options(get_args(here)[-1]), (*place, NAMED)
        if isinstance(here, type):
            yield from secret_places(here, place, (*seen, model))


def _without_options(annotation: Any) -> Any:
    """The model, mapping or list in `X`, `X | None` or an annotated one; None for others."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (dict, list):
        return annotation
    inner = (_without_options(arg) for arg in get_args(annotation))
    return next((found for found in inner if found is not None), None)
