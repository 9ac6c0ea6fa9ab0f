"""Connect to an API server from a kubeconfig, which the official client's loader reads."""

import logging
import os
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import urllib3
import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger
from urllib3.util.ssl_ import create_urllib3_context

from kai_fleet.cluster.kube.errors import UnusableKubeconfigError, short
from kai_fleet.foreign_text import plain

_FOLDER: Final = "kai-fleet-kubeconfig-"
_THREADS: Final = 32  # that ask one API server at once, and keep their connections
_USUAL: Final = "~/.kube/config"
_THIS_MACHINE: Final = "localhost,127.0.0.0/8,::1"  # Go's clients use no proxy for it
# The loader keeps the files that it makes of certificates, by content, for a whole process.
_LOADING: Final = threading.Lock()


class Connection:
    """An API server's address, credentials, and a pool of connections to it.

    `authority` is the certificate authority that the kubeconfig names, as PEM.
    """

    def __init__(self, loaded: Configuration, user: dict[str, Any]) -> None:
        """Reads the certificates and keys at once: their files may go."""
        self.host = str(loaded.host)
        self.authority = Path(loaded.ssl_ca_cert).read_bytes() if loaded.ssl_ca_cert else None
        self._loaded, self._renewing = loaded, threading.Lock()
        self._acts_as = _impersonation(user)
        self.pool: urllib3.PoolManager = RESTClientObject(loaded).pool_manager
        if self.host.startswith("https:"):
            settings = self.pool.connection_pool_kw
            for key in ("ca_certs", "ca_cert_data", "cert_file", "key_file"):
                settings.pop(key, None)
            settings["ssl_context"] = _tls(loaded)

    def headers(self) -> urllib3.HTTPHeaderDict:
        """The headers of every request; a token that runs out is renewed."""
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json"})
        with self._renewing:
            token = self._loaded.get_api_key_with_prefix("BearerToken")
        if token:
            headers["Authorization"] = token.strip()  # a token file ends in a line end
            if headers["Authorization"] == "Bearer":
                raise UnusableKubeconfigError("the kubeconfig cannot be used: its token is empty")
        for name, value in self._acts_as:
            headers.add(name, value)
        return headers


def connection(
    content: str | None = None, *, context: str | None = None, file: str | None = None
) -> Connection:
    """Connect with a kubeconfig's content, or a file, by default $KUBECONFIG or ~/.kube/config.
    `context` is by default its current context.

    Raises UnusableKubeconfigError, also if a credential plugin returns nothing: no request is sent
    as an anonymous user.
    """
    try:
        # A TLS library takes certificates and keys from files only: for a moment they are some.
        with (
            _LOADING,
            tempfile.TemporaryDirectory(prefix=_FOLDER) as folder,
            _logged() as messages,
        ):
            if content:
                whole = ConfigNode("the kubeconfig", yaml.safe_load(content))
            else:
                whole = _of_files(file or os.environ.get("KUBECONFIG") or _USUAL)
            chosen, user, proxy = _chosen(whole, context)
            loaded = Configuration()
            loaded.retries, loaded.connection_pool_maxsize = 0, _THREADS
            loaded.no_proxy = f"{loaded.no_proxy or ''},{_THIS_MACHINE}"
            loader = KubeConfigLoader(whole, chosen, config_base_path=None, temp_file_path=folder)
            loader.load_and_set(loaded)
            if proxy:  # a SOCKS proxy looks names up itself, as for client-go
                loaded.proxy = str(proxy).replace("socks5://", "socks5h://")
                loaded.no_proxy = None
            logs_in = "exec" in user or "auth-provider" in user
            if logs_in and not (loaded.api_key or loaded.cert_file):
                raise ValueError(_without_credentials(user, messages))
            return Connection(loaded, user)
    except yaml.YAMLError:  # its message may quote the content
        reason = "it is not YAML"
    except ConfigException:  # so may its message
        reason = "its context names what is not there, or the login of its user has ended"
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = short(error)
    except urllib3.exceptions.HTTPError as error:  # an address that is none
        reason = short(error)
    raise UnusableKubeconfigError(f"the kubeconfig cannot be used: {reason}")


def _of_files(paths: str) -> ConfigNode:
    files = KubeConfigMerger(paths)
    if files.config is None:
        raise ValueError(f"{paths} is not there")
    # The first one counts, as for kubectl; the loader would take the last one.
    current = [config.get("current-context") for config in files.config_files.values()]
    files.config.value["current-context"] = next(filter(None, current), None)
    return files.config


def _chosen(whole: ConfigNode, context: str | None) -> tuple[str, dict[str, Any], str | None]:
    """The context's name, its user, and the proxy. Raises ValueError, ConfigException."""
    names = [str(item["name"]) for item in whole.safe_get("contexts") or []]
    chosen = context or whole.safe_get("current-context")
    if str(chosen) not in names:
        missing = f"context {chosen}" if chosen else "current-context; write --context with one"
        raise ValueError(f"it has no {missing}; its contexts: {', '.join(names) or 'none'}")
    entry = whole["contexts"].get_with_name(str(chosen))["context"]
    cluster = whole["clusters"].get_with_name(entry["cluster"])["cluster"]
    if not cluster.safe_get("server"):
        raise ValueError(f"cluster {entry['cluster']} has no server")
    name = entry.safe_get("user")
    user = whole["users"].get_with_name(name)["user"].value if name else None
    return str(chosen), {**(user or {}), "name": name}, cluster.safe_get("proxy-url")


def _impersonation(user: dict[str, Any]) -> list[tuple[str, str]]:
    """The headers for `as` and `as-groups`, which the loader leaves out."""
    others = [key for key in user if key.startswith("as-") and key != "as-groups"]
    if others or ("as-groups" in user and "as" not in user):
        raise ValueError(f"user {user['name']} has {', '.join(others) or 'as-groups'}; write as")
    headers = [("Impersonate-User", str(user["as"]))] if "as" in user else []
    return headers + [("Impersonate-Group", str(group)) for group in user.get("as-groups") or []]


def _tls(loaded: Configuration) -> ssl.SSLContext:
    mode = ssl.CERT_REQUIRED if loaded.verify_ssl else ssl.CERT_NONE
    context = create_urllib3_context(cert_reqs=mode)
    if loaded.ssl_ca_cert:
        context.load_verify_locations(loaded.ssl_ca_cert)
    else:
        context.load_default_certs()
    if loaded.cert_file:
        context.load_cert_chain(loaded.cert_file, loaded.key_file)
    return context


def _without_credentials(user: dict[str, Any], messages: list[str]) -> str:
    run = user.get("exec") or {}
    hint = f". Its hint: {plain(run['installHint'], 300)}" if run.get("installHint") else ""
    command = Path(str(run.get("command", ""))).name
    what = f"credential plugin {command}" if run else "auth-provider"
    why = plain("; ".join(messages) or "no token and no certificate", 200)
    return f"the {what} of user {user['name']} gives nothing: {why}; log in, then try again{hint}"


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Capture log messages: the loader only logs that a credential plugin failed."""
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        yield messages
    finally:
        logging.getLogger().removeHandler(handler)
