"""Keys and certificates of the sandbox's API servers: throwaway, on loopback only.

What is there already is known by its files alone: the library that issues takes long to load.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path

    def exists(self) -> bool:
        """Whether both files are there."""
        return self.certificate.exists() and self.key.exists()


@dataclass(frozen=True)
class Authority:
    """A certificate authority in a folder of its own; whatever it issues is beside it."""

    directory: Path

    @property
    def pair(self) -> Pair:
        """The authority's own certificate and key."""
        return self.path("ca")

    def path(self, name: str) -> Pair:
        """Where the pair of that name is, issued or not."""
        return Pair(self.directory / f"{name}.crt", self.directory / f"{name}.key")

    def ensure(self, title: str) -> None:
        """Make the authority unless it is there."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.pair.exists():
            from sandbox import issuing

            issuing.authority(self.pair, title)

    def server(self, name: str, names: Iterable[str]) -> Pair:
        """A server certificate for exactly these host names and addresses.

        It is issued anew when they differ from those that it has.
        """
        wanted = sorted({str(name) for name in names})
        pair, told = self.path(name), self.directory / f"{name}.names"
        if not pair.exists() or not told.exists() or told.read_text().splitlines() != wanted:
            from sandbox import issuing

            told.unlink(missing_ok=True)
            issuing.server(self.pair, pair, name, wanted)
            told.write_text("\n".join(wanted))
        return pair

    def client(self, name: str, user: str, group: str) -> Pair:
        """A client certificate that makes its bearer that user of that group."""
        pair = self.path(name)
        if not pair.exists():
            from sandbox import issuing

            issuing.client(self.pair, pair, user, group)
        return pair

    def signing_key(self, name: str) -> Pair:
        """A private key and its public half (in place of a certificate), for tokens."""
        pair = self.path(name)
        if not pair.exists():
            from sandbox import issuing

            issuing.signing_key(pair)
        return pair
