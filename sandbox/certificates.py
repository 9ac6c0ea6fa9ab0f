"""Keys and certificates of the sandbox's API servers: throwaway, on loopback only."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME: Final = datetime.timedelta(days=365)
# A clock that was set back must not make a new certificate look like one of the future.
_BACKDATED: Final = datetime.timedelta(hours=1)


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
        if self.pair.exists():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])
        certificate = (
            _builder(name, name, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(signs=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        _write(self.pair, certificate, key)

    def server(self, name: str, names: Iterable[str]) -> Pair:
        """A server certificate for exactly these host names and addresses.

        It is issued anew when they differ from those that it has. etcd's own gateway also uses
        its certificate as a client, so both usages are in it.
        """
        wanted = sorted({str(name) for name in names})
        pair = self.path(name)
        if pair.exists() and _alternatives(pair.certificate) == wanted:
            return pair
        return self._issue(
            pair,
            [x509.NameAttribute(NameOID.COMMON_NAME, name)],
            [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
            wanted,
        )

    def client(self, name: str, user: str, group: str) -> Pair:
        """A client certificate that makes its bearer that user of that group."""
        pair = self.path(name)
        if pair.exists():
            return pair
        subject = [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, group),
            x509.NameAttribute(NameOID.COMMON_NAME, user),
        ]
        return self._issue(pair, subject, [ExtendedKeyUsageOID.CLIENT_AUTH], [])

    def signing_key(self, name: str) -> Pair:
        """A private key and its public half (in place of a certificate), for tokens."""
        pair = self.path(name)
        if not pair.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            public = key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
            _write_key(pair.key, key)
            pair.certificate.write_bytes(public)
        return pair

    def _issue(
        self,
        pair: Pair,
        subject: list[x509.NameAttribute[str]],
        usages: list[x509.ObjectIdentifier],
        alternatives: list[str],
    ) -> Pair:
        authority = x509.load_pem_x509_certificate(self.pair.certificate.read_bytes())
        signer = serialization.load_pem_private_key(self.pair.key.read_bytes(), None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(x509.Name(subject), authority.subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        )
        if alternatives:
            names = x509.SubjectAlternativeName([_general_name(name) for name in alternatives])
            builder = builder.add_extension(names, critical=False)
        _write(pair, builder.sign(signer, hashes.SHA256()), key)
        return pair


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + LIFETIME)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _alternatives(path: Path) -> list[str]:
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return sorted(
        [*names.get_values_for_type(x509.DNSName)]
        + [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    )


def _write(pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    _write_key(pair.key, key)
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            # PKCS8 is what every reader of the sandbox's keys understands.
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
