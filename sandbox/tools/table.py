"""The tools of the sandbox, as `table.yaml` has them, and the names that code knows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml
from pydantic import TypeAdapter

from sandbox.tools.specs import Bundle

KUBERNETES_PROVIDER: Final = "pulumi-resource-kubernetes"
COMMAND_PROVIDER: Final = "pulumi-resource-command"
POLICY_LAUNCHER: Final = "pulumi-analyzer-policy-python"
LANGUAGE_HOST: Final = "pulumi-language-python"
YAML_HOST: Final = "pulumi-language-yaml"

BUNDLES: Final = TypeAdapter(tuple[Bundle, ...]).validate_python(
    yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
)
ON_PATH: Final = {name: check for bundle in BUNDLES for name, check in bundle.tools.items()}
