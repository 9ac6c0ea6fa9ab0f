"""The Kubernetes client without the files that it writes.

It puts the certificates and keys of a kubeconfig into files of the temporary folder, and removes
them when Python ends in order; a plugin is ended by its engine. Here they are read back at once,
and removed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes import client, config
from kubernetes.config import kube_config
from urllib3.util.ssl_ import create_urllib3_context

_one: Final = threading.Lock()  # the client lists its files in one place for all threads


def of_file(file: str | None, context: str | None) -> client.ApiClient:
    """A client by a context of a kubeconfig file; None stands for the usual one of each.

    Raises what the Kubernetes client does, and OSError for a certificate that is none.
    """
    return _in_memory(lambda: config.new_client_from_config(file, context))


def of_content(text: str, context: str | None = None) -> client.ApiClient:
    """The same by a kubeconfig's content. Raises yaml.YAMLError too."""
    content = yaml.safe_load(text)
    return _in_memory(lambda: config.new_client_from_config_dict(content, context=context))


def _in_memory(make: Callable[[], client.ApiClient]) -> client.ApiClient:
    with _one:
        others, kube_config._temp_files = kube_config._temp_files, {}
        try:
            api = make()
            _read_back(api.rest_client.pool_manager.connection_pool_kw)
            return api
        finally:
            for name in kube_config._temp_files.values():
                Path(name).unlink(missing_ok=True)
            kube_config._temp_files = others


def _read_back(settings: dict[str, Any]) -> None:
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
