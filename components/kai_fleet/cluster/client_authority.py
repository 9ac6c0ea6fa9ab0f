"""The authority of client certificates: a new one ends every kubeconfig of the old one.

A vCluster keeps it in the Secret `NAME-certs` of its host namespace, apart from the authority of
its server. Pods verify the server, and sign in with tokens: they notice nothing of a new one.
"""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def succeed(old_pem: bytes) -> dict[str, bytes]:
    """A new authority with the name of an old one, whose certificate this is.

    With another name clients would keep back their certificate, and be anonymous instead of
    refused. The result has its certificate at `crt` and its key at `key`, as PEM. Raises ValueError
    for what is no certificate.
    """
    name = x509.load_pem_x509_certificate(old_pem).subject
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)  # as kubeadm has it
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    is_authority = x509.BasicConstraints(ca=True, path_length=None)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks differ
        .not_valid_after(now + timedelta(days=3650))
        .add_extension(is_authority, critical=True)
        .add_extension(identifier, critical=False)
    )
    pem = PrivateFormat.TraditionalOpenSSL
    return {
        "crt": builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM),
        "key": key.private_bytes(Encoding.PEM, pem, NoEncryption()),
    }
