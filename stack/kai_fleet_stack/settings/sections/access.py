"""Addresses and credentials of the host cluster, of vClusters and of registries."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, StringConstraints

from kai_fleet.releases import sources
from kai_fleet_stack.settings.sections.kubernetes import (
    Cidr,
    LabelKey,
    LabelValue,
    ObjectName,
    Port,
)
from kai_fleet_stack.settings.sections.models import (
    LIST_CONTEXTS,
    NO_ENTRIES,
    NO_KEYS,
    Grants,
    Mistakes,
    Strict,
    like,
    refuse_secret,
)
from kai_fleet_stack.settings.sections.platform import EXAMPLE_REGISTRY, Name, is_location

_NO_PASSWORD = (
    "is a kubeconfig, a URL or another file; write the password or token of an account that pulls"
    " images, or Google's JSON key of a service account"
)
RegistryName = Annotated[
    str, StringConstraints(max_length=255), is_location(sources.registry_place, EXAMPLE_REGISTRY)
]


def _is_no_password(text: str) -> bool:
    """Whether the text is a kubeconfig, a URL or a file other than a Google service account's JSON.

    Any text with `://`, or of several lines, is taken for one of them. Raises ValueError for a text
    that only begins like a JSON object.
    """
    if text.lstrip().startswith("{"):
        return str(json.loads(text).get("type")) != "service_account"
    return "://" in text or "\n" in text.strip()


class RegistryAccount(Strict):
    """An account that pulls images from one registry. It needs only read access."""

    described_by = ("declaring.inputs.RegistryArgs",)

    username: str = Field(min_length=1, pattern=r"^[^:]+$")
    password: Annotated[SecretStr, refuse_secret(_is_no_password, _NO_PASSWORD)] = Field(
        min_length=1, strict=False
    )


Registries = dict[RegistryName, RegistryAccount]


class Mirror(Strict):
    """One registry with all charts and images of KAI, of vCluster and of the GPU stack.

    Chart NAME is at oci://REGISTRY/charts/NAME. An image keeps its path and only changes its host:
    ghcr.io/loft-sh/vcluster-oss is at REGISTRY/loft-sh/vcluster-oss.
    """

    registry: Annotated[RegistryName, like(r"^[^/]*[.:].*[^/]$")]
    """A host, or a path in one, such as mirror.example.com/kai-fleet."""
    account: RegistryAccount | None = None
    """Credentials to pull from it. Default: those in kai-fleet:registries, else none."""


_IPV6 = "[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f.]*"
# An IPv6 address, an IPv4 address or a DNS name.
Host = Annotated[str, like(rf"^({_IPV6}|[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?)$")]
_DNS_NAME = re.compile(r"[-.A-Za-z0-9]+\.[A-Za-z][-A-Za-z0-9]*")
_GATEWAY = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
# Types in which a proxy selects the vCluster by the host name of the TLS connection alone.
_BY_NAME = ("Ingress", "Gateway")
_HTTPS = 443
# The types that read each key.
_TYPES_BY_KEY = {
    "host": ("LoadBalancer", "NodePort", *_BY_NAME),
    "port": ("NodePort", *_BY_NAME),
    "class_name": ("Ingress",),
    "gateway": ("Gateway",),
    "load_balancer_class": ("LoadBalancer",),
    "load_balancer_source_ranges": ("LoadBalancer",),
}


class Access(Strict):
    """How the API of the vCluster is reached from the machine that runs Pulumi."""

    described_by = ("vcluster.arguments.AccessArgs",)

    type: Literal["LoadBalancer", "NodePort", "ClusterIP", "Ingress", "Gateway"] = "LoadBalancer"
    host: Host | None = None
    port: Annotated[Port | None, Grants.OTHER] = None
    class_name: ObjectName | None = Field(default=None, alias="class")
    gateway: Annotated[str, like(_GATEWAY)] | None = None
    annotations: dict[LabelKey, str] = NO_KEYS
    load_balancer_class: LabelKey | None = None
    load_balancer_source_ranges: Annotated[list[Cidr], Grants.MOST_UNSET] = NO_ENTRIES

    @property
    def routes_by_hostname(self) -> bool:
        """Whether a proxy in front of the Service selects it by host name."""
        return self.type in _BY_NAME

    @property
    def endpoint(self) -> str:
        """The host for the kubeconfig, behind a proxy with the port, by default 443.

        "" if no host is set. A NodePort's port is not in it.
        """
        if self.host is None:
            return ""
        if self.routes_by_hostname:
            return f"{self.host}:{self.port or _HTTPS}"
        return self.host

    def with_fields_of(self, team: Self | None) -> Self:
        """The stack's access with the keys of a team over it; a team's of another type alone.

        A stack without a type counts as LoadBalancer here, also on kind. Unchanged for None.
        """
        if team is not None and team.set_fields.get("type", self.type) != self.type:
            return team
        return super().with_fields_of(team)

    def mistakes(self) -> Mistakes:
        """Keys that the type requires and that are missing or wrong, or that it does not read.

        To be called after the stack's and kind's defaults are filled in.
        """
        yield from self.useless("type", _TYPES_BY_KEY)
        if self.type == "NodePort" and self.host is None:
            yield "host", "is missing: a NodePort is reached at a node; write its name or address"
        elif self.routes_by_hostname and not _DNS_NAME.fullmatch(self.host or ""):
            cause = f"is {self.host or 'missing'}: an {self.type} tells APIs apart by names, as TLS"
            yield "host", f"{cause} does; write a name of your DNS, such as ml.vc.example.com"
        if self.type == "Gateway" and self.gateway is None:
            yield "gateway", "is missing: it has the listener; write NAMESPACE/NAME of the Gateway"


HERE = "127.0.0.1"
FIRST_NODE_PORT = 30000


class Kind(Strict):
    """A kind cluster. Its keys can only be changed after the stack has been destroyed."""

    gpus: Literal["auto", "none", "all"] = "auto"
    """auto: use this machine's GPUs if it has any. all: refuse a machine without GPUs."""
    image: Annotated[str, like(r"^\S+$", 512)] | None = None
    """Node image, such as kindest/node:v1.34.0. Default: kind's."""
    workers: list[dict[LabelKey, LabelValue]] = Field(default_factory=list, max_length=20)
    """A worker node for each entry, with the entry's labels. The first one has the GPUs. Default:
    no workers, and the control plane has the GPUs.
    """
    node_ports: int = Field(default=8, ge=1, le=64)
    """Number of node ports from 30000 on that are open on 127.0.0.1. Each team needs one."""

    @property
    def ports(self) -> range:
        """The node ports that are open on this machine."""
        return range(FIRST_NODE_PORT, FIRST_NODE_PORT + self.node_ports)

    def access(self, of_team: Access) -> Access:
        """A team's access, after the stack's keys are in it, with NodePort as the default type.

        A NodePort has this machine as its host, unless a host is set. Its port stays unset: each
        team writes one of `ports`. What is filled in counts as set.
        """
        defaults = {"type": "NodePort"}
        if of_team.set_fields.get("type", "NodePort") == "NodePort":
            defaults["host"] = HERE
        return Access(**{**defaults, **of_team.set_fields})

    def unreachable(self, accesses: Mapping[str, Access]) -> Mistakes:
        """Teams whose vCluster has this machine as its host but no open port: (team, sentence).

        The host counts with any type of access. Each sentence offers another port that is free, as
        long as there is one. Two teams with the same port are no mistake here.

        Args:
            accesses: by team, after `access`.
        """
        taken = {access.port for access in accesses.values()}
        spare = [port for port in self.ports if port not in taken]
        for team, access in accesses.items():
            if access.host not in (HERE, "localhost") or access.port in self.ports:
                continue
            fix = f"write port: {spare.pop(0)}" if spare else "set kind.nodePorts higher"
            answer = f"on {HERE} answer {self.ports[0]} to {self.ports[-1]}"
            yield team, f"is {access.port or 'missing'}, and {answer}; {fix}"


class Credentials(Strict):
    """How a team's own stack reaches the cluster that its platform's stack declares."""

    context: str | None = Field(default=None, min_length=1)
    """Context of your kubeconfig."""
    kubeconfig: SecretStr | None = Field(default=None, min_length=1, strict=False)
    """Content of a kubeconfig."""


class Cluster(Credentials):
    """The host cluster, reached by one of context, kubeconfig and kind. The name identifies it, so
    that new credentials replace nothing.
    """

    name: Name
    """Stable identity of the cluster."""
    kind: Kind | None = None
    """A kind cluster on this machine, created and deleted with the stack."""

    def mistakes(self) -> Mistakes:
        """No way to reach the cluster, or more than one, at `context`.

        A team's own stack gets the same words, although its file has no `kind`.
        """
        ways = [self.context, self.kubeconfig, self.kind]
        if ways.count(None) != 2:
            cause = "is needed, or kubeconfig, or kind, and only one of them"
            fix = f"write context: with a name from {LIST_CONTEXTS}, or kind: {{}}"
            yield "context", f"{cause}; {fix} for a new one on this machine"
