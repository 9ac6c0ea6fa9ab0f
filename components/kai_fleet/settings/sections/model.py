"""The base of every settings model: strict, frozen, camelCase in the stack file."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


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
