"""Connect to an API server from a kubeconfig: lightkube's client, configured as kubectl is."""

import os
from pathlib import Path
from typing import Any

import httpx2
import yaml
from lightkube import AsyncClient, ConfigError, KubeConfig
from lightkube.config.client_adapter import verify_cluster

from kubectl_fleet.bounded import BoundedTransport

_ANSWER_SECONDS = 10.0  # in which a server has to go on with an answer
_TOTAL_SECONDS = 60.0  # in which it has to end all answers of a reading
_DEFAULT = "~/.kube/config"
# Keys whose values are paths, relative to the folder of their file.
_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_EXEC = "client.authentication.k8s.io"
# Keys that lightkube ignores: without them it would send another request than kubectl.
_UNSUPPORTED = ("as", "auth-provider", "tls-server-name")
Entry = dict[str, Any]
# The entries of one or several files by kind (`context`, `cluster`, `user`) and name.
_Entries = dict[str, dict[str, Entry]]


class UserError(Exception):
    """A command that cannot be done as asked. The message says why, or what to do instead."""


def open_cluster(file: str | None, context: str | None) -> tuple[AsyncClient, BoundedTransport]:
    """A client for a context of a kubeconfig, and the transport that bounds its answers.

    The file is `file`, else $KUBECONFIG, else ~/.kube/config; each may be several paths, separated
    by `os.pathsep`. The context is the current one unless set; "" is not set. Nothing is sent yet.

    Raises:
        UserError: The kubeconfig or a certificate is absent or malformed, or its YAML is nested too
            deeply. Or it lacks the context or what that names, or has a key that would make
            lightkube send another request than kubectl.
    """
    try:
        entries, current = _read(file or os.environ.get("KUBECONFIG") or _DEFAULT)
        name = context or current
        _require_context(entries, name)
        return _client(entries, name)
    except yaml.YAMLError:  # its message may quote a token
        raise UserError("the kubeconfig can't be used: it is not YAML") from None
    except RecursionError:
        raise UserError("the kubeconfig can't be used: it is nested too deeply") from None
    except (
        ConfigError,
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        httpx2.InvalidURL,  # a port that is no number
    ) as error:
        raise UserError(f"the kubeconfig can't be used: {error}") from None


def _require_context(entries: _Entries, name: str) -> None:
    """Raise ConfigError for the name "", and if no context has the name."""
    contexts = entries["context"]
    names = ", ".join(contexts)
    if not name:
        raise ConfigError(f"it has no current-context; write --context with one of: {names}")
    if name not in contexts:
        raise ConfigError(f"it has no context {name}; write --context with one of: {names}")


def _client(entries: _Entries, name: str) -> tuple[AsyncClient, BoundedTransport]:
    """The client for a context, and its transport. A context without a user sends no credentials.

    `name` is one of its contexts. Raises ConfigError if lightkube cannot use it as kubectl does, or
    if it names what is not there; OSError and ValueError for certificates that cannot be read;
    ValueError, TypeError, KeyError, AttributeError or httpx2.InvalidURL for a malformed entry.
    """
    context = entries["context"][name]
    cluster = entries["cluster"].get(context.get("cluster", ""))
    user = entries["user"].get(context["user"]) if "user" in context else {}
    if cluster is None or user is None:
        raise ConfigError(f"context {name} names a cluster or a user that is not there")
    for key in _UNSUPPORTED:
        if key in cluster or key in user:
            raise ConfigError(f"context {name} has {key}, which works with kubectl only")
    user = _with_known_plugin(user)
    context = {**context, "cluster": name, "user": name}
    document = {
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}],
    }
    config = KubeConfig.from_dict(document).get(name)
    assert config and config.user
    timeout = httpx2.Timeout(_ANSWER_SECONDS)
    http_client = httpx2.AsyncClient(
        verify=verify_cluster(config.cluster, config.user, config.abs_file),
        timeout=timeout,
        proxy=cluster.get("proxy-url"),
    )
    transport = BoundedTransport(http_client, _TOTAL_SECONDS)
    return AsyncClient(config, timeout=timeout, transport=transport), transport


def _with_known_plugin(user: Entry) -> Entry:
    """A user whose credential plugin of v1 is said to be of v1beta1, the one that lightkube knows.

    Plugins of both versions hand out tokens in the same way. Any other user is given back as it is.
    Raises AttributeError if `exec` is no mapping.
    """
    plugin = user.get("exec", {})
    if plugin.get("apiVersion") != f"{_EXEC}/v1":
        return user
    return {**user, "exec": {**plugin, "apiVersion": f"{_EXEC}/v1beta1"}}


def _read(paths: str) -> tuple[_Entries, str]:
    """Merge files as kubectl does: of entries with the same name, the first one counts.

    Gives the entries and the current context, "" without one. Files that are absent or empty are
    skipped.

    Args:
        paths: Paths as in $KUBECONFIG, separated by `os.pathsep`; the first file counts first.

    Raises:
        ConfigError: All files are absent.
        OSError: A file cannot be read.
        YAMLError, ValueError, TypeError, KeyError, AttributeError, RecursionError: A file is no
            kubeconfig.
    """
    # Path.expanduser raises for a home that nobody has; this one leaves it as it is written.
    files = [Path(os.path.expanduser(path)) for path in paths.split(os.pathsep) if path]  # noqa: PTH111
    files = [file for file in files if file.is_file()]
    if not files:
        raise ConfigError(f"{paths} is not there; write --kubeconfig, or set KUBECONFIG")
    merged: _Entries = {"context": {}, "cluster": {}, "user": {}}
    current = ""
    for file in files:
        document = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        current = current or document.get("current-context") or ""
        for kind, entries in merged.items():
            for item in document.get(f"{kind}s") or []:
                entry = _entry(item.get(kind), file.absolute().parent)
                entries.setdefault(item["name"], entry)
    return merged, current


def _entry(fields: Entry | None, folder: Path) -> Entry:
    """The fields with a value (None and "" are none), and with absolute paths below `folder`.

    A new mapping, empty for None. Raises TypeError for a path that is no text.
    """
    entry = {}
    for key, value in (fields or {}).items():
        if value not in (None, ""):
            entry[key] = str(folder / value) if key in _PATHS else value
    return entry
