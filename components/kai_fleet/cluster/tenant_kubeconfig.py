"""How a vCluster is reached: the address in its Service, the certificates in its Secret.

Whoever can write in a team's namespace can write both. A kubeconfig may name programs to run, files
to read and proxies to ask. So the one in the Secret `vc-NAME` has to have exactly the form that
every supported vCluster writes (pkg/util/kubeconfig), and is not used: a certificate authority, a
client certificate and its key are parsed, and a new kubeconfig is built of these.
"""

import base64
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import yaml
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

_CONFIG: Final = "config"
_MOST_BYTES: Final = 128 << 10
# The kubeconfig that vCluster writes, and the one that is built here. Newer ones leave out the
# empty preferences; each name is plain or quoted, and the same wherever it stands. A certificate
# takes 1 to 2 KiB, a key of 8192 bits 6.4 KiB: a larger one would take minutes to sign with.
_NAME: Final = r"""'([^'\n]|''){1,253}'|"[^"\\\n]{1,253}"|\w[\w./@'-]*([ :][\w./@'-]+)*"""
_FORM: Final = re.compile(
    rf"""apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: (?P<authority>[A-Za-z0-9+/=]{{1,44000}})
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
    client-certificate-data: (?P<certificate>[A-Za-z0-9+/=]{{1,22000}})
    client-key-data: (?P<key>[A-Za-z0-9+/=]{{1,11000}})
""",
    re.ASCII,
)
_DNS_NAME: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*)?)*"
)


class TenantKubeconfigError(ValueError):
    """The Secret has what vCluster does not write, so a tenant wrote it. The message completes
    `Secret vc-NAME …`, and contains no value of the Secret.
    """


@dataclass(frozen=True, repr=False)
class Pieces:
    """A CA, a client certificate and its key as PEM; `ends` is the certificate's expiry."""

    authority: str
    certificate: str
    key: str
    ends: datetime

    def kubeconfig(self, server: str, context: str) -> str:
        """A kubeconfig with only these, for a server URL."""
        cluster = {"server": server, "certificate-authority-data": _base64(self.authority)}
        user = {
            "client-certificate-data": _base64(self.certificate),
            "client-key-data": _base64(self.key),
        }
        return written(context, cluster, user)


def written(context: str, cluster: Mapping[str, str], user: Mapping[str, str]) -> str:
    """A kubeconfig of one cluster and one user, which have the context's name."""
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
    again = " and ".join(repair_commands(name, namespace, workload=workload))
    return (
        f"Secret vc-{name} of namespace {namespace} {error}. {name_writer(name)}. Have vCluster"
        f" write it again: {again}"
    )


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
    if _CONFIG not in data:
        raise TenantKubeconfigError(f"has no key {_CONFIG}")
    written = str(data[_CONFIG])
    if len(written) > _MOST_BYTES:
        raise TenantKubeconfigError(f"holds more than {_MOST_BYTES >> 10} KiB at its key {_CONFIG}")
    try:
        text = base64.b64decode(written, validate=True).decode("ascii")
    except ValueError:
        raise TenantKubeconfigError(f"holds no plain text at its key {_CONFIG}") from None
    return _parsed(text)[0]


def rebuild(text: str) -> str:
    """Rebuild a stored kubeconfig, as in a stack's state, from its pieces.

    A team can write the state of its stack. Raises TenantKubeconfigError.
    """
    parsed, form = _parsed(text)
    return parsed.kubeconfig(form["server"], str(yaml.safe_load(form["context"])))


def _parsed(text: str) -> tuple[Pieces, re.Match[str]]:
    """The pieces in a kubeconfig as vCluster writes it. Nothing of its own text is taken over."""
    form = _FORM.fullmatch(text) if len(text) <= _MOST_BYTES else None
    if form is None:
        raise TenantKubeconfigError(f"has in its key {_CONFIG} what vCluster does not write there")
    try:
        authority, chain = (
            x509.load_pem_x509_certificates(base64.b64decode(form[name], validate=True))
            for name in ("authority", "certificate")
        )
        # Whether its numbers are primes concerns the tenant alone, and takes 0.1 s.
        key = load_pem_private_key(
            base64.b64decode(form["key"], validate=True), None, unsafe_skip_rsa_key_validation=True
        )
        if key.public_key() != chain[0].public_key():
            raise ValueError
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        ends = chain[0].not_valid_after_utc  # a ValueError in the year 0, which Python has not
        return Pieces(_pem(authority), _pem(chain), pem.decode(), ends), form
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion):
        raise TenantKubeconfigError(
            f"has in its key {_CONFIG} no certificates, or a key that is not the certificate's"
        ) from None


def _pem(certificates: list[x509.Certificate]) -> str:
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def address_of(service: Mapping[str, Any], access: str, host: str | None) -> str | None:
    """`host:port` of a vCluster's Service for this type of access, IPv6 addresses in brackets; None
    while it has none. `host` overrides the address of a load balancer; behind an Ingress or a
    Gateway it is the complete result.
    """
    if access in ("Ingress", "Gateway"):
        return host
    metadata, written = service["metadata"], (service.get("spec") or {}).get("ports") or [{}]
    port = written[0].get("nodePort" if access == "NodePort" else "port")
    where = f"{metadata['name']}.{metadata['namespace']}.svc"
    if access == "NodePort":
        where = host or ""
    elif access == "LoadBalancer":
        ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
        name = next((entry.get("hostname") or entry.get("ip") for entry in ingress), None)
        where = (host or str(name)) if _is_balancer(str(name or "")) else ""
    if not where or not isinstance(port, int) or not 0 < port < 1 << 16:
        return None
    return f"[{where}]:{port}" if ":" in where else f"{where}:{port}"


def _is_balancer(name: str) -> bool:
    """Whether a name is a DNS name or a unicast address that is not link-local, where clouds have
    their metadata.
    """
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        # Some resolvers read a number such as 2852039166 as an address.
        return bool(_DNS_NAME.fullmatch(name)) and not name.rpartition(".")[2].isdigit()
    address = getattr(address, "ipv4_mapped", None) or address
    odd = address.is_link_local or address.is_multicast or address.is_unspecified
    return not odd and "%" not in name
