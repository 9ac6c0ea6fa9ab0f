"""The Secret `vc-NAME` as vCluster writes it, and an API server that its certificates are for."""

import base64
import contextlib
import functools
import ssl
from dataclasses import dataclass
from typing import Any

import trustme
import yaml

from tests.unit.components.cluster import canned_api, http_server

# What may stand in a kubeconfig and make a client run, read, ask or trust something else.
USER = {
    "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": ["m"]},
    "auth-provider": {"name": "oidc", "config": {"cmd-path": "/bin/touch"}},
    "tokenFile": "/etc/hostname",
    "token": "s3cret-value",
    "username": "s3cret-value",
    "password": "s3cret-value",
    "client-certificate": "/etc/hostname",
    "client-key": "/etc/hostname",
    "as": "s3cret-value",
    "as-groups": ["system:masters"],
    "extensions": [{"name": "e", "extension": {}}],
}
CLUSTER = {
    "certificate-authority": "/etc/hostname",
    "proxy-url": "http://s3cret-value:3128",
    "insecure-skip-tls-verify": True,
    "tls-server-name": "s3cret-value",
    "disable-compression": True,
    "extensions": [{"name": "e", "extension": {}}],
}


@dataclass(frozen=True)
class Keys:
    """An authority, a certificate of it, and its key, as PEM."""

    authority: bytes
    certificate: bytes
    key: bytes


@functools.cache
def _authority(name: str) -> trustme.CA:
    return trustme.CA(organization_name=name)


@functools.cache
def keys(of: str = "ml") -> Keys:
    """A team's."""
    issued = _authority(of).issue_cert(f"admin.{of}", common_name="admin")
    return Keys(
        _authority(of).cert_pem.bytes(),
        issued.cert_chain_pems[0].bytes(),
        issued.private_key_pem.bytes(),
    )


def encoded(content: bytes | str) -> str:
    return base64.b64encode(content if isinstance(content, bytes) else content.encode()).decode()


def config(of: Keys | None = None, server: str = "https://localhost:8443") -> dict[str, Any]:
    """What is at the key `config`."""
    item = of or keys()
    cluster = {"server": server, "certificate-authority-data": encoded(item.authority)}
    user = {
        "client-certificate-data": encoded(item.certificate),
        "client-key-data": encoded(item.key),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "current-context": "team-ml-ml",
        "clusters": [{"name": "team-ml-ml", "cluster": cluster}],
        "contexts": [
            {"name": "team-ml-ml", "context": {"cluster": "team-ml-ml", "user": "team-ml-ml"}}
        ],
        "users": [{"name": "team-ml-ml", "user": user}],
    }


def data(document: Any = None, of: Keys | None = None) -> dict[str, str]:
    """The Secret's `data`; `document` in place of vCluster's own kubeconfig."""
    item = of or keys()
    text = document if isinstance(document, str) else yaml.safe_dump(document or config(item))
    return {
        "config": encoded(text),
        "certificate-authority": encoded(item.authority),
        "client-certificate": encoded(item.certificate),
        "client-key": encoded(item.key),
        "token": "",
    }


@contextlib.contextmanager
def serving(of: str = "ml"):
    """A vCluster's API server of canned answers, as the class to set them, and its address."""

    class Own(canned_api.Api):
        answers: dict[str, tuple[int, object]] = {
            "/version": (200, {"major": "1"}),
            "/api/v1/pods": (200, {"items": []}),
        }
        asked: list[tuple[str, str]] = []
        bodies: list[dict[str, Any]] = []

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _authority(of).issue_cert("127.0.0.1").configure_cert(context)
    _authority(of).configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with http_server.listening(Own, context) as server:
        yield Own, f"https://127.0.0.1:{server.server_port}"
