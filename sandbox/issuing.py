"""Issuing the sandbox's keys and certificates: an hour back-dated, a year good."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sandbox.certificates import Pair

LIFETIME: Final = datetime.timedelta(days=365)
# A clock that was set back must not make a new certificate look like one of the future.
_BACKDATED: Final = datetime.timedelta(hours=1)


def authority(pair: Pair, title: str) -> None:
    """An authority's own certificate, signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, title)])
    certificate = (
        _builder(name, name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    _write(pair, certificate, key)


def server(by: Pair, pair: Pair, name: str, alternatives: Sequence[str]) -> None:
    """A server's, for these host names and addresses.

    etcd's own gateway also uses its certificate as a client, so both usages are in it.
    """
    _issue(
        by,
        pair,
        [x509.NameAttribute(NameOID.COMMON_NAME, name)],
        [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH],
        alternatives,
    )


def client(by: Pair, pair: Pair, user: str, group: str) -> None:
    """A client's, who is that user of that group."""
    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, group),
        x509.NameAttribute(NameOID.COMMON_NAME, user),
    ]
    _issue(by, pair, subject, [ExtendedKeyUsageOID.CLIENT_AUTH], [])


def signing_key(pair: Pair) -> None:
    """A private key, and its public half in place of a certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    _write_key(pair.key, key)
    pair.certificate.write_bytes(public)


def _issue(
    by: Pair,
    pair: Pair,
    subject: list[x509.NameAttribute[str]],
    usages: list[x509.ObjectIdentifier],
    alternatives: Sequence[str],
) -> None:
    issuer = x509.load_pem_x509_certificate(by.certificate.read_bytes())
    signer = serialization.load_pem_private_key(by.key.read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(x509.Name(subject), issuer.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    )
    if alternatives:
        names = x509.SubjectAlternativeName([_general_name(name) for name in alternatives])
        builder = builder.add_extension(names, critical=False)
    _write(pair, builder.sign(signer, hashes.SHA256()), key)


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
