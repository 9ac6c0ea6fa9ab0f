"""What the program imports, the typed Kubernetes API above all: a second of work, once."""

from __future__ import annotations

import importlib
from typing import Final

_MODULES: Final = (
    "components.team",
    "components.platform",
    "pulumi_kubernetes.core.v1",
    "pulumi_kubernetes.admissionregistration.v1",
    "pulumi_kubernetes.apiextensions.v1",
    "pulumi_kubernetes.helm.v3",
    "pulumi_kubernetes.node.v1",
    "pulumi_kubernetes.rbac.v1",
)


def load() -> None:
    """Import it, ahead of the program."""
    for module in _MODULES:
        getattr(importlib.import_module(module), "__all__", None)  # loaded at the first look
