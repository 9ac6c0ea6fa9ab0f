"""How one KAI shares GPUs: a switch, or a mode of its own."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from kai_fleet.settings.sections.model import Strict
from kubectl_fleet.releases.sharing import SharingMode, of_switch


def _or_switch(schema: dict[str, Any]) -> None:
    """The JSON Schema: true, false, or the mapping."""
    schema["anyOf"] = [{"type": "boolean"}, {"$ref": schema.pop("$ref")}]


class GpuSharing(Strict):
    """How pods share a GPU: true (NonMemoryEnforced), false (Disabled), or a mode."""

    mode: SharingMode = Field(
        description="Disabled; NonMemoryEnforced: by agreement; HamiCore (KAI from v0.16) and"
        " NvFractions (from v0.18): a pod gets no more GPU memory than it asks for.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_switch(cls, value: Any) -> Any:
        return {"mode": of_switch(value)} if isinstance(value, bool) else value


Sharing = Annotated[GpuSharing, Field(json_schema_extra=_or_switch)]


def default() -> GpuSharing:
    """Where nothing is written: on, by agreement."""
    return GpuSharing(mode=of_switch(True))
