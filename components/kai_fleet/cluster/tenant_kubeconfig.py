"""Build a vCluster's kubeconfig from an untrusted Secret: only its certificates and key are used.

Whoever can write in a team's namespace can write its Secret `vc-NAME`. A kubeconfig may name
programs to run, files to read and proxies to ask, so the one in the Secret is not used. Used are a
certificate authority, a client certificate and its key, and a new kubeconfig is built of these.
Every supported vCluster writes them under separate keys (pkg/util/kubeconfig), beside a kubeconfig
under `config`, which has to have exactly the form that vCluster writes.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import yaml
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

AUTHORITY: Final = "certificate-authority"
CERTIFICATE: Final = "client-certificate"
KEY: Final = "client-key"
CONFIG: Final = "config"
# A certificate takes 1 to 2 KiB, a key of 8192 bits 6.4 KiB.
_MOST_BYTES: Final = {AUTHORITY: 32 << 10, CERTIFICATE: 16 << 10, KEY: 8 << 10, CONFIG: 128 << 10}
_MOST_CERTIFICATES: Final = 8
_BLOCK: Final = r"-----BEGIN {0}-----\n(?:[A-Za-z0-9+/=]{{1,76}}\n)+-----END {0}-----"
_CERTIFICATES: Final = re.compile(rf"(?:\s*{_BLOCK.format('CERTIFICATE')})+\s*")
_PRIVATE_KEY: Final = re.compile(
    "|".join(rf"\s*{_BLOCK.format(f'{kind}PRIVATE KEY')}\s*" for kind in ("", "RSA ", "EC "))
)
# What vCluster leaves empty, and by which of its values.
_EMPTY_BY: Final = {
    AUTHORITY: "exportKubeConfig.insecure",
    CERTIFICATE: "exportKubeConfig.serviceAccount",
    KEY: "exportKubeConfig.serviceAccount",
}
# The kubeconfig that vCluster writes, and the one that is built here. Newer ones leave out the
# empty preferences; each name is plain or quoted, and the same wherever it stands.
_NAME: Final = r"""'([^'\n]|''){1,253}'|"[^"\\\n]{1,253}"|\w[\w./@'-]*([ :][\w./@'-]+)*"""
_CONFIG_FORM: Final = re.compile(
    rf"""apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: (?P<authority>[A-Za-z0-9+/=]+)
    server: (?P<server>https://([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(:\d{{1,5}})?(/[\w./-]*)?)
  name: (?P<cluster>{_NAME})
contexts:
- context:
    cluster: (?P=cluster)
    user: (?P<user>{_NAME})
  name: (?P<context>{_NAME})
current-context: (?P=context)
kind: Config
(preferences: \{{\}}
)?users:
- name: (?P=user)
  user:
    client-certificate-data: (?P<certificate>[A-Za-z0-9+/=]+)
    client-key-data: (?P<key>[A-Za-z0-9+/=]+)
""",
    re.ASCII,
)


class TenantKubeconfigError(ValueError):
    """The Secret has no usable kubeconfig. The message completes `Secret vc-NAME …`.

    `foreign`: vCluster does not write such content, so a tenant did. Otherwise it is not written
    yet. Messages contain no value of the Secret.
    """

    def __init__(self, message: str, *, foreign: bool = True) -> None:
        super().__init__(message)
        self.foreign = foreign


@dataclass(frozen=True)
class Pieces:
    """A CA, a client certificate and its key as PEM; `ends` is the certificate's expiry.

    Each was parsed, and the key matches the certificate.
    """

    authority: str = field(repr=False)
    certificate: str = field(repr=False)
    key: str = field(repr=False)
    ends: datetime

    def kubeconfig(self, server: str, context: str) -> str:
        """A kubeconfig with only these, for a server URL."""
        cluster = {"server": server, "certificate-authority-data": _base64(self.authority)}
        user = {
            "client-certificate-data": _base64(self.certificate),
            "client-key-data": _base64(self.key),
        }
        built = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": context,
            "clusters": [{"name": context, "cluster": cluster}],
            "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
            "users": [{"name": context, "user": user}],
        }
        return yaml.safe_dump(built, sort_keys=True)


def explain(
    name: str, namespace: str, error: TenantKubeconfigError, workload: str = "statefulset"
) -> str:
    """A sentence about a vCluster's Secret, with the commands that repair it. `workload` is what
    kubectl calls its control plane.
    """
    sentence = f"Secret vc-{name} of namespace {namespace} {error}"
    again = " and ".join(repair_commands(name, namespace, workload=workload))
    if not error.foreign:
        return f"{sentence}; vCluster writes it when it starts: {again}"
    return f"{sentence}. {name_writer(name)}. Have vCluster write it again: {again}"


def name_writer(name: str) -> str:
    """A sentence about who wrote a foreign Secret, and that it was not used."""
    return (
        f"Somebody who can write in the namespace of team {name} wrote it; nothing of it was used"
    )


def repair_commands(
    name: str, namespace: str, kubectl: str = "kubectl", workload: str = "statefulset"
) -> tuple[str, ...]:
    """Commands that make vCluster write its Secret again, which it does at its start."""
    return (
        f"{kubectl} -n {namespace} delete secret vc-{name}",
        f"{kubectl} -n {namespace} rollout restart {workload} {name}",
    )


def of_secret(data: Mapping[str, Any], server: str, context: str) -> str:
    """Build a kubeconfig from the `data` of a Secret `vc-NAME`, for a server from elsewhere.

    The server in the Secret is not used: vCluster writes `https://localhost:8443`.
    Raises TenantKubeconfigError.
    """
    return pieces(data).kubeconfig(server, context)


def pieces(data: Mapping[str, Any]) -> Pieces:
    """The three pieces of a Secret `vc-NAME`, from its `data`. Raises TenantKubeconfigError."""
    for key in (AUTHORITY, CERTIFICATE, KEY):
        if key not in data:
            raise TenantKubeconfigError(f"has no key {key}", foreign=False)
    texts = {key: _decoded(key, data[key]) for key in (AUTHORITY, CERTIFICATE, KEY)}
    if CONFIG in data:
        in_config = _of_config(_decoded(CONFIG, data[CONFIG]))[0]
        for key, text in texts.items():
            if in_config[key].strip() != text.strip():
                raise TenantKubeconfigError(f"has another {key} in its key {CONFIG}")
    return _checked(texts)


def rebuild(text: str) -> tuple[str, Pieces]:
    """Rebuild a stored kubeconfig, as in a stack's state, from its pieces; return both.

    A team can write the state of its stack. Raises TenantKubeconfigError.
    """
    texts, server, context = _of_config(text)
    parsed = _checked(texts)
    return parsed.kubeconfig(server, context), parsed


def _of_config(text: str) -> tuple[dict[str, str], str, str]:
    """The pieces in a kubeconfig as vCluster writes it, its server, its context."""
    if len(text) > _MOST_BYTES[CONFIG]:
        raise TenantKubeconfigError(f"holds more than {_MOST_BYTES[CONFIG] >> 10} KiB")
    form = _CONFIG_FORM.fullmatch(text)
    if form is None:
        raise TenantKubeconfigError(f"has in its key {CONFIG} what vCluster does not write there")
    written = {AUTHORITY: form["authority"], CERTIFICATE: form["certificate"], KEY: form["key"]}
    texts = {key: _decoded(key, value) for key, value in written.items()}
    return texts, form["server"], str(yaml.safe_load(form["context"]))


def _checked(texts: Mapping[str, str]) -> Pieces:
    authority = _certificates(AUTHORITY, texts[AUTHORITY])
    chain = _certificates(CERTIFICATE, texts[CERTIFICATE])
    try:
        # Whether its numbers are primes concerns the tenant alone, and takes 0.1 s.
        key = _PRIVATE_KEY.fullmatch(texts[KEY]) and serialization.load_pem_private_key(
            texts[KEY].encode(), password=None, unsafe_skip_rsa_key_validation=True
        )
        public = key and key.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        public = None
    if public is None:
        raise TenantKubeconfigError(f"holds no private key at its key {KEY}")
    try:
        ends, of_certificate = chain[0].not_valid_after_utc, chain[0].public_key()
    except (ValueError, UnsupportedAlgorithm):  # such as the year 0, which Python has not
        raise TenantKubeconfigError(f"holds no certificate at its key {CERTIFICATE}") from None
    if public != of_certificate:
        raise TenantKubeconfigError(f"has a {KEY} that is not the {CERTIFICATE}'s")
    return Pieces(_pem(authority), _pem(chain), texts[KEY].strip() + "\n", ends)


def _certificates(key: str, text: str) -> list[x509.Certificate]:
    try:
        if not _CERTIFICATES.fullmatch(text):
            raise ValueError
        certificates = x509.load_pem_x509_certificates(text.encode())
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        raise TenantKubeconfigError(f"holds no certificate at its key {key}") from None
    if len(certificates) > _MOST_CERTIFICATES:
        raise TenantKubeconfigError(f"holds {len(certificates)} certificates at its key {key}")
    return certificates


def _pem(certificates: list[x509.Certificate]) -> str:
    pem = serialization.Encoding.PEM
    return "".join(certificate.public_bytes(pem).decode() for certificate in certificates)


def _decoded(key: str, value: Any) -> str:
    """Decode base64 of ASCII text, within the key's maximum size."""
    most = _MOST_BYTES[key]
    if not isinstance(value, str) or len(value) > most * 4 // 3 + 4:
        raise TenantKubeconfigError(f"holds more than {most >> 10} KiB at its key {key}")
    try:
        text = base64.b64decode(value, validate=True).decode("ascii")
    except ValueError:
        raise TenantKubeconfigError(f"holds no plain text at its key {key}") from None
    if not text.strip() and key in _EMPTY_BY:
        raise TenantKubeconfigError(
            f"has an empty key {key}; if vCluster's value {_EMPTY_BY[key]} is set, drop it: only"
            " certificates are taken"
        )
    return text


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
