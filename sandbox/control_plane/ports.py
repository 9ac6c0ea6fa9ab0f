"""The ports of one sandbox: a window of its own, chosen free and then kept."""

import random
import socket
from dataclasses import dataclass
from typing import Final

from sandbox.directory import SandboxError

# Below the ports that Linux hands to outgoing connections (32768 and up), above the well-known.
FIRST: Final = 20_000
WINDOW: Final = 400
WINDOWS: Final = 30
_ASIDE: Final = 10  # the control plane's own ports at the start of a window
_INNER: Final = 140  # vClusters that no node port leads to


@dataclass(frozen=True)
class Ports:
    """A window of ports. `base` is its first."""

    base: int

    @property
    def etcd(self) -> int:
        """etcd's clients."""
        return self.base

    @property
    def etcd_peer(self) -> int:
        """etcd's peers: a cluster of one listens all the same."""
        return self.base + 1

    @property
    def api(self) -> int:
        """The host's API server."""
        return self.base + 2

    @property
    def inner(self) -> range:
        """Ports for vClusters whose Service has no node port."""
        return range(self.base + _ASIDE, self.base + _ASIDE + _INNER)

    @property
    def node_ports(self) -> range:
        """The range of node ports of the host's API server."""
        return range(self.base + _ASIDE + _INNER, self.base + WINDOW)

    @property
    def loopback_prefix(self) -> str:
        """The first three bytes of addresses that LoadBalancer Services of this sandbox get."""
        return f"127.77.{(self.base - FIRST) // WINDOW + 1}."


def choose() -> Ports:
    """A window in which nothing listens. Raises SandboxError.

    The search starts anywhere: of two users' sandboxes, which share no lock, few meet.
    """
    start = random.randrange(WINDOWS)
    for step in range(WINDOWS):
        ports = Ports(FIRST + (start + step) % WINDOWS * WINDOW)
        if all(map(free, range(ports.base, ports.base + WINDOW))):
            return ports
    raise SandboxError(
        f"No free ports between {FIRST} and {FIRST + WINDOW * WINDOWS - 1}: stop another sandbox "
        "(`make down` in its checkout), then try again."
    )


def free(port: int, address: str = "127.0.0.1") -> bool:
    """Whether this process may listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
