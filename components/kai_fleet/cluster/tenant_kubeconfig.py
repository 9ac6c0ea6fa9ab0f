"""How to reach a vCluster: the address in its Service, the certificates in its Secret.

Anybody who can write in a team's namespace can change both. A kubeconfig may name programs to run,
files to read and proxies to ask. So the one in the Secret `vc-NAME` must have exactly the form that
all supported vClusters write (pkg/util/kubeconfig). Even then we do not use it: we parse its
certificate authority, its client certificate and its key, and build a new kubeconfig from them.
"""

import base64
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import yaml
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from kai_fleet.cluster.kube.objects import Fields
from kai_fleet.values import in_base64, value_at

_CONFIG = "config"
_MOST_BYTES = 128 << 10
# The kubeconfig that vCluster writes, and the one that `kubeconfig_text` builds. Newer vClusters
# leave out the empty preferences. A name is plain or quoted, in printable ASCII, and the same in
# all its places. A certificate takes 1 to 2 KiB. A key of 8192 bits takes 6.4 KiB; signing with a
# larger one would take minutes.
_NAME = r"""'([ -&(-~]|''){1,253}'|"[ !#-\[\]-~]{1,253}"|\w[\w./@'-]*([ :][\w./@'-]+)*"""
_FORM = re.compile(
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
_DNS_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*)?)*")


class TenantKubeconfigError(ValueError):
    """The content of a Secret is not from vCluster, so a tenant wrote it.

    The message is a predicate of `Secret vc-NAME`, and contains no value of the Secret.
    """


@dataclass(frozen=True, repr=False)
class Pieces:
    """A CA, a client certificate and its key, as PEM.

    `expires` is when the client certificate expires, in UTC.
    """

    authority: str
    certificate: str
    key: str
    expires: datetime

    def kubeconfig(self, server: str, context: str) -> str:
        """A kubeconfig with nothing but these, a server's URL and a context's name."""
        cluster = {"server": server, "certificate-authority-data": in_base64(self.authority)}
        user = {
            "client-certificate-data": in_base64(self.certificate),
            "client-key-data": in_base64(self.key),
        }
        return kubeconfig_text(context, cluster, user)


def kubeconfig_text(context: str, cluster: Mapping[str, str], user: Mapping[str, str]) -> str:
    """A kubeconfig with one cluster and one user, which are named like the context.

    The fields of both are taken as they are.
    """
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
    """Sentences about a vCluster's Secret, with the commands that repair it.

    They contain no value of the Secret. `workload` is what kubectl calls its control plane.
    """
    commands = " and ".join(repair_commands(name, namespace, workload=workload))
    return (
        f"Secret vc-{name} of namespace {namespace} {error}. {name_writer(name)}. Have vCluster"
        f" write it again: {commands}"
    )


def name_writer(name: str) -> str:
    """A sentence that says who can have written a forged Secret, and that we did not use it."""
    return (
        f"Somebody who can write in the namespace of team {name} wrote it; nothing of it was used"
    )


def repair_commands(
    name: str, namespace: str, kubectl: str = "kubectl", workload: str = "statefulset"
) -> tuple[str, ...]:
    """Commands that make vCluster write its Secret again: it does so when it starts.

    They have to run in this order. `kubectl` begins each: the program, with options if needed.
    """
    return (
        f"{kubectl} -n {namespace} delete secret vc-{name}",
        f"{kubectl} -n {namespace} rollout restart {workload} {name}",
    )


def kubeconfig_of_secret(data: Fields, server: str, context: str) -> str:
    """Build a kubeconfig from the `data` of a Secret `vc-NAME`.

    The server in the Secret is not used: vCluster writes `https://localhost:8443`.

    Args:
        data: The Secret's values, in base64.
        server: The URL of the vCluster's API server.
        context: The name of the new kubeconfig's context.

    Raises:
        TenantKubeconfigError: The Secret has no kubeconfig, or not one from vCluster.
    """
    return pieces(data).kubeconfig(server, context)


def pieces(data: Fields) -> Pieces:
    """The pieces of the kubeconfig in a Secret `vc-NAME`, from its `data`.

    Raises TenantKubeconfigError as `kubeconfig_of_secret` does.
    """
    if _CONFIG not in data:
        raise TenantKubeconfigError(f"has no key {_CONFIG}")
    encoded = str(data[_CONFIG])
    if len(encoded) > _MOST_BYTES:
        raise TenantKubeconfigError(f"holds more than {_MOST_BYTES >> 10} KiB at its key {_CONFIG}")
    try:
        text = base64.b64decode(encoded, validate=True).decode("ascii")
    except ValueError:
        raise TenantKubeconfigError(f"holds no plain text at its key {_CONFIG}") from None
    return _parsed(_match(text))


def rebuild(text: str) -> str:
    """Rebuild a stored kubeconfig from its pieces, its server and its context.

    It may come from the state of a team's stack, which the team can write. Raises
    TenantKubeconfigError if it has not the form that vCluster writes.
    """
    match = _match(text)
    # It may be quoted, and as plain text a number or a date of YAML: this loader knows texts only.
    context = yaml.load(match["context"], yaml.BaseLoader)
    return _parsed(match).kubeconfig(match["server"], context)


def stored_pieces(text: str) -> Pieces:
    """The pieces of a stored kubeconfig. Raises TenantKubeconfigError as `rebuild` does."""
    return _parsed(_match(text))


def _match(text: str) -> re.Match[str]:
    """The parts of a kubeconfig. Raises TenantKubeconfigError if vCluster does not write it so."""
    match = _FORM.fullmatch(text) if len(text) <= _MOST_BYTES else None
    if match is None:
        raise TenantKubeconfigError(f"has in its key {_CONFIG} what vCluster does not write there")
    return match


def _parsed(match: re.Match[str]) -> Pieces:
    """The pieces, written anew from parsed certificates and the parsed key.

    Raises TenantKubeconfigError if one cannot be parsed, or the key is not the certificate's.
    """
    try:
        authority = x509.load_pem_x509_certificates(_decoded(match["authority"]))
        chain = x509.load_pem_x509_certificates(_decoded(match["certificate"]))
        # Skips the check whether the key's numbers are primes: it takes 0.1 s, and a bad key harms
        # the tenant alone.
        key = load_pem_private_key(
            _decoded(match["key"]), None, unsafe_skip_rsa_key_validation=True
        )
        if key.public_key() != chain[0].public_key():
            raise ValueError
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        expires = chain[0].not_valid_after_utc  # raises ValueError in the year 0
        return Pieces(_pem(authority), _pem(chain), pem.decode(), expires)
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion):
        raise TenantKubeconfigError(
            f"has in its key {_CONFIG} no certificates, or a key that is not the certificate's"
        ) from None


def _decoded(text: str) -> bytes:
    """The bytes of a base64 text. Raises ValueError."""
    return base64.b64decode(text, validate=True)


def _pem(certificates: list[x509.Certificate]) -> str:
    return b"".join(one.public_bytes(Encoding.PEM) for one in certificates).decode()


def address_of(service: Fields, access: str, host: str | None) -> str | None:
    """`HOST:PORT` at which a vCluster is reached; None while its Service has no valid address.

    IPv6 addresses are in brackets. The port is that of the first of the Service's ports.

    Args:
        service: The vCluster's Service.
        access: Ingress, Gateway, NodePort or LoadBalancer; any other text means ClusterIP.
        host: With Ingress and Gateway the complete result; with NodePort the nodes' address; with
            LoadBalancer it replaces the balancer's address, which must exist all the same. With
            ClusterIP it is ignored.

    Raises one of MALFORMED for a malformed Service.
    """
    if access in ("Ingress", "Gateway"):
        return host
    ports = value_at(service, "spec.ports") or [{}]
    if access == "NodePort":
        address = host or ""
    elif access == "LoadBalancer":
        balancer = _balancer(service)
        address = (host or balancer) if _is_allowed_address(balancer) else ""
    else:
        address = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    port = ports[0].get("nodePort" if access == "NodePort" else "port")
    if not address or not isinstance(port, int) or not 0 < port < 1 << 16:
        return None
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _balancer(service: Fields) -> str:
    """The host name or address of a Service's first load balancer; "" while it has none.

    Raises one of MALFORMED.
    """
    balancers = value_at(service, "status.loadBalancer.ingress")
    if not balancers:
        return ""
    first = balancers[0]
    return str(first.get("hostname") or first.get("ip") or "")


def _is_allowed_address(name: str) -> bool:
    """Whether it is a DNS name, or a unicast address that is not link-local.

    Clouds have their metadata at link-local addresses. Private and loopback addresses are allowed.
    """
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        # Some resolvers read a number such as 2852039166 as an address.
        last_label = name.rpartition(".")[2]
        return bool(_DNS_NAME.fullmatch(name)) and not last_label.isdigit()
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return False
    return "%" not in name
