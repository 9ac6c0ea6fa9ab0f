"""The examples of the pages, each written once as data and shown in every language."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import yaml

from kai_fleet.package import served_schema
from kai_fleet.provider import PACKAGE

Json = Mapping[str, Any]
_CLUSTER: Final = {"name": "lab", "kubeconfig": "${kubeconfig}"}
_TREE: Final = {
    "ml": {"children": {"train": {"gpu": {"quota": 3}}, "serve": {"gpu": {"quota": 1}}}}
}
_VIRTUAL: Final = {"mode": "virtual", "version": "v0.16.8"}

# A component's name, and its inputs; `${kubeconfig}` is a secret of the program's configuration.
GIVEN: Final[Mapping[str, tuple[str, Json]]] = {
    "Platform": (
        "lab",
        {
            "cluster": _CLUSTER,
            "gpu": {"provider": "operator"},
            "teams": {
                "ml": {
                    "scheduler": _VIRTUAL,
                    "nodePool": {"pool": "ml"},
                    "gpus": 4,
                    "queues": _TREE,
                }
            },
        },
    ),
    "Team": (
        "ml",
        {
            "cluster": _CLUSTER,
            "scheduler": _VIRTUAL,
            "nodePool": {"pool": "ml"},
            "gpus": 4,
            "queues": _TREE,
        },
    ),
    "VirtualCluster": (
        "ml",
        {"cluster": _CLUSTER, "namespace": "ml", "version": "v0.36.1", "nodePool": {"pool": "ml"}},
    ),
    "KaiScheduler": ("kai", {"cluster": _CLUSTER, "version": "v0.16.8"}),
    "QueueTree": ("research", {"cluster": _CLUSTER, "queues": _TREE}),
    "QueueGuard": ("guard", {"cluster": _CLUSTER, "team": "ml", "queues": ["train", "serve"]}),
    "HostGuard": (
        "guard",
        {"cluster": _CLUSTER, "team": "ml", "namespace": "ml", "pool": {"pool": "ml"}},
    ),
    "GpuStack": ("gpu", {"cluster": _CLUSTER, "provider": "operator"}),
    "GpuPod": (
        "smi",
        {
            "cluster": _CLUSTER,
            "image": "nvidia/cuda:12.8.0-base-ubuntu24.04",
            "command": ["nvidia-smi"],
            "queue": "train",
            "gpu": {"fraction": 0.5},
        },
    ),
    "GpuDeployment": (
        "workers",
        {
            "cluster": _CLUSTER,
            "image": "registry.example.com/worker:1.2",
            "replicas": 2,
            "queue": "serve",
            "gpu": {"devices": 1},
        },
    ),
    "VllmServer": (
        "qwen",
        {
            "cluster": _CLUSTER,
            "model": "Qwen/Qwen2.5-1.5B-Instruct",
            "queue": "serve",
            "gpu": {"fraction": 0.5},
        },
    ),
}
_SECRET: Final = "${kubeconfig}"


def of(component: str) -> dict[str, str]:
    """The example of a component, by language."""
    name, inputs = GIVEN[component]
    return {
        "TypeScript": _typescript(component, name, inputs),
        "Python": _python(component, name, inputs),
        "Go": _go(component, name, inputs),
        "YAML": _yaml(component, name, inputs),
    }


def _typescript(component: str, name: str, inputs: Json) -> str:
    body = _literal(inputs, 0, lambda key: key if re.fullmatch(r"\w+", key) else f'"{key}"')
    body = body.replace(f'"{_SECRET}"', 'config.requireSecret("kubeconfig")')
    return f'new fleet.{component}("{name}", {body});\n'


def _python(component: str, name: str, inputs: Json) -> str:
    arguments = []
    for key, value in inputs.items():
        item = _literal(_snake_keys(value, f"{component}.{key}"), 1, lambda key: f'"{key}"')
        arguments.append(f"    {_snake(key)}={item},")
    body = "\n".join(arguments).replace(f'"{_SECRET}"', 'config.require_secret("kubeconfig")')
    return f'fleet.{component}(\n    "{name}",\n{body}\n)\n'


def _yaml(component: str, name: str, inputs: Json) -> str:
    resource = {name: {"type": f"{PACKAGE}:{component}", "properties": inputs}}
    text: str = yaml.safe_dump(json.loads(json.dumps(resource)), sort_keys=False)
    return text


def _go(component: str, name: str, inputs: Json) -> str:
    schema = served_schema()
    properties = schema["resources"][f"{PACKAGE}:index:{component}"]["inputProperties"]
    lines = [f'kaifleet.New{component}(ctx, "{name}", &kaifleet.{component}Args{{']
    for key, value in inputs.items():
        lines.append(f"\t{_go_name(key)}: {_go_value(schema, properties[key], value, 1)},")
    return "\n".join([*lines, "})"]) + "\n"


def _go_value(schema: Json, of: Json, value: Any, depth: int) -> str:
    pad, end = "\t" * (depth + 1), "\t" * depth
    if "$ref" in of:
        token = str(of["$ref"]).removeprefix("#/types/")
        known, name = schema["types"][token], token.rpartition(":")[2]
        if "enum" in known:
            chosen = next(it["name"] for it in known["enum"] if it["value"] == value)
            return f"kaifleet.{name}{chosen}"
        items = [
            f"{pad}{_go_name(key)}: {_go_value(schema, known['properties'][key], item, depth + 1)},"
            for key, item in value.items()
        ]
        return "\n".join([f"kaifleet.{name}Args{{", *items, f"{end}}}"])
    if of["type"] == "array":
        return "pulumi.StringArray{" + ", ".join(f'pulumi.String("{it}")' for it in value) + "}"
    if "additionalProperties" in of:
        inner = of["additionalProperties"]
        kind = "pulumi.String"
        if "$ref" in inner:
            kind = f"kaifleet.{str(inner['$ref']).rpartition(':')[2]}"
        items = [
            f'{pad}"{key}": {_go_value(schema, inner, item, depth + 1)},'
            for key, item in value.items()
        ]
        return "\n".join([f"{kind}Map{{", *items, f"{end}}}"])
    if value == _SECRET:
        return 'config.RequireSecret(ctx, "kubeconfig")'
    kinds = {"string": "String", "integer": "Int", "number": "Float64", "boolean": "Bool"}
    return f"pulumi.{kinds[of['type']]}({json.dumps(value)})"


def _literal(value: Any, depth: int, key: Any) -> str:
    """A value as TypeScript and Python write it: in one line where it is short."""
    if not isinstance(value, Mapping):
        return json.dumps(value)
    items = [f"{key(name)}: {_literal(item, depth + 1, key)}" for name, item in value.items()]
    inside = ", ".join(items)
    short = f"{{{inside}}}" if items[0].startswith('"') else f"{{ {inside} }}"
    if len(short) + 4 * depth <= 76 and "\n" not in short:
        return short
    pad = "    " * depth
    return "{\n" + "".join(f"{pad}    {item},\n" for item in items) + f"{pad}}}"


def _snake_keys(value: Any, place: str) -> Any:
    """The keys of types as Python's SDK has them; the keys of maps are names, and stay."""
    if not isinstance(value, Mapping):
        return value
    maps = place.endswith((".nodePool", ".pool", ".queues", ".teams", ".children", ".labels"))
    return {
        key if maps else _snake(key): _snake_keys(item, f"{place}.{'*' if maps else key}")
        for key, item in value.items()
    }


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _go_name(name: str) -> str:
    return name[:1].upper() + name[1:]
