"""A stack of another cluster, in a shell that has the sandbox's variables.

With the backend its state would go to where `make down` deletes it, and its resources would stay.
With PULUMI_HOME alone the sandbox's plugins would run on that cluster, a stand-in among them.
"""

import os
from pathlib import Path
from typing import Final

from kai_fleet.settings import Settings, key_path
from kai_fleet.settings.sections.cluster import Cluster
from kubectl_fleet.rules.problem import Problem, mandatory

RULE: Final = "sandbox-variables"
_CONTEXT: Final = "kai-fleet-sandbox"


def problems(settings: Settings) -> list[Problem]:
    """What is wrong where the state would be the sandbox's and the cluster is not."""
    home = Path(os.environ.get("PULUMI_HOME", "/"))
    in_backend = os.environ.get("PULUMI_BACKEND_URL") == f"file://{home.parent / 'state'}"
    in_sandbox = home.name == "pulumi-home" and (
        in_backend or (home.parent / "kubeconfig").is_file()
    )
    other = _other_cluster(settings.cluster, in_backend=in_backend) if in_sandbox else None
    if other is None:
        return []
    key, sentence = other
    if in_backend:
        harm = "the stack's state would be in the sandbox, and make down deletes it"
    else:
        harm = "the sandbox's plugins, a stand-in among them, would run on that cluster"
    return [
        mandatory(
            f"cluster {settings.cluster.name}",
            key_path(("cluster", key)),
            f"{sentence}, but this shell has the sandbox's variables: {harm}. Use another shell, or"
            " unset PULUMI_BACKEND_URL PULUMI_HOME PULUMI_CONFIG_PASSPHRASE KUBECONFIG"
            " KAI_FLEET_CHARTS",
            RULE,
        )
    ]


def _other_cluster(cluster: Cluster, *, in_backend: bool) -> tuple[str, str] | None:
    """The key that names another cluster than the sandbox, and a sentence; None for none.

    A kubeconfig is encrypted in the file, so whose it is cannot be read here. It counts as
    another's where a mistake would cost the stack's state.
    """
    if cluster.kind is not None:
        return "kind", "makes a cluster of its own"
    if cluster.kubeconfig is not None:
        return ("kubeconfig", "is of another cluster") if in_backend else None
    if cluster.context in (None, _CONTEXT):
        return None
    return "context", f"is {cluster.context}"
