"""The token of a kubeconfig's `auth-provider`: kubectl has left `oidc` only."""

import base64
import json
import time
from typing import Any

from kubectl_fleet.kube.errors import UnusableKubeconfigError


def id_token(provider: dict[str, Any], user: str) -> str:
    """The ID token that stands there. kubectl renews it, and writes the new one back.

    Raises UnusableKubeconfigError for one that has ended, and for another provider.
    """
    name = provider.get("name")
    if name != "oidc":
        raise UnusableKubeconfigError(
            f"user {user} of the kubeconfig has auth-provider {name}, which kubectl does not know"
            " since v1.26: write a kubeconfig with a credential plugin (exec)"
        )
    token = str((provider.get("config") or {}).get("id-token") or "")
    if not token or _ends(token) <= time.time():
        raise UnusableKubeconfigError(
            f"the OIDC token of user {user} in the kubeconfig has ended: run `kubectl version`,"
            " which renews it, then try again"
        )
    return token


def _ends(token: str) -> float:
    """When a JWT ends, in seconds since 1970; 0 for what is none."""
    try:
        claims = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(claims + "=="))["exp"])
    except (ValueError, IndexError, KeyError, TypeError):
        return 0.0
