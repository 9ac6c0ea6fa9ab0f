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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import urllib3
import yaml
from urllib3.util.ssl_ import create_urllib3_context

from kai_fleet.kube.bounded import bind
from kai_fleet.kube.errors import UnusableKubeconfigError, short

_FOLDER: Final = "kai-fleet-kubeconfig-"
_LEFT_SECONDS: Final = 60.0
_one: Final = threading.Lock()  # the official client lists its files in one place for all threads


class Connection:
    """The way to one API server: its address, its credentials and a pool of connections."""

    def __init__(self, configuration: Any) -> None:
        """Reads the certificates and keys at once: their files may go.

        Raises OSError for one that cannot be read.
        """
        from kubernetes.client import ApiClient

        self.host = str(configuration.host)
        self._configuration = configuration
        # The official client's pool: it knows of proxies, and for which hosts there is none.
        self.pool: urllib3.PoolManager = ApiClient(configuration).rest_client.pool_manager
        _read_files(self.pool.connection_pool_kw)
        bind(self.pool)

    def headers(self) -> dict[str, str]:
        """The headers of every request; a token that runs out is renewed."""
        headers = {"Accept": "application/json"}
        for setting in self._configuration.auth_settings().values():
            if setting.get("in") == "header" and setting.get("value"):
                headers[setting["key"]] = setting["value"]
        return headers


def connection(
    content: str | None = None, *, context: str | None = None, file: str | None = None
) -> Connection:
    """By a kubeconfig's content, or else by a file: $KUBECONFIG or the usual one where none is
    named. `context` is one of its contexts, its current one where None.

    Raises UnusableKubeconfigError.
    """
    from kubernetes import client, config

    configuration = client.Configuration()
    with _in_words(), _one, _private_folder() as folder:
        options = {
            "context": context or None,
            "client_configuration": configuration,
            "temp_file_path": folder,
            "persist_config": False,
        }
        if content:
            config.load_kube_config_from_dict(yaml.safe_load(content), **options)
        else:
            config.load_kube_config(_named(file), **options)
        return Connection(configuration)


def namespace_of(file: str | None = None, context: str | None = None) -> str | None:
    """The namespace that a context of a kubeconfig file names; None where it names none.

    File and context are as for `connection`. Raises UnusableKubeconfigError.
    """
    from kubernetes import config

    with _in_words():
        there, current = config.list_kube_config_contexts(_named(file))
        named = {it["name"]: it for it in there}
        if context and context not in named:
            raise UnusableKubeconfigError(
                f"the kubeconfig has no context {context}; its contexts: {', '.join(named)}"
            )
        chosen = named[context] if context else current
        return (chosen.get("context") or {}).get("namespace") or None


def _named(file: str | None) -> str | None:
    """The file, else what the variable says: the client reads that when it is imported."""
    return file or os.environ.get("KUBECONFIG") or None


@contextlib.contextmanager
def _in_words() -> Iterator[None]:
    """Raise UnusableKubeconfigError for whatever the official client raises."""
    from kubernetes import config

    try:
        yield
    except (config.ConfigException, OSError, ValueError, TypeError, KeyError) as error:
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
