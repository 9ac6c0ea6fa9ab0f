"""A stack of another cluster, in a shell that has the sandbox's variables.

With the backend its state would go to where `make down` deletes it, and its resources would stay.
With PULUMI_HOME alone the sandbox's plugins would run on that cluster, a stand-in among them.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import yaml

from kai_fleet.settings import Settings, key_path
from kai_fleet.settings.sections.cluster import Cluster
from kai_fleet_policies.problem import Problem, mandatory

RULE: Final = "sandbox-variables"
# Of an offline plan: it writes no state and runs no plugin, whatever the shell has.
WITHOUT_ENGINE: Final = ContextVar("WITHOUT_ENGINE", default=False)
_CONTEXT: Final = "kai-fleet-sandbox"


def problems(settings: Settings) -> list[Problem]:
    """What is wrong where the state would be the sandbox's and the cluster is not."""
    if WITHOUT_ENGINE.get():
        return []
    home = Path(os.environ.get("PULUMI_HOME", "/"))
    in_backend = os.environ.get("PULUMI_BACKEND_URL") == f"file://{home.parent / 'state'}"
    in_sandbox = home.name == "pulumi-home" and (
        in_backend or (home.parent / "kubeconfig").is_file()
    )
    sandbox = home.parent / "kubeconfig"
    other = _other(settings.cluster, sandbox, known=not in_backend) if in_sandbox else None
    if other is None:
        return []
    key, said = other
    if in_backend:
        harm = "the stack's state would be in the sandbox, and make down deletes it"
    else:
        harm = "the sandbox's plugins, a stand-in among them, would run on that cluster"
    return [
        mandatory(
            f"cluster {settings.cluster.name}",
            key_path(("cluster", key)),
            f"{said}, but this shell has the sandbox's variables: {harm}. Use another shell, or"
            " unset PULUMI_BACKEND_URL PULUMI_HOME PULUMI_CONFIG_PASSPHRASE KUBECONFIG"
            " KAI_FLEET_CHARTS",
            RULE,
        )
    ]


def _other(cluster: Cluster, sandbox: Path, *, known: bool) -> tuple[str, str] | None:
    """The key that names another cluster than the sandbox, and what it says; None for none.

    `known`: a kubeconfig that is encrypted in the file is not taken for another's. The program
    reads it, and asks again before anything is declared.
    """
    if cluster.kind is not None:
        return "kind", "makes a cluster of its own"
    if cluster.kubeconfig is not None:
        servers = _servers(cluster.kubeconfig.get_secret_value())
        try:
            own = _servers(sandbox.read_text(encoding="utf-8"))
        except OSError:
            own = set()
        if servers & own or (known and not servers):
            return None
        return "kubeconfig", "is of another cluster"
    if cluster.context in (None, _CONTEXT):
        return None
    return "context", f"is {cluster.context}"


def _servers(kubeconfig: str) -> set[str]:
    """The addresses of the API servers in a kubeconfig; none in one that cannot be read."""
    try:
        read: Any = yaml.safe_load(kubeconfig)
        return {str(entry["cluster"]["server"]) for entry in read["clusters"]}
    except (yaml.YAMLError, KeyError, TypeError):
        return set()
