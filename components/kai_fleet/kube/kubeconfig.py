"""The way to an API server by a kubeconfig, with its certificates and keys in memory."""

import base64
import contextlib
import os
import shutil
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
import yaml
from urllib3.contrib.socks import SOCKSProxyManager
from urllib3.util.ssl_ import create_urllib3_context

from kai_fleet.kube.bounded import bind
from kai_fleet.kube.credential_plugin import CredentialPlugin, id_token
from kai_fleet.kube.errors import UnusableKubeconfigError, short
from kai_fleet.kube.kubeconfig_entries import ContextEntries, Entry, of_content, of_files

_FOLDER: Final = "kai-fleet-kubeconfig-"
_LEFT_SECONDS: Final = 60.0
_THREADS: Final = 32  # that ask one API server at once, and keep their connections
_USUAL: Final = "~/.kube/config"
# client-go has names of hosts looked up by a SOCKS proxy, which is `socks5h` here.
_PROXIES: Final = {"http": "http", "https": "https", "socks5": "socks5h", "socks5h": "socks5h"}


class Connection:
    """The way to one API server: its address, its credentials and a pool of connections.

    `authority` is the certificate authority that the kubeconfig names, as PEM, and `namespace` the
    namespace of its context, None where it names none.
    """

    def __init__(self, entries: ContextEntries) -> None:
        """Reads the certificates and keys at once: their files may go.

        Raises what `connection` puts into words.
        """
        self.host = str(entries.cluster["server"]).rstrip("/")
        self.namespace = entries.namespace
        user, self._plugin = _authenticated(entries)
        self._authorization = _authorization(user)
        self._impersonation = tuple(entries.impersonation())
        self._renewing = threading.Lock()
        self.authority = _content(entries.cluster, "certificate-authority")
        self.pool = _pool(self.host, self.authority, entries.cluster, user)
        bind(self.pool)

    def headers(self) -> urllib3.HTTPHeaderDict:
        """The headers of every request; a token that runs out is renewed.

        Raises UnusableKubeconfigError where that fails.
        """
        if self._plugin is not None:
            with self._renewing:
                if self._plugin.has_ended:
                    user = self._plugin.credentials()
                    self._authorization = _authorization(user) or self._authorization
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json"})
        if self._authorization:
            headers["Authorization"] = self._authorization
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
    with _in_words():
        if content:
            return Connection(of_content(content, context))
        return Connection(of_files(file or os.environ.get("KUBECONFIG") or _USUAL, context))


def _authenticated(entries: ContextEntries) -> tuple[Entry, CredentialPlugin | None]:
    """The user with what its token file, its provider or its plugin hands out, and the plugin if
    that ran. A token that is written goes first, as for kubectl.
    """
    user = dict(entries.user)
    if "tokenFile" in user:
        token = Path(user["tokenFile"]).read_text(encoding="utf-8").strip()
        if not token:
            raise ValueError(f"tokenFile {user['tokenFile']} is empty")
        user["token"] = token
    if "token" in user:
        return user, None
    if "auth-provider" in user:
        return {**user, "token": id_token(user["auth-provider"], entries.user_name)}, None
    if "exec" not in user:
        return user, None
    plugin = CredentialPlugin(entries)
    return {**user, **plugin.credentials()}, plugin


def _authorization(user: Entry) -> str | None:
    if "token" in user:
        return f"Bearer {user['token']}"
    if "username" in user and "password" in user:
        both = f"{user['username']}:{user['password']}"
        return "Basic " + base64.b64encode(both.encode()).decode()
    return None


def _pool(host: str, authority: bytes | None, cluster: Entry, user: Entry) -> urllib3.PoolManager:
    settings: dict[str, Any] = {"maxsize": _THREADS}
    if host.startswith("https:"):
        context = _tls(authority, cluster, user)
        settings |= {"ssl_context": context, "cert_reqs": context.verify_mode}
        if "tls-server-name" in cluster:
            settings["server_hostname"] = cluster["tls-server-name"]
    proxy = _proxy(host, cluster)
    if proxy is None:
        return urllib3.PoolManager(**settings)
    if proxy.startswith("socks"):
        return SOCKSProxyManager(proxy, **settings)
    return urllib3.ProxyManager(proxy, **settings)


def _tls(authority: bytes | None, cluster: Entry, user: Entry) -> ssl.SSLContext:
    unchecked = bool(cluster.get("insecure-skip-tls-verify"))
    context = create_urllib3_context(cert_reqs=ssl.CERT_NONE if unchecked else ssl.CERT_REQUIRED)
    if authority is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
    certificate, key = _content(user, "client-certificate"), _content(user, "client-key")
    if certificate is not None:
        with _private_folder() as folder:
            (folder / "pair").write_bytes(certificate + b"\n" + (key or b""))
            context.load_cert_chain(folder / "pair")
    return context


def _content(entry: Entry, key: str) -> bytes | None:
    """What stands at a key, or in the file that it names; None for neither."""
    if f"{key}-data" in entry:
        return base64.b64decode(entry[f"{key}-data"])
    return Path(entry[key]).read_bytes() if key in entry else None


def _proxy(host: str, cluster: Entry) -> str | None:
    """The one that the kubeconfig names, else the environment's."""
    written = str(cluster.get("proxy-url") or "")
    if written:
        scheme, _, rest = written.partition("://")
        if scheme not in _PROXIES or not rest:
            known = ", ".join(f"{it}://" for it in _PROXIES)
            raise ValueError(f"proxy-url has to begin with {known}")
        return f"{_PROXIES[scheme]}://{rest}"
    of_environment, to = getproxies(), urlsplit(host)
    proxy = of_environment.get(to.scheme)
    return None if not proxy or _is_near(to.hostname or "", of_environment) else proxy


def _is_near(name: str, proxies: dict[str, str]) -> bool:
    """Whether the environment has no proxy for a host: its name, domain or network is in NO_PROXY,
    or it is this machine.
    """
    try:
        address = ip_address(name)
    except ValueError:
        return name == "localhost" or bool(proxy_bypass(name))
    networks = [it.strip() for it in proxies.get("no", "").split(",") if "/" in it]
    for network in networks:
        with contextlib.suppress(ValueError):
            if address in ip_network(network, strict=False):
                return True
    return address.is_loopback or bool(proxy_bypass(name))


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """Raise UnusableKubeconfigError for whatever a kubeconfig may have wrong."""
    try:
        yield
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RuntimeError,  # ~NAME of no user
        urllib3.exceptions.HTTPError,  # an address that is none
    ) as error:
        raise UnusableKubeconfigError(f"the kubeconfig cannot be used: {short(error)}") from None
    except yaml.YAMLError:  # its message may quote the content
        raise UnusableKubeconfigError("the kubeconfig cannot be used: it is not YAML") from None


@contextlib.contextmanager
def _private_folder() -> Iterator[Path]:
    """Where a client's certificate and key stand, which a TLS library takes from a file only: for a
    moment, to be read by this user alone, and removed by the next run if this one is killed.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder:
        yield Path(folder)
