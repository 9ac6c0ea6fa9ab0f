"""The sandbox's one etcd, and the keys in it.

Keys are read, written and deleted through etcd's JSON gateway: no client program is needed.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.control_plane.certificates import Authority
from sandbox.control_plane.kube_api import AdminApi, KubeError
from sandbox.control_plane.ports import Ports
from sandbox.control_plane.processes import LEAN, ServerProcess


@dataclass(frozen=True)
class Etcd:
    """The sandbox's one etcd. All control planes keep their keys in it, each below a prefix."""

    directory: Path
    ports: Ports

    @property
    def authority(self) -> Authority:
        """The issuer of its certificates, which keep other users of the machine out."""
        return Authority(self.directory / "certs" / "etcd")

    @property
    def server(self) -> str:
        """Its address for clients."""
        return f"https://127.0.0.1:{self.ports.etcd}"

    def prepare(self) -> None:
        """Make its certificates."""
        self.authority.ensure("kai-fleet sandbox etcd")
        self.authority.server("etcd", ["localhost", "127.0.0.1"])
        self.authority.client("client", "sandbox", "sandbox")

    def client(self) -> AdminApi:
        """A client of its JSON gateway."""
        return AdminApi.of_kubeconfig(self.authority.kubeconfig("client", self.server))

    def healthy(self) -> bool:
        """Whether it serves."""
        try:
            return self.client().get("/health").get("health") == "true"
        except KubeError:
            return False

    def delete(self, prefix: str) -> None:
        """Delete every key below the prefix, a path. Raises KubeError."""
        self.client().post("/v3/kv/deleterange", below(prefix))

    def read(self, prefix: str) -> dict[str, bytes]:
        """The values of every key below the prefix, by what follows it. Raises KubeError."""
        found = self.client().post("/v3/kv/range", below(prefix)).get("kvs", [])
        decoded = {base64.b64decode(each["key"]).decode(): each["value"] for each in found}
        return {key.removeprefix(prefix): base64.b64decode(value) for key, value in decoded.items()}

    def write(self, prefix: str, values: Mapping[str, bytes]) -> None:
        """Write values by what follows the prefix in their keys. Raises KubeError."""
        client = self.client()
        for key, value in values.items():
            encoded = base64.b64encode(f"{prefix}{key}".encode()).decode()
            put = {"key": encoded, "value": base64.b64encode(value).decode()}
            client.post("/v3/kv/put", put)

    def part(self, binary: Path) -> ServerProcess:
        """The process."""
        pair = self.authority.path("etcd")
        peer = f"http://127.0.0.1:{self.ports.etcd_peer}"
        return ServerProcess(
            "etcd",
            (
                str(binary),
                "--name=sandbox",
                f"--data-dir={self.directory / 'etcd'}",
                f"--listen-client-urls={self.server}",
                f"--advertise-client-urls={self.server}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=sandbox={peer}",
                "--client-cert-auth",
                f"--trusted-ca-file={self.authority.pair.certificate}",
                f"--cert-file={pair.certificate}",
                f"--key-file={pair.key}",
                "--unsafe-no-fsync",  # throwaway data: a crash of the machine may lose it
                "--quota-backend-bytes=4294967296",
                "--log-level=warn",
            ),
            self.directory / "logs" / "etcd.log",
            LEAN,
            ("127.0.0.1", self.ports.etcd),
        )


def below(prefix: str) -> dict[str, Any]:
    """The range of all keys below the prefix, a path, as etcd's requests name it."""
    # The slash keeps `team-a` from being taken for the beginning of `team-ab`; "0" follows it.
    start, end = f"{prefix}/".encode(), f"{prefix}0".encode()
    return {"key": base64.b64encode(start).decode(), "range_end": base64.b64encode(end).decode()}
