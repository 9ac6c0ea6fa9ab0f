"""Connect to an API server from a kubeconfig, which the official client's loader reads."""

from __future__ import annotations

import os
import ssl
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import urllib3
import yaml
from urllib3.exceptions import HTTPError

from kai_fleet.cluster.kube.errors import UnusableKubeconfigError, short

if TYPE_CHECKING:
    from kubernetes.client.configuration import Configuration
    from kubernetes.config.kube_config import ConfigNode

# Takes 0.2 s to import, for which only those wait who connect.
READER: Final = "kubernetes.config.kube_config"

_USUAL: Final = "~/.kube/config"
_THREADS: Final = 32  # that ask one API server at once, and keep their connections
_THIS_MACHINE: Final = "localhost,127.0.0.0/8,::1"  # Go's clients use no proxy for it
_UNUSABLE: Final = (OSError, ValueError, LookupError, TypeError, AttributeError, HTTPError)
# The loader keeps the files that it makes of certificates, by content, for a whole process.
_LOADING: Final = threading.Lock()


class Connection:
    """An API server's address, credentials, and a pool of connections to it.

    `context` is what the kubeconfig calls it, `authority` the certificate authority that it names,
    as PEM.
    """

    def __init__(self, loaded: Configuration, context: str) -> None:
        """Reads the certificates and keys at once: their files may go."""
        self.host, self.context = str(loaded.host), context
        self.authority = Path(loaded.ssl_ca_cert).read_bytes() if loaded.ssl_ca_cert else None
        self._loaded, self._renewing = loaded, threading.Lock()
        from kubernetes.client.rest import RESTClientObject

        self.pool: urllib3.PoolManager = RESTClientObject(loaded).pool_manager
        if self.host.startswith("https:"):
            tls = ssl.create_default_context(cafile=loaded.ssl_ca_cert)
            if not loaded.verify_ssl:
                tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
            if loaded.cert_file:
                tls.load_cert_chain(loaded.cert_file, loaded.key_file)
            settings = self.pool.connection_pool_kw
            for key in ("ca_certs", "ca_cert_data", "cert_file", "key_file"):
                settings.pop(key, None)
            settings["ssl_context"] = tls

    def headers(self) -> dict[str, str]:
        """The headers of every request; a token that runs out is renewed."""
        with self._renewing:
            token = self._loaded.get_api_key_with_prefix("BearerToken")
        if not token:
            return {"Accept": "application/json"}
        token = token.strip()  # a token file ends in a line end
        if token == "Bearer":
            raise UnusableKubeconfigError("the kubeconfig cannot be used: its token is empty")
        return {"Accept": "application/json", "Authorization": token}


def connection(
    content: str | None = None, *, context: str | None = None, file: str | None = None
) -> Connection:
    """Connect with a kubeconfig's content, or a file, by default $KUBECONFIG or ~/.kube/config.
    `context` is by default its current context.

    Raises UnusableKubeconfigError, also if a credential plugin returns nothing: no request is sent
    as an anonymous user.
    """
    from kubernetes.client.configuration import Configuration
    from kubernetes.config import ConfigException
    from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

    try:
        # A TLS library takes certificates and keys from files only: for a moment they are some.
        with _LOADING, tempfile.TemporaryDirectory(prefix="kai-fleet-kubeconfig-") as folder:
            paths = file or os.environ.get("KUBECONFIG") or _USUAL
            if content:
                whole = ConfigNode("the kubeconfig", yaml.safe_load(content))
            elif (whole := KubeConfigMerger(paths).config) is None:
                raise ValueError(f"{paths} is not there")
            chosen, user = _chosen(whole, context)
            loaded = Configuration()
            loaded.retries, loaded.connection_pool_maxsize = 0, _THREADS
            loaded.no_proxy = f"{loaded.no_proxy or ''},{_THIS_MACHINE}"
            loader = KubeConfigLoader(whole, chosen, config_base_path=None, temp_file_path=folder)
            loader.load_and_set(loaded)
            logs_in = "exec" in user or "auth-provider" in user
            if logs_in and not (loaded.api_key or loaded.cert_file):
                command = Path(str((user.get("exec") or {}).get("command", ""))).name
                raise ValueError(
                    f"the credential plugin {command} of user {user['name']} gives nothing: log in"
                    " or install it, then try again"
                )
            return Connection(loaded, chosen)
    except (yaml.YAMLError, ConfigException):  # their messages may quote the content
        reason = "it is not YAML, names what is not there, or the login of its user has ended"
    except _UNUSABLE as error:
        reason = short(error)
    raise UnusableKubeconfigError(f"the kubeconfig cannot be used: {reason}")


def contexts() -> tuple[list[str], str | None]:
    """The contexts of the usual kubeconfig, and the current one; none where it cannot be used."""
    from kubernetes.config import ConfigException
    from kubernetes.config.kube_config import KubeConfigMerger

    with suppress(yaml.YAMLError, ConfigException, *_UNUSABLE):
        if whole := KubeConfigMerger(os.environ.get("KUBECONFIG") or _USUAL).config:
            names = [str(item["name"]) for item in whole.safe_get("contexts") or []]
            current = whole.safe_get("current-context")
            return names, current if current in names else None
    return [], None


def _chosen(whole: ConfigNode, context: str | None) -> tuple[str, dict[str, Any]]:
    """The context's name and its user. Raises ValueError, ConfigException."""
    names = [str(item["name"]) for item in whole.safe_get("contexts") or []]
    chosen = context or whole.safe_get("current-context")
    if str(chosen) not in names:
        missing = f"context {chosen}" if chosen else "current-context; write --context with one"
        raise ValueError(f"it has no {missing}; its contexts: {', '.join(names) or 'none'}")
    entry = whole["contexts"].get_with_name(str(chosen))["context"]
    if not whole["clusters"].get_with_name(entry["cluster"])["cluster"].safe_get("server"):
        raise ValueError(f"cluster {entry['cluster']} has no server")
    name = entry.safe_get("user")
    user = (whole["users"].get_with_name(name)["user"].value if name else None) or {}
    # The loader leaves these out, so that requests would be sent as somebody with more rights.
    if others := sorted({"as", "as-groups", "as-uid", "as-user-extra"} & user.keys()):
        raise ValueError(f"user {name} has {', '.join(others)}; use one with rights of its own")
    return str(chosen), {**user, "name": name}
