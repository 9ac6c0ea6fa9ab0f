"""The schema of the package, as Pulumi generates every language's SDK from it.

From the annotations of the models, not from pydantic's JSON Schema: that one has alternatives, file
names and patterns for which Pulumi has no types, and one definition for shares of any resource.
"""

import inspect
import json
import re
import types
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr, TypeAdapter
from pydantic.fields import FieldInfo

from kai_fleet.package.arguments import ARGUMENTS, ClusterInput
from kai_fleet.package.outputs import OUTPUTS
from kai_fleet.provider import PACKAGE, version
from kai_fleet.settings.sections import (
    access,
    gpu_share,
    isolation,
    kubernetes,
    platform,
    queues,
    teams,
    vcluster,
    workloads,
)

Json = dict[str, Any]
# In these a key that is written out means more than its default.
_LEFT_OUT: Final = ("Platform", "Team", "VirtualCluster")
# The names of types that would be a component's, or another type's, in some language.
_TYPE_NAMES: Final[Mapping[Any, str]] = {
    ClusterInput: "HostCluster",
    access.Cluster: "PlatformCluster",
    platform.Gpu: "GpuProvider",
    isolation.Guard: "GuardSettings",
    platform.HostKai: "HostScheduler",
    isolation.Isolation: "IsolationSettings",
    teams.Scheduler: "TeamScheduler",
    vcluster.Vcluster: "VclusterSettings",
    gpu_share.GpuShare: "GpuRequest",
    queues.Queue: "QueueSettings",
    queues.Share[kubernetes.Cpu]: "CpuShare",
    queues.Share[kubernetes.Memory]: "MemoryShare",
    queues.Share[kubernetes.Gpu]: "GpuShare",
    platform.Placement: "ShardPlacement",
    workloads.Workload: "WorkloadSettings",
}
# One enum for the same choice in several places.
_ENUM_NAMES: Final[Mapping[tuple[str, ...], str]] = {
    ("virtual", "host", "default"): "SchedulingMode",
    ("nvidia.com/gpu", "amd.com/gpu"): "GpuResource",
    ("operator", "device-plugin", "none"): "GpuStackProvider",
    get_args(platform.Strategy): "PlacementStrategy",
}
# Numbers in JSON, where a stack file takes text as well; -1 stands for unlimited.
_AS_NUMBERS: Final = ("GpuShare",)


def schema() -> Json:
    """All of it, from the models of the inputs and the outputs."""
    types_of_models = _Types()
    resources = {
        f"{PACKAGE}:index:{name}": {
            "isComponent": True,
            "description": _docstring(model),
            "inputProperties": types_of_models.properties(model, defaults=name not in _LEFT_OUT),
            "requiredInputs": _required(model),
            "properties": types_of_models.properties(OUTPUTS[name]),
            "required": _required(OUTPUTS[name]),
            "type": "object",
        }
        for name, model in ARGUMENTS.items()
    }
    return {
        "name": PACKAGE,
        "displayName": "kai-fleet",
        # Else names in an SDK have the owner of the repository that the plugin came from.
        "namespace": PACKAGE,
        "version": version(),
        "description": "A Kubernetes and a KAI scheduler version per team on shared GPU nodes.",
        "keywords": ["kubernetes", "gpu", "kai-scheduler", "vcluster", "category/infrastructure"],
        "license": "Apache-2.0",
        "language": {
            "nodejs": {"respectSchemaVersion": True, "packageName": PACKAGE},
            "python": {
                "respectSchemaVersion": True,
                "pyproject": {"enabled": True},
                "packageName": "pulumi_kai_fleet",
            },
            "go": {"respectSchemaVersion": True, "generateResourceContainerTypes": True},
            "csharp": {"respectSchemaVersion": True, "rootNamespace": "Pulumi"},
            "java": {"basePackage": "com.pulumi"},
        },
        "config": {},
        "provider": {"type": "object"},
        "types": dict(sorted(types_of_models.by_token.items())),
        "resources": resources,
    }


def text() -> str:
    """The schema as the file in the repository has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


class _Types:
    """Types of a Pulumi schema, by token, for every model that a property leads to."""

    def __init__(self) -> None:
        self.by_token: dict[str, Json] = {}

    def properties(self, model: type[BaseModel], *, defaults: bool = False) -> Json:
        """The properties of a model by their names in the schema.

        `defaults`: give a default as one. SDKs write it out then, so that nobody can tell any more
        whether it was left out: only where that makes no difference.
        """
        return {
            field.alias or name: self._property(model, name, field, defaults)
            for name, field in model.model_fields.items()
        }

    def _property(
        self, model: type[BaseModel], name: str, field: FieldInfo, defaults: bool
    ) -> Json:
        owner = _type_name(model)
        enum = f"{owner}{_upper(name)}".replace("Inputs", "")
        annotation: Any = field.annotation
        if field.metadata:
            annotation = Annotated[(annotation, *field.metadata)]
        result = self._type(annotation, enum, owner)
        description = field.description or _docstring(field.annotation)
        default = field.default
        if isinstance(default, bool | int | str) and owner not in _AS_NUMBERS:
            if defaults:
                result["default"] = default
            shown = str(default).lower() if isinstance(default, bool) else default
            description = f"{description} Default: {shown}." if description else description
        return {**result, **({"description": description} if description else {})}

    def _type(self, annotation: Any, enum: str, owner: str) -> Json:
        """A property's type; `enum` names the enum of one that is a choice."""
        bare = _bare(annotation)
        arguments, origin = get_args(bare), get_origin(bare)
        if bare is SecretStr:
            return {"type": "string", "secret": True}
        if bare is Any:
            return {"$ref": "pulumi.json#/Any"}
        if origin is Literal:
            return self._enum(_ENUM_NAMES.get(arguments, enum), arguments)
        if origin is dict:
            item = self._type(arguments[1], enum, owner)
            # That a value is secret is said of a property, not of a type.
            secret = {"secret": True} if item.pop("secret", False) else {}
            return {"type": "object", "additionalProperties": item, **secret}
        if origin is list:
            return {"type": "array", "items": self._type(arguments[0], enum, owner)}
        if bare is gpu_share.GpuSharing:
            # As it was. A program writes a mode as a value of the chart.
            return {"type": "boolean"}
        if inspect.isclass(bare) and issubclass(bare, BaseModel):
            return self._object(bare)
        return {"type": _scalar(annotation, owner)}

    def _object(self, model: type[BaseModel]) -> Json:
        token = f"{PACKAGE}:index:{_type_name(model)}"
        if token not in self.by_token:
            self.by_token[token] = {}  # a queue's children are queues
            self.by_token[token] = {
                "type": "object",
                "description": _docstring(model),
                "properties": self.properties(model),
                "required": _required(model),
            }
        return {"$ref": f"#/types/{token}"}

    def _enum(self, name: str, values: tuple[str, ...]) -> Json:
        token = f"{PACKAGE}:index:{name}"
        self.by_token[token] = {
            "type": "string",
            "description": f"One of {', '.join(values)}.",
            "enum": [{"name": _upper(it), "value": it} for it in values],
        }
        return {"$ref": f"#/types/{token}"}


def _required(model: type[BaseModel]) -> list[str]:
    fields = model.model_fields.items()
    return sorted(field.alias or name for name, field in fields if field.is_required())


def _bare(annotation: Any) -> Any:
    """Without `| None`, and without what an `Annotated` says of values."""
    if get_origin(annotation) in (Union, types.UnionType):
        return _bare(next(it for it in get_args(annotation) if it is not type(None)))
    if hasattr(annotation, "__metadata__"):
        return _bare(annotation.__origin__)
    return annotation


def _scalar(annotation: Any, owner: str) -> str:
    """`string`, `number`, `integer` or `boolean`; a quantity, which is text or number, is text."""
    # What a stack file takes as a mapping besides, a program writes in isolation.devices.
    kinds = _json_kinds(TypeAdapter(annotation).json_schema()) - {"object"}
    if kinds <= {"number", "integer"} or (owner in _AS_NUMBERS and "number" in kinds):
        return "integer" if kinds == {"integer"} else "number"
    return "boolean" if kinds == {"boolean"} else "string"


def _json_kinds(json_schema: Json) -> set[str]:
    if "anyOf" in json_schema:
        return {kind for part in json_schema["anyOf"] for kind in _json_kinds(part)} - {"null"}
    kind = json_schema.get("type", "string")
    return set(kind) if isinstance(kind, list) else {kind}


def _type_name(model: type[BaseModel]) -> str:
    return _TYPE_NAMES.get(model) or re.sub(r"\W", "", model.__name__)


def _upper(name: str) -> str:
    """`node_pool`, `nvidia.com/gpu` → `NodePool`, `NvidiaComGpu`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))


def _docstring(annotation: Any) -> str | None:
    """That of a model, or of the models in a mapping, on one line."""
    bare = _bare(annotation)
    if get_origin(bare) is dict:
        bare = _bare(get_args(bare)[1])
    if not inspect.isclass(bare) or not issubclass(bare, BaseModel):
        return None
    docstring = next((it.__doc__ for it in bare.__mro__ if it.__doc__), "")
    return " ".join(docstring.split())


if __name__ == "__main__":
    print(text(), end="")
