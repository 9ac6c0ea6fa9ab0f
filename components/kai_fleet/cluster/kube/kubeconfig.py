"""Connect to an API server from a kubeconfig, which the official client's loader reads."""

import os
import ssl
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import yaml
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

from kai_fleet.cluster.kube.errors import UnusableKubeconfigError, short
from kai_fleet.values import get

_DEFAULT_FILE = "~/.kube/config"
_MOST_CONNECTIONS = 32  # that stay open to one API server; one for each thread
_THIS_MACHINE = "localhost,127.0.0.0/8,::1"  # Go's clients use no proxy for it, either
_UNUSABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, HTTPError)
# The loader caches the files that it writes for certificates, for the life of the process. A second
# thread would get a file that the first one has deleted.
_LOADING = threading.Lock()
# The loader ignores these fields of a user: requests would go without impersonation, so with more
# rights.
_IMPERSONATION = {"as", "as-groups", "as-uid", "as-user-extra"}


class Connection:
    """An API server's URL in `host`, and the official client with the credentials for it.

    `context` is the context's name in the kubeconfig. `authority` is the certificate authority in
    the kubeconfig, as PEM; None if it names none.
    """

    def __init__(self, loaded: Configuration, context: str) -> None:
        """Read the certificates and keys at once: the caller may delete their files.

        Raises OSError for a file that cannot be used.
        """
        self.host = str(loaded.host)
        self.context = context
        self.authority = Path(loaded.ssl_ca_cert).read_bytes() if loaded.ssl_ca_cert else None
        self.client = ApiClient(loaded)
        self._renewing = threading.Lock()
        if self.host.startswith("https:"):
            settings = self.client.rest_client.pool_manager.connection_pool_kw
            for key in ("ca_certs", "ca_cert_data", "cert_file", "key_file"):
                settings.pop(key, None)
            settings["ssl_context"] = _tls(loaded)

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object,
        media_type: str,
        timeouts: tuple[float, float],
    ) -> BaseHTTPResponse:
        """Send a request once, and return the response without reading its body.

        `timeouts` are the seconds to connect, and those in which a chunk of the response comes.
        Raises UnusableKubeconfigError, and errors of the client: see `words_of_network`.
        """
        request = self.client.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params={**self._headers(), "Content-Type": media_type},
            body=body,
        )
        # Not `_preload_content=False` of the typed API: that reads error bodies without a bound.
        answer: BaseHTTPResponse = self.client.call_api(
            *request, _request_timeout=timeouts
        ).response
        return answer

    def _headers(self) -> dict[str, str]:
        """The headers that every request has, with the user's token or password, if any.

        A token is renewed first if its credential plugin said when it expires, and that is over. If
        the plugin fails then, the loader logs why, and the old token is sent. A token file is read
        only once, in `connection`. Raises UnusableKubeconfigError if the token is empty.
        """
        with self._renewing:
            token = self.client.configuration.get_api_key_with_prefix("BearerToken")
        if not token:
            return {"Accept": "application/json"}
        token = token.strip()  # a token file ends with a newline
        if token == "Bearer":
            raise UnusableKubeconfigError("the kubeconfig cannot be used: its token is empty")
        return {"Accept": "application/json", "Authorization": token}


def _tls(loaded: Configuration) -> ssl.SSLContext:
    """Certificates and checks of TLS; none is checked if the kubeconfig says so. Raises OSError."""
    tls = ssl.create_default_context(cafile=loaded.ssl_ca_cert)
    if not loaded.verify_ssl:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    if loaded.cert_file:
        tls.load_cert_chain(loaded.cert_file, loaded.key_file)
    return tls


@dataclass(frozen=True)
class _Login:
    """A context of a kubeconfig, and its user's name and fields; no fields without a user."""

    context: str
    user_name: str | None
    user: Mapping[str, object]


def connection(
    content: str | None = None, *, context: str | None = None, file: str | None = None
) -> Connection:
    """Connect with a kubeconfig. A credential plugin that it names is run.

    Args:
        content: The kubeconfig itself; for None and "" `file` is read.
        context: None and "" mean the current context.
        file: One path or several, as in KUBECONFIG; by default $KUBECONFIG, else ~/.kube/config.

    Raises:
        UnusableKubeconfigError: The kubeconfig is absent or malformed. Or the context does not
            exist, or has no server. Or the user impersonates another, or the credential plugin
            returns nothing: no request is sent as an anonymous user.
    """
    try:
        # TLS libraries read certificates and keys from files only: write them for a moment.
        with _LOADING, tempfile.TemporaryDirectory(prefix="kai-fleet-kubeconfig-") as folder:
            kubeconfig = _read(content, file)
            login = _login(kubeconfig, context)
            return Connection(_loaded(kubeconfig, login, folder), login.context)
    except (yaml.YAMLError, ConfigException):  # their messages may quote the content
        reason = "it is not YAML, names what is not there, or the login of its user has ended"
    except _UNUSABLE as error:
        reason = short(error)
    raise UnusableKubeconfigError(f"the kubeconfig cannot be used: {reason}")


def _read(content: str | None, file: str | None) -> ConfigNode:
    """The parsed kubeconfig. Raises ValueError if no file exists, and errors of the parser."""
    if content:
        return ConfigNode("the kubeconfig", yaml.safe_load(content) or {})
    paths = file or os.environ.get("KUBECONFIG") or _DEFAULT_FILE
    merged = KubeConfigMerger(paths).config
    if merged is None:
        raise ValueError(f"{paths} is not there")
    return merged


def _loaded(kubeconfig: ConfigNode, login: _Login, folder: str) -> Configuration:
    """The client's configuration, with certificates and keys as files in `folder`.

    Runs the credential plugin. Raises ValueError if it returns neither a token nor a certificate,
    and what the loader raises.
    """
    loaded = Configuration()
    loaded.retries = False  # and no redirects: a refusal is an answer here
    loaded.connection_pool_maxsize = _MOST_CONNECTIONS
    loaded.no_proxy = f"{loaded.no_proxy or ''},{_THIS_MACHINE}"
    loader = KubeConfigLoader(
        kubeconfig, login.context, config_base_path=None, temp_file_path=folder
    )
    loader.load_and_set(loaded)
    logs_in = "exec" in login.user or "auth-provider" in login.user
    if logs_in and not (loaded.api_key or loaded.cert_file):
        command = get(login.user, "exec", "command") or ""
        raise ValueError(
            f"the credential plugin {Path(str(command)).name} of user {login.user_name} gives"
            " nothing: log in or install it, then try again"
        )
    return loaded


def contexts() -> tuple[list[str], str | None]:
    """The contexts of the user's default kubeconfig, and the current one if it is among them.

    An empty list and None if there is no such file, or it cannot be used.
    """
    with suppress(yaml.YAMLError, ConfigException, *_UNUSABLE):
        kubeconfig = _read(content=None, file=None)
        names = _context_names(kubeconfig)
        current = kubeconfig.safe_get("current-context")
        return names, current if current in names else None
    return [], None


def _context_names(kubeconfig: ConfigNode) -> list[str]:
    """The names of the contexts in their order; none if the kubeconfig has no contexts.

    Raises ConfigException for one without a name.
    """
    return [str(entry["name"]) for entry in kubeconfig.safe_get("contexts") or []]


def _login(kubeconfig: ConfigNode, context: str | None) -> _Login:
    """The context, by default the current one, with its user.

    Raises ValueError if the context does not exist, if its cluster has no server, or if its user
    impersonates another; ConfigException if its cluster or user does not exist.
    """
    chosen = context or kubeconfig.safe_get("current-context")
    names = _context_names(kubeconfig)
    if str(chosen) not in names:
        missing = f"context {chosen}" if chosen else "current-context; write --context with one"
        raise ValueError(f"it has no {missing}; its contexts: {', '.join(names) or 'none'}")
    entry = kubeconfig["contexts"].get_with_name(str(chosen))["context"]
    cluster = kubeconfig["clusters"].get_with_name(entry["cluster"])["cluster"]
    if not cluster.safe_get("server"):
        raise ValueError(f"cluster {entry['cluster']} has no server")
    user_name = entry.safe_get("user")
    if not user_name:
        return _Login(str(chosen), None, {})
    user = kubeconfig["users"].get_with_name(user_name)["user"].value or {}
    impersonation = sorted(_IMPERSONATION & user.keys())
    if impersonation:
        fields = ", ".join(impersonation)
        raise ValueError(f"user {user_name} has {fields}; use one with rights of its own")
    return _Login(str(chosen), user_name, user)
