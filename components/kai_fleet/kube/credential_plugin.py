"""What hands out a user's token or certificate: a kubeconfig's credential plugin, or its provider.

No request goes on without credentials where it fails: a server may answer anonymous requests, and
what it refuses them reads as absent.
"""

import base64
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from kai_fleet.kube.errors import UnusableKubeconfigError, short
from kai_fleet.kube.kubeconfig_entries import ContextEntries, Entry
from kai_fleet.kube.text import plain

_EXTENSION: Final = "client.authentication.k8s.io/exec"  # what a cluster has for plugins
_LONGEST: Final = 300  # characters of a hint
_EARLY: Final = timedelta(minutes=5)  # a token is renewed so long before it ends


class CredentialPlugin:
    """The plugin of a context's user, which names one at `exec`."""

    def __init__(self, entries: ContextEntries) -> None:
        self._entries = entries
        self._exec: Entry = entries.user["exec"]
        self._ends: datetime | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the credentials end within minutes, or have ended."""
        return self._ends is not None and self._ends - _EARLY <= datetime.now(UTC)

    def credentials(self) -> Entry:
        """Run it: the keys of a kubeconfig's user. Raises UnusableKubeconfigError."""
        try:
            status = self._run()
            ends = status.get("expirationTimestamp")
            self._ends = datetime.fromisoformat(ends) if ends else None
            if self._ends is not None and self._ends.tzinfo is None:
                raise ValueError(f"its expirationTimestamp {ends} has no time zone")
        except FileNotFoundError:
            raise self._error("is not installed") from None
        except PermissionError:
            raise self._error("may not be run") from None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._error(f"failed: {short(error)}; log in with it, then try again") from None
        return self._as_user(status)

    def _run(self) -> dict[str, Any]:
        """The status that it answers. At a terminal it may ask, and says there what is wrong."""
        for key in ("command", "apiVersion"):
            if key not in self._exec:
                raise ValueError(f"its entry has no {key}")
        version, at_terminal = self._exec["apiVersion"], sys.stdout.isatty()
        spec: Entry = {"interactive": at_terminal}
        if self._exec.get("provideClusterInfo"):
            extensions = self._entries.cluster.get("extensions") or []
            own = [it["extension"] for it in extensions if it.get("name") == _EXTENSION]
            spec["cluster"] = {**self._entries.cluster, **({"config": own[0]} if own else {})}
        info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
        more = {str(it["name"]): str(it["value"]) for it in self._exec.get("env") or []}
        ran = subprocess.run(
            [str(self._exec["command"]), *map(str, self._exec.get("args") or [])],
            env={**os.environ, **more, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            stdout=subprocess.PIPE,
            stderr=None if at_terminal else subprocess.PIPE,
            text=True,
        )
        if ran.returncode:
            raise ValueError(f"it returned {ran.returncode}. {(ran.stderr or '').strip()}")
        try:
            answer = json.loads(ran.stdout)
        except ValueError:
            raise ValueError("failed to decode what it prints") from None
        if answer["apiVersion"] != version:
            raise ValueError(f"it answers {answer['apiVersion']}, and the kubeconfig has {version}")
        status: dict[str, Any] = answer["status"]
        return status

    def _as_user(self, status: dict[str, Any]) -> Entry:
        user: Entry = {}
        if status.get("token"):
            user["token"] = str(status["token"]).strip()
        if status.get("clientCertificateData") and status.get("clientKeyData"):
            for key, name in (
                ("client-certificate-data", "clientCertificateData"),
                ("client-key-data", "clientKeyData"),
            ):
                user[key] = base64.b64encode(str(status[name]).encode()).decode()
        if not user:
            raise self._error(
                "gives neither a token nor a certificate with its key; log in with it"
            )
        return user

    def _error(self, what: str) -> UnusableKubeconfigError:
        command = plain(Path(str(self._exec.get("command", ""))).name, 100)
        hint = plain(self._exec.get("installHint") or "", _LONGEST)
        return UnusableKubeconfigError(
            f"the credential plugin {command} of user {self._entries.user_name} in the kubeconfig"
            f" {what}{f'. Its hint: {hint}' if hint else ''}"
        )


def id_token(provider: dict[str, Any], user: str) -> str:
    """The ID token of an `auth-provider`: kubectl has left `oidc` only.

    kubectl renews it, and writes the new one back. Raises
    UnusableKubeconfigError for one that has ended, and for another provider.
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
