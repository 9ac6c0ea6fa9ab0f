"""The Secret `NAME-certs`: a vCluster's authorities, keys and certificates (pkg/certs/ensure.go).

As in vCluster the Secret wins over the files of the volume, and without it the files are kept and
written into a new one: to delete it renews nothing.
"""

import base64
from typing import Final

from kai_fleet.releases import VCLUSTER
from sandbox.control_plane.command_lines import ControlPlane
from sandbox.control_plane.kube_api import AdminApi, Object

# Key of the Secret, and the file of the sandbox. Clients are signed by `ca`, and trusted by
# `client-ca`; the server's authority is the third.
_AUTHORITIES: Final = {
    "ca.crt": "client-ca.crt",
    "ca.key": "client-ca.key",
    "client-ca.crt": "client-ca.crt",
    "client-ca.key": "client-ca.key",
    "server-ca.crt": "ca.crt",
    "server-ca.key": "ca.key",
}
_TOKENS: Final = {"sa.pub": "service-accounts.crt", "sa.key": "service-accounts.key"}
# What is issued to clients: dropped together, and issued together. What its server shows outside is
# in no Secret (pkg/server/cert/syncer.go).
_LEAVES: Final = ("admin", "controller-manager", "apiserver-kubelet-client")
_ISSUED: Final = {f"{leaf}.{part}": f"{leaf}.{part}" for leaf in _LEAVES for part in ("crt", "key")}
_FILES: Final = _AUTHORITIES | _TOKENS | _ISSUED


def prepare(
    host: AdminApi, namespace: str, plane: ControlPlane, metadata: Object, version: str
) -> bool:
    """Make the files of a vCluster that starts, from its Secret if there is one, and write it.

    Returns whether it trusts another authority of clients than before.
    """
    path = f"/api/v1/namespaces/{namespace}/secrets"
    name = metadata["name"].removesuffix("-certs")
    secret = host.find(f"{path}/{name}-certs")
    trusted = plane.directory / "certs" / "client-ca.crt"
    before = trusted.read_bytes() if trusted.exists() else b""
    release = VCLUSTER.get(version)
    renews = release is None or release.renews
    found: dict[str, str] = (secret or {}).get("data") or {}
    if secret is not None:
        _download(plane, found)
        if renews and not set(found) >= set(_ISSUED):
            plane.drop_issued(_LEAVES)
    if renews:
        plane.renew()
    plane.prepare(f"vcluster-{name}")
    metadata = {**metadata, "labels": {"app": "vcluster", "vcluster-name": name}}
    written = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": _data(plane)}
    if secret is None:
        host.ensure(path, written)
    elif renews:
        host.patch(f"{path}/{name}-certs", {"data": written["data"]})
    return before not in (b"", trusted.read_bytes())


def _download(plane: ControlPlane, data: dict[str, str]) -> None:
    directory = plane.directory / "certs"
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    for key, file in _FILES.items():
        if key in data:
            (directory / file).touch(mode=0o600)
            (directory / file).write_bytes(base64.b64decode(data[key]))


def _data(plane: ControlPlane) -> dict[str, str]:
    directory = plane.directory / "certs"
    contents = {key: (directory / file).read_bytes() for key, file in _FILES.items()}
    return {key: base64.b64encode(content).decode() for key, content in contents.items()}
