"""The Kubernetes client without the files that it writes.

It puts the certificates and keys of a kubeconfig into files of the temporary folder, and removes
them when Python ends in order; a plugin is ended by its engine. Here they are read back at once,
and removed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kubernetes import client
from kubernetes.config import kube_config
from urllib3.util.ssl_ import create_urllib3_context

_one: Final = threading.Lock()  # the client lists its files in one place for all threads


def in_memory(make: Callable[[], client.ApiClient]) -> client.ApiClient:
    """The client that `make` makes, with what it needs for TLS in memory.

    Raises what that raises, and OSError for a certificate that is none.
    """
    with _one:
        others, kube_config._temp_files = kube_config._temp_files, {}
        try:
            api = make()
            settings = api.rest_client.pool_manager.connection_pool_kw
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
            return api
        finally:
            for name in kube_config._temp_files.values():
                Path(name).unlink(missing_ok=True)
            kube_config._temp_files = others
