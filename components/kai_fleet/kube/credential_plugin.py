"""A kubeconfig's credential plugin: the command that hands out a token, or a certificate.

The official client goes on without credentials where it fails. Here that is an error: a server
may answer anonymous requests, and what it refuses them reads as absent.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from kai_fleet.kube.errors import UnusableKubeconfigError, short
from kai_fleet.kube.kubeconfig_entries import ContextEntries, Entry
from kai_fleet.kube.text import plain

_LONGEST: Final = 300  # characters of a hint
_EARLY: Final = timedelta(minutes=5)  # a token is renewed so long before it ends


class CredentialPlugin:
    """The plugin of a context's user, which names one at `exec`."""

    def __init__(self, entries: ContextEntries) -> None:
        self._exec: Entry = entries.user["exec"]
        self._cluster, self._user = entries.cluster, entries.user_name
        self._ends: datetime | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the credentials end within minutes, or have ended."""
        return self._ends is not None and self._ends - _EARLY <= datetime.now(UTC)

    def credentials(self) -> Entry:
        """Run it: the keys of a kubeconfig's user. Raises UnusableKubeconfigError."""
        from kubernetes.config import ConfigException
        from kubernetes.config.exec_provider import ExecProvider
        from kubernetes.config.kube_config import ConfigNode

        node, cluster = ConfigNode("exec", self._exec), ConfigNode("cluster", self._cluster)
        try:
            status: dict[str, Any] = ExecProvider(node, None, cluster).run()
            ends = status.get("expirationTimestamp")
            self._ends = datetime.fromisoformat(ends.replace("Z", "+00:00")) if ends else None
        except FileNotFoundError:
            raise self._error("is not installed") from None
        except PermissionError:
            raise self._error("may not be run") from None
        except (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            why = short(error).removeprefix("exec: ")
            raise self._error(f"failed: {why}; log in with it, then try again") from None
        return self._as_user(status)

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
        hint = plain(" ".join(str(self._exec.get("installHint") or "").split()), _LONGEST)
        return UnusableKubeconfigError(
            f"the credential plugin {command} of user {self._user} in the kubeconfig {what}"
            + (f". Its hint: {hint}" if hint else "")
        )
