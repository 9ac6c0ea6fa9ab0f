"""A kubeconfig as the official client reads it, with its certificates and keys in memory.

That client is imported when a kubeconfig is read: it takes a quarter of a second.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import urllib3
import yaml
from urllib3.util.ssl_ import create_urllib3_context

from kai_fleet.kube.bounded import bind
from kai_fleet.kube.credential_plugin import CredentialPlugin
from kai_fleet.kube.errors import UnusableKubeconfigError, short
from kai_fleet.kube.kubeconfig_entries import ContextEntries, Entry, of_content, of_files

_FOLDER: Final = "kai-fleet-kubeconfig-"
_LEFT_SECONDS: Final = 60.0
_PROXIES: Final = {"http": "http", "https": "https", "socks5": "socks5h", "socks5h": "socks5h"}
_one: Final = threading.Lock()  # the official client lists its files in one place for all threads


class Connection:
    """The way to one API server: its address, its credentials and a pool of connections."""

    def __init__(
        self,
        configuration: Any,
        impersonation: Sequence[tuple[str, str]] = (),
        plugin: CredentialPlugin | None = None,
    ) -> None:
        """Reads the certificates and keys at once: their files may go.

        `impersonation` are headers, `plugin` renews a token. Raises OSError for a file that cannot
        be read.
        """
        from kubernetes.client import ApiClient

        self.host = str(configuration.host)
        self._configuration, self._plugin = configuration, plugin
        self._impersonation = tuple(impersonation)
        # The official client's pool: it knows of proxies, and for which hosts there is none.
        self.pool: urllib3.PoolManager = ApiClient(configuration).rest_client.pool_manager
        _read_files(self.pool.connection_pool_kw)
        bind(self.pool)

    def headers(self) -> urllib3.HTTPHeaderDict:
        """The headers of every request; a token that runs out is renewed.

        Raises UnusableKubeconfigError where that fails.
        """
        if self._plugin is not None:
            with _one:
                if self._plugin.has_ended and (token := self._plugin.credentials().get("token")):
                    self._configuration.api_key["BearerToken"] = f"Bearer {token}"
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json"})
        for setting in self._configuration.auth_settings().values():
            if setting.get("in") == "header" and setting.get("value"):
                headers[setting["key"]] = setting["value"]
        for name, value in self._impersonation:
            headers.add(name, value)
        return headers


def connection(
    content: str | None = None, *, context: str | None = None, file: str | None = None
) -> Connection:
    """By a kubeconfig's content, or else by a file: $KUBECONFIG or the usual one where none is
    named. `context` is one of its contexts, its current one where None.

    Raises UnusableKubeconfigError, also where its credential plugin hands out nothing: no request
    is sent without the credentials that the kubeconfig means.
    """
    from kubernetes import client, config

    configuration = client.Configuration()
    with _in_words(), _one, _private_folder() as folder:
        entries = _entries(content, file, context)
        user, plugin = _authenticated(entries)
        config.load_kube_config_from_dict(
            replace(entries, user=user, cluster=_reached(entries.cluster)).flat(),
            client_configuration=configuration,
            temp_file_path=folder,
            persist_config=False,
        )
        return Connection(configuration, list(entries.impersonation()), plugin)


def namespace_of(file: str | None = None, context: str | None = None) -> str | None:
    """The namespace that a context of a kubeconfig file names; None where it names none.

    File and context are as for `connection`. Raises UnusableKubeconfigError.
    """
    with _in_words():
        return _entries(None, file, context).namespace


def _entries(content: str | None, file: str | None, context: str | None) -> ContextEntries:
    from kubernetes.config import kube_config

    if content:
        return of_content(content, context)
    # The client reads the variable when it is imported.
    usual = os.environ.get("KUBECONFIG") or kube_config.KUBE_CONFIG_DEFAULT_LOCATION
    return of_files(file or usual, context)


def _authenticated(entries: ContextEntries) -> tuple[Entry, CredentialPlugin | None]:
    """The user with what its token file or its plugin hands out, and the plugin if that ran."""
    user = {key: value for key, value in entries.user.items() if key not in ("tokenFile", "exec")}
    if "tokenFile" in entries.user:
        token = Path(entries.user["tokenFile"]).read_text(encoding="utf-8").strip()
        if not token:
            raise ValueError(f"tokenFile {entries.user['tokenFile']} is empty")
        user["token"] = token
    if "exec" not in entries.user or "token" in user:
        return user, None
    plugin = CredentialPlugin(entries)
    return {**user, **plugin.credentials()}, plugin


def _reached(cluster: Entry) -> Entry:
    """The cluster with its proxy as the client writes it: client-go has names of hosts looked up
    by a SOCKS proxy, which is `socks5h` here.
    """
    proxy = str(cluster.get("proxy-url") or "")
    if not proxy:
        return cluster
    scheme, _, rest = proxy.partition("://")
    if scheme not in _PROXIES or not rest:
        raise ValueError(f"proxy-url has to begin with {', '.join(f'{it}://' for it in _PROXIES)}")
    return {**cluster, "proxy-url": f"{_PROXIES[scheme]}://{rest}"}


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """Raise UnusableKubeconfigError for whatever the official client raises."""
    from kubernetes import config

    try:
        yield
    except (
        config.ConfigException,
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        urllib3.exceptions.HTTPError,  # an address that is none
    ) as error:
        raise UnusableKubeconfigError(f"the kubeconfig cannot be used: {short(error)}") from None
    except yaml.YAMLError:  # its message may quote the content
        raise UnusableKubeconfigError("the kubeconfig cannot be used: it is not YAML") from None


@contextlib.contextmanager
def _private_folder() -> Iterator[str]:
    """Where the official client writes what a TLS library takes from files only: for a moment, to
    be read by this user alone, and removed by the next run if this one is killed meanwhile.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder:
        yield folder


def _read_files(settings: dict[str, Any]) -> None:
    """Have what stands in files in the settings of a pool of connections in memory."""
    context = create_urllib3_context(cert_reqs=settings.get("cert_reqs"))
    authority = settings.pop("ca_certs", None)
    if authority:
        context.load_verify_locations(authority)
    else:
        context.load_default_certs()
    certificate, key = settings.pop("cert_file", None), settings.pop("key_file", None)
    if certificate:
        context.load_cert_chain(certificate, key)
    settings["ssl_context"] = context
