"""The base of every settings model: strict, frozen, camelCase in the stack file."""

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
