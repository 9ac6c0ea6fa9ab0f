"""Connect to an API server from a kubeconfig: lightkube's client, configured as kubectl is."""

import os
from pathlib import Path
from typing import Any, Final

import httpx2
import yaml
from lightkube import AsyncClient, ConfigError, KubeConfig
from lightkube.config.client_adapter import verify_cluster

from kubectl_fleet.bounded import BoundedTransport

_SECONDS: Final = 10.0  # until a server goes on with an answer
_IN_ALL: Final = 60.0  # for all answers of a reading
_DEFAULT: Final = "~/.kube/config"
_PATHS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_EXEC: Final = "client.authentication.k8s.io"
# Keys that lightkube ignores: without them it would send another request than kubectl.
_UNSUPPORTED: Final = ("as", "auth-provider", "tls-server-name")
_Entries = dict[str, dict[str, Any]]


class UserError(Exception):
    """A command that can't be done as asked; the message says what to do instead."""


def open_cluster(file: str | None, context: str | None) -> tuple[AsyncClient, BoundedTransport]:
    """Return a client for a context of a file, else of $KUBECONFIG or the default file; and what
    bounds its answers.

    Raises UserError for a kubeconfig that can't be used.
    """
    try:
        contexts, clusters, users, current = _read(file or os.environ.get("KUBECONFIG") or _DEFAULT)
        name, names = context or current, ", ".join(contexts)
        if not name:
            raise ConfigError(f"it has no current-context; write --context with one of: {names}")
        if name not in contexts:
            raise ConfigError(f"it has no context {name}; write --context with one of: {names}")
        chosen = contexts[name]
        if chosen.get("cluster") not in clusters or chosen.get("user", "") not in {"", *users}:
            raise ConfigError(f"context {name} names a cluster or a user that is not there")
        cluster, user = clusters[chosen["cluster"]], users.get(chosen.get("user", ""), {})
        for key in _UNSUPPORTED:
            if key in cluster or key in user:
                raise ConfigError(f"context {name} has {key}, which works with kubectl only")
        # lightkube knows the plugins of v1beta1, which hand out a token as those of v1 do.
        if user.get("exec", {}).get("apiVersion") == f"{_EXEC}/v1":
            user = {**user, "exec": {**user["exec"], "apiVersion": f"{_EXEC}/v1beta1"}}
        entries = {"cluster": cluster, "user": user}
        entries["context"] = {**chosen, "cluster": name, "user": name}
        lists = {f"{kind}s": [{"name": name, kind: entry}] for kind, entry in entries.items()}
        config = KubeConfig.from_dict(lists).get(name)
        if config is None or config.user is None:
            raise ConfigError(f"context {name} names a cluster or a user that is not there")
        tls = verify_cluster(config.cluster, config.user, config.abs_file)
        timeout, proxy = httpx2.Timeout(_SECONDS), cluster.get("proxy-url")
        sends = httpx2.AsyncClient(verify=tls, timeout=timeout, proxy=proxy)
        bounded = BoundedTransport(sends, _IN_ALL)
        return AsyncClient(config, timeout=timeout, transport=bounded), bounded
    except yaml.YAMLError:  # its message may quote a token
        raise UserError("the kubeconfig can't be used: it is not YAML") from None
    except (ConfigError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UserError(f"the kubeconfig can't be used: {error}") from None


def _read(paths: str) -> tuple[_Entries, _Entries, _Entries, str]:
    """Merge files as kubectl does, the first entry of a name counts; and the current context."""
    merged: dict[str, _Entries] = {"contexts": {}, "clusters": {}, "users": {}}
    current = ""
    files = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    if not any(map(Path.is_file, files)):
        raise ConfigError(f"{paths} is not there; write --kubeconfig, or set KUBECONFIG")
    for path in filter(Path.is_file, files):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        current = current or document.get("current-context") or ""
        for kind, entries in merged.items():
            for item in document.get(kind) or []:
                entry = {
                    key: str(path.absolute().parent / value) if key in _PATHS else value
                    for key, value in (item.get(kind[:-1]) or {}).items()
                    if value not in (None, "")
                }
                entries.setdefault(item["name"], entry)
    return merged["contexts"], merged["clusters"], merged["users"], current
