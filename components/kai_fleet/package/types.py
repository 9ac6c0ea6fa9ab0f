"""Types of the settings models as types of a Pulumi schema."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, TypeAdapter
from pydantic.fields import FieldInfo

from kai_fleet.package.results import TeamResult
from kai_fleet.provider.tokens import PACKAGE
from kai_fleet.settings import quantities
from kai_fleet.settings.sections import queues
from kai_fleet.settings.sections import scheduling as kai_scheduling
from kai_fleet.settings.sections import workloads as kai_workloads
from kai_fleet.settings.sections.cluster import Cluster
from kai_fleet.settings.sections.gpu_share import GpuShare
from kai_fleet.settings.sections.guard import Guard
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.platform import Gpu, HostKai
from kai_fleet.settings.sections.teams import Scheduler, Team, Vcluster

Json = dict[str, Any]
# The names of types that would be a component's, or another type's, in some language.
_NAMES: Final[Mapping[Any, str]] = {
    Cluster: "PlatformCluster",
    Gpu: "GpuProvider",
    Guard: "GuardSettings",
    HostKai: "HostScheduler",
    Isolation: "IsolationSettings",
    Scheduler: "TeamScheduler",
    Team: "TeamSettings",
    TeamResult: "TeamSummary",
    Vcluster: "VclusterSettings",
    GpuShare: "GpuRequest",
    queues.Queue: "QueueSettings",
    queues.Share[quantities.Cpu]: "CpuShare",
    queues.Share[quantities.Memory]: "MemoryShare",
    queues.Share[quantities.Gpu]: "GpuShare",
    kai_scheduling.Placement: "ShardPlacement",
    kai_workloads.Placement: "TopologyPlacement",
    kai_workloads.Workload: "WorkloadSettings",
}
# Numbers in JSON, where a stack file takes text as well; -1 stands for unlimited.
_AS_NUMBERS: Final = ("GpuShare",)


class Types:
    """The types that were asked for, by token, as the schema lists them."""

    def __init__(self) -> None:
        self.found: dict[str, Json] = {}

    def properties(self, model: type[BaseModel], *, defaults: bool = False) -> Json:
        """The properties of a model by their names in the schema.

        `defaults`: say a default as one. SDKs write it out then, so that nobody can tell any more
        whether it was left out: only where that makes no difference.
        """
        return {
            _called(name, field): self._property(model, name, field, defaults)
            for name, field in model.model_fields.items()
        }

    def _property(
        self, model: type[BaseModel], name: str, field: FieldInfo, defaults: bool
    ) -> Json:
        owner = _name(model)
        found = self._type(field.annotation, f"{owner}{_upper(name)}", field, owner)
        said = field.description or _docstring(field.annotation)
        plain = isinstance(field.default, bool | int | float | str)
        if plain and owner not in _AS_NUMBERS and not isinstance(field.default, float):
            if defaults:
                found["default"] = field.default
            default = str(field.default)
            default = default.lower() if isinstance(field.default, bool) else default
            said = f"{said} Default: {default}." if said else said
        return {**found, **({"description": said} if said else {})}

    def _type(self, given: Any, called: str, field: FieldInfo | None, owner: str) -> Json:
        inner = _bare(given)
        origin = get_origin(inner)
        if inner is SecretStr:
            return {"type": "string", "secret": True}
        if inner is Any:
            return {"$ref": "pulumi.json#/Any"}
        if origin is Literal:
            return self._enum(called, get_args(inner))
        if origin is dict:
            item = self._type(get_args(inner)[1], called, None, owner)
            secret = (
                {"secret": True} if item.pop("secret", False) else {}
            )  # a property's, no type's
            return {"type": "object", "additionalProperties": item, **secret}
        if origin is list:
            return {"type": "array", "items": self._type(get_args(inner)[0], called, None, owner)}
        if inspect.isclass(inner) and issubclass(inner, BaseModel):
            return self._object(inner)
        return {"type": _scalar(given, field, owner)}

    def _object(self, model: type[BaseModel]) -> Json:
        token = f"{PACKAGE}:index:{_name(model)}"
        if token not in self.found:
            self.found[token] = {}  # a queue's children are queues
            self.found[token] = {
                "type": "object",
                "description": _docstring(model),
                "properties": self.properties(model),
                "required": required(model),
            }
        return {"$ref": f"#/types/{token}"}

    def _enum(self, called: str, values: tuple[str, ...]) -> Json:
        token = f"{PACKAGE}:index:{_enum_name(called, values)}"
        self.found[token] = {
            "type": "string",
            "description": f"One of {', '.join(values)}.",
            "enum": [{"name": _upper(it), "value": it} for it in values],
        }
        return {"$ref": f"#/types/{token}"}


def required(model: type[BaseModel]) -> list[str]:
    """The names of the properties that have to be given."""
    return sorted(
        _called(name, field) for name, field in model.model_fields.items() if field.is_required()
    )


def _called(name: str, field: FieldInfo) -> str:
    return field.alias or name


def _bare(given: Any) -> Any:
    """Without `| None`, and without what an `Annotated` says of values."""
    origin = get_origin(given)
    if origin in (Union, types.UnionType):
        return _bare(next(it for it in get_args(given) if it is not type(None)))
    if hasattr(given, "__metadata__"):
        return _bare(given.__origin__)
    return given


def _scalar(given: Any, field: FieldInfo | None, owner: str) -> str:
    """`string`, `number`, `integer` or `boolean`; a quantity, which is text or number, is text."""
    annotated = given if field is None else _with_metadata(given, field)
    schema = TypeAdapter(annotated).json_schema()
    kinds = _kinds(schema)
    if kinds <= {"number", "integer"} or (owner in _AS_NUMBERS and "number" in kinds):
        return "integer" if kinds == {"integer"} else "number"
    return "boolean" if kinds == {"boolean"} else "string"


def _with_metadata(given: Any, field: FieldInfo) -> Any:
    return Annotated[(given, *field.metadata)] if field.metadata else given


def _kinds(schema: Json) -> set[str]:
    if "anyOf" in schema:
        return {kind for part in schema["anyOf"] for kind in _kinds(part)} - {"null"}
    kind = schema.get("type", "string")
    return set(kind) if isinstance(kind, list) else {kind}


def _name(model: Any) -> str:
    found: str = _NAMES.get(model) or re.sub(r"\W", "", model.__name__)
    return found


def _enum_name(called: str, values: tuple[str, ...]) -> str:
    """One enum for the same choice in several places."""
    return _ENUMS.get(values, called.replace("Inputs", ""))


_ENUMS: Final[Mapping[tuple[str, ...], str]] = {
    ("virtual", "host", "default"): "SchedulingMode",
    ("nvidia.com/gpu", "amd.com/gpu"): "GpuResource",
    ("operator", "device-plugin", "none"): "GpuStackProvider",
    get_args(kai_scheduling.Strategy): "PlacementStrategy",
}


def _upper(name: str) -> str:
    """`node_pool`, `nvidia.com/gpu` → `NodePool`, `NvidiaComGpu`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))


def _docstring(given: Any) -> str | None:
    inner = _bare(given)
    if get_origin(inner) is dict:
        inner = _bare(get_args(inner)[1])
    if not inspect.isclass(inner) or not issubclass(inner, BaseModel):
        return None
    said = next((it.__doc__ for it in inner.__mro__ if it.__doc__), "")
    return " ".join(said.split())
