"""The schema of the package, as Pulumi generates every language's SDK from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from kai_fleet.package.arguments import ARGUMENTS
from kai_fleet.package.results import RESULTS
from kai_fleet.package.types import Json, Types, required
from kai_fleet.provider.tokens import PACKAGE
from kai_fleet.provider.version import version

FILE: Final = Path(__file__).parent / "schema.json"


def schema() -> Json:
    """All of it, from the models of the arguments and the results."""
    types = Types()
    resources = {
        f"{PACKAGE}:index:{name}": {
            "isComponent": True,
            "description": " ".join((model.__doc__ or "").split()),
            "inputProperties": types.properties(model, defaults=name not in _LEFT_OUT),
            "requiredInputs": required(model),
            "properties": types.properties(RESULTS[name]),
            "required": required(RESULTS[name]),
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
        "types": dict(sorted(types.found.items())),
        "resources": resources,
    }


# In these a key that is written out means more than its default.
_LEFT_OUT: Final = ("Platform", "Team", "VirtualCluster")


def text() -> str:
    """The schema as the file in the repository has it."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def served() -> Any:
    """What the plugin answers: the file, which ships with the package."""
    return json.loads(FILE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    print(text(), end="")
