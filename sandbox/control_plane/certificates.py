"""Keys and certificates of the sandbox's API servers: throwaway, on loopback only."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kai_fleet.cluster.tenant_kubeconfig import Pieces

if TYPE_CHECKING:
    import trustme

ORGANIZATION: Final = "kai-fleet sandbox"


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

    @property
    def clients(self) -> Pair:
        """The authority of client certificates, if `ensure_split` was called one of its own."""
        own = self.path("client-ca")
        return own if own.exists() else self.pair

    def ensure_split(self) -> None:
        """Have an authority of clients by itself; at first it is a copy of the other one."""
        own = self.path("client-ca")
        if not own.exists():
            own.key.touch(mode=0o600)
            own.key.write_bytes(self.pair.key.read_bytes())
            own.certificate.write_bytes(self.pair.certificate.read_bytes())

    def path(self, name: str) -> Pair:
        """Where the pair of that name is, issued or not."""
        return Pair(self.directory / f"{name}.crt", self.directory / f"{name}.key")

    def ensure(self, title: str) -> None:
        """Create the authority unless it exists."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.pair.exists():
            import trustme  # loads slowly, and is seldom needed

            root = trustme.CA(organization_name=ORGANIZATION, organization_unit_name=title)
            _write(self.pair, root.cert_pem, root.private_key_pem)

    def server(self, name: str, names: Iterable[str]) -> Pair:
        """A server certificate for exactly these host names and addresses.

        It is issued anew when they differ from those that it has.
        """
        desired = sorted(set(names))
        pair, issued = self.path(name), self.directory / f"{name}.names"
        if not pair.exists() or not issued.exists() or issued.read_text().splitlines() != desired:
            self._issue(self.pair, pair, desired, name, ORGANIZATION)
            issued.write_text("\n".join(desired))
        return pair

    def client(self, name: str, user: str, group: str) -> Pair:
        """A client certificate that makes its bearer that user of that group."""
        pair = self.path(name)
        if not pair.exists():
            self._issue(self.clients, pair, [f"{name}.client"], user, group)
        return pair

    def drop(self, name: str, within: datetime.timedelta) -> None:
        """Drop a certificate that expires within that time, so that it is issued again."""
        pair = self.path(name)
        if pair.exists() and _ends(pair) <= datetime.datetime.now(datetime.UTC) + within:
            pair.certificate.unlink()

    def kubeconfig(self, client: str, server: str, context: str = "sandbox") -> str:
        """A self-contained kubeconfig of the client whose pair has that name."""
        pair = self.path(client)
        authority, certificate = self.pair.certificate.read_text(), pair.certificate.read_text()
        pieces = Pieces(authority, certificate, pair.key.read_text(), _ends(pair))
        return pieces.kubeconfig(server, context)

    @staticmethod
    def _issue(issuer: Pair, pair: Pair, names: list[str], common: str, organization: str) -> None:
        import trustme

        files = (issuer.certificate, issuer.key)
        authority = trustme.CA.from_pem(*(file.read_bytes() for file in files))
        leaf = authority.issue_cert(*names, common_name=common, organization_name=organization)
        _write(pair, leaf.cert_chain_pems[0], leaf.private_key_pem)


def _ends(pair: Pair) -> datetime.datetime:
    """When its certificate expires."""
    from cryptography import x509

    return x509.load_pem_x509_certificate(pair.certificate.read_bytes()).not_valid_after_utc


def _write(pair: Pair, certificate: trustme.Blob, key: trustme.Blob) -> None:
    pair.key.touch(mode=0o600)
    pair.key.write_bytes(key.bytes())
    pair.certificate.write_bytes(certificate.bytes())
