"""The base of every settings model, and the keys that a model has at each place of a file."""

from collections.abc import Iterator, Mapping, Sequence
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
_FARTHEST: Final = 2  # steps from where a key stands to where it belongs


def fields(model: type[BaseModel] | None) -> dict[str | int, FieldInfo]:
    """A model's fields by their keys in the file."""
    own = model.model_fields.items() if model else ()
    return {field.alias or name: field for name, field in own}


def says(section: Any, keys: Sequence[str]) -> bool:
    """Whether a section of the file, or a mapping in it, has something at these keys."""
    for done, key in enumerate(keys):
        if isinstance(section, BaseModel):
            named = {it.alias or name: name for name, it in type(section).model_fields.items()}
            if named.get(key) not in section.model_fields_set:
                return False
            section = getattr(section, named[key])
        elif isinstance(section, Mapping):
            if key not in section:  # or a name with dots, which are no steps
                rest = f"{'.'.join(keys[done:])}."
                return any(rest.startswith(f"{name}.") for name in section)
            section = section[key]
        else:
            return section is not None
    return True


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


def places_of(key: str, location: Location, model: type[BaseModel]) -> list[Location]:
    """Where a key that is unknown at a place belongs: the nearest places where a file may have it,
    such as `("teams", "ml", "vcluster", "storageClass")`. Empty where none is near.
    """
    found: dict[Location, int] = {}
    for place in _sections(model):
        known = {str(name).lower(): name for name in fields(model_at(place, model))}
        if key.lower() not in known:
            continue
        same = 0
        for one, other in zip(place, location, strict=False):
            if one not in (NAMED, other):
                break
            same += 1
        named = (*location[:same], *("NAME" if it == NAMED else it for it in place[same:]))
        found[(*named, known[key.lower()])] = len(place) + len(location) - 2 * same
    least = min(found.values(), default=_FARTHEST + 1)
    return [place for place, steps in found.items() if steps == least <= _FARTHEST]


def secret_places(model: type[BaseModel]) -> Iterator[Location]:
    """Every key that holds a secret; `*` stands for a name."""
    for place in _sections(model):
        for key, field in fields(model_at(place, model)).items():
            if SecretStr in (field.annotation, *get_args(field.annotation)):
                yield (*place, key)


def _sections(
    model: type[BaseModel], above: Location = (), seen: tuple[type[BaseModel], ...] = ()
) -> Iterator[Location]:
    """Every mapping of fixed keys; `*` stands for a name. A queue below a queue is left out."""
    if model in seen:
        return
    yield above
    for key, field in fields(model).items():
        here, place = _without_options(field.annotation), (*above, key)
        while get_origin(here) is dict:
            here, place = _without_options(get_args(here)[-1]), (*place, NAMED)
        if isinstance(here, type):
            yield from _sections(here, place, (*seen, model))


def _without_options(annotation: Any) -> Any:
    """The model, mapping or list in `X`, `X | None` or an annotated one; None for others."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (dict, list):
        return annotation
    inner = (_without_options(arg) for arg in get_args(annotation))
    return next((it for it in inner if it is not None), None)
