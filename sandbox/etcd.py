"""The sandbox's one etcd, and the keys in it.

Keys are asked for through etcd's JSON gateway: no client program is needed.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.certificates import Authority
from sandbox.kube_api import ApiError, Credentials, Https
from sandbox.ports import Ports
from sandbox.processes import LEAN, Part


@dataclass(frozen=True)
class Etcd:
    """The sandbox's one etcd. All control planes keep their keys in it, each below a prefix."""

    directory: Path
    ports: Ports

    @property
    def authority(self) -> Authority:
        """What its certificates come from: other users of the machine stay out."""
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

    def credentials(self) -> Credentials:
        """For a client."""
        client = self.authority.path("client")
        return Credentials(self.authority.pair.certificate, client.certificate, client.key)

    def part(self, binary: Path) -> Part:
        """The process."""
        pair = self.authority.path("etcd")
        peer = f"http://127.0.0.1:{self.ports.etcd_peer}"
        return Part(
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


def healthy(etcd: Etcd) -> bool:
    """Whether etcd serves."""
    try:
        return Https(etcd.server, etcd.credentials()).open("GET", "/health").status == 200
    except ApiError:
        return False


def count(etcd: Etcd, prefix: str) -> int:
    """How many keys are below the prefix, a path. Raises ApiError."""
    answer = _ask(etcd, "range", {**_range(prefix), "count_only": True})
    return int(answer.get("count", 0))


def delete_prefix(etcd: Etcd, prefix: str) -> None:
    """Delete every key below the prefix, a path. Raises ApiError."""
    _ask(etcd, "deleterange", _range(prefix))


def _range(prefix: str) -> dict[str, Any]:
    # The slash keeps `team-a` from being taken for the beginning of `team-ab`; "0" follows it.
    start, end = f"{prefix}/".encode(), f"{prefix}0".encode()
    return {"key": base64.b64encode(start).decode(), "range_end": base64.b64encode(end).decode()}


def _ask(etcd: Etcd, call: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = Https(etcd.server, etcd.credentials()).open("POST", f"/v3/kv/{call}", body)
    document = json.loads(answer.data)
    return document if isinstance(document, dict) else {}
