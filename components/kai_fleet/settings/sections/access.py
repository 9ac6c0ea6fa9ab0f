"""How the host cluster, vClusters and registries are reached: addresses and credentials."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import Field, SecretStr, StringConstraints

from kai_fleet.releases import sources
from kai_fleet.settings.sections.kubernetes import Cidr, LabelKey, LabelValue, ObjectName, Port
from kai_fleet.settings.sections.models import Grants, Strict, Wrong, like, refuse_secret
from kai_fleet.settings.sections.platform import EXAMPLE_REGISTRY, Name, place_of

OF_STACK: Final = "kai-fleet-registries"  # the Secret that is made of kai-fleet:registries
OF_TEAM: Final = "kai-fleet-team-registries"  # and the one of a team's own

_NO_PASSWORD: Final = (
    "is a kubeconfig, a URL or another file; write the password or token of an account that pulls"
    " images, or Google's JSON key of a service account"
)
RegistryName = Annotated[
    str, StringConstraints(max_length=255), place_of(sources.registry_place, EXAMPLE_REGISTRY)
]


def _is_no_password(text: str) -> bool:
    """Whether it is a kubeconfig, a URL or another file. Google has a JSON file for a password."""
    if text.lstrip().startswith("{"):
        return str(json.loads(text).get("type")) != "service_account"
    return "://" in text or "\n" in text.strip()


class RegistryCredentials(Strict):
    """How images of one registry are pulled: by an account that only reads."""

    username: str = Field(min_length=1, pattern=r"^[^:]+$")
    """The account's name, without a colon."""
    password: Annotated[SecretStr, refuse_secret(_is_no_password, _NO_PASSWORD)] = Field(
        min_length=1, strict=False
    )
    """Its password or token; set it with `pulumi config set --secret --path`."""


Registries = dict[RegistryName, RegistryCredentials]


class Mirror(Strict):
    """One registry with all charts and images of KAI, of vCluster and of the GPU stack.

    The chart NAME is at oci://REGISTRY/charts/NAME. An image is below REGISTRY at the path that it
    has on its own host: ghcr.io/loft-sh/vcluster-oss at REGISTRY/loft-sh/vcluster-oss.
    """

    registry: Annotated[RegistryName, like(r"^[^/]*[.:].*[^/]$")]
    """A host, or a path in one, such as mirror.example.com/kai-fleet."""
    account: RegistryCredentials | None = None
    """Credentials to pull from it; none where everybody may, or registries has them."""


# An IPv6 address, or a name or an IPv4 address.
_IPV6: Final = "[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f.]*"
Host = Annotated[str, like(rf"^({_IPV6}|[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?)$")]
_DNS_NAME: Final = re.compile(r"[-.A-Za-z0-9]+\.[A-Za-z][-A-Za-z0-9]*")
_GATEWAY: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
_BY_NAME: Final = ("Ingress", "Gateway")  # by its name alone they know whose API is meant
_HTTPS: Final = 443
# What each key is for, and what to write where the type is another.
_TYPES_BY_KEY: Final = {
    "host": ("LoadBalancer", "NodePort", *_BY_NAME),
    "port": ("NodePort", *_BY_NAME),
    "class_name": ("Ingress",),
    "gateway": ("Gateway",),
    "load_balancer_class": ("LoadBalancer",),
    "load_balancer_source_ranges": ("LoadBalancer",),
}


class Access(Strict):
    """How the vCluster's API is reached from where Pulumi runs."""

    type: Literal["LoadBalancer", "NodePort", "ClusterIP", "Ingress", "Gateway"] = "LoadBalancer"
    """ClusterIP: only from inside the host. Ingress, Gateway: TLS passes through by name."""
    host: Host | None = None
    """Name or address to use: of a node for NodePort, of the API for Ingress and Gateway."""
    port: Annotated[Port | None, Grants.OTHER] = None
    """NodePort: a fixed one. Ingress, Gateway: of the controller; 443 unless set."""
    class_name: ObjectName | None = Field(default=None, alias="class")
    """Ingress: its class; the default one unless set."""
    gateway: Annotated[str, like(_GATEWAY)] | None = None
    """Gateway: NAMESPACE/NAME of one that has a listener with tls.mode Passthrough."""
    annotations: dict[LabelKey, str] = Field(default_factory=dict)
    """Of the API's Service, or of its Ingress or TLSRoute: those of an internal load balancer."""
    load_balancer_class: LabelKey | None = None
    """LoadBalancer: which controller makes it."""
    load_balancer_source_ranges: Annotated[list[Cidr], Grants.MOST_UNSET] = Field(
        default_factory=list
    )
    """LoadBalancer: who reaches it; everybody unless set."""

    @property
    def led_by_name(self) -> bool:
        """Whether something in front of the Service leads a host name to it."""
        return self.type in _BY_NAME

    @property
    def endpoint(self) -> str:
        """The host to use; where a name alone leads there, with its port. "" where none is said."""
        port = f":{self.port or _HTTPS}" if self.host and self.led_by_name else ""
        return f"{self.host or ''}{port}"

    def over(self, own: Self | None) -> Self:
        """This one, of a stack, with what a team says for itself; with another type the team's."""
        if own is not None and own.written.get("type", self.type) != self.type:
            return own
        return super().over(own)

    def mistakes(self) -> Wrong:
        """What is missing, or has no use with this type."""
        yield from self.useless("type", _TYPES_BY_KEY)
        if self.type == "NodePort" and self.host is None:
            yield "host", "is missing: a NodePort is reached at a node; write its name or address"
        elif self.led_by_name and not _DNS_NAME.fullmatch(self.host or ""):
            cause = f"is {self.host or 'missing'}: an {self.type} tells APIs apart by names, as TLS"
            yield "host", f"{cause} does; write a name of your DNS, such as ml.vc.example.com"
        if self.type == "Gateway" and self.gateway is None:
            yield "gateway", "is missing: it has the listener; write NAMESPACE/NAME of the Gateway"


HERE: Final = "127.0.0.1"
FIRST_NODE_PORT: Final = 30000


class Kind(Strict):
    """What the kind cluster is made of. A change of it needs the stack taken down first."""

    gpus: Literal["auto", "none", "all"] = "auto"
    """auto: this machine's GPUs, if it has some; all: must have."""
    image: Annotated[str, like(r"^\S+$", 512)] | None = None
    """Node image, such as kindest/node:v1.34.0; kind's own if unset."""
    workers: list[dict[LabelKey, LabelValue]] = Field(default_factory=list, max_length=20)
    """A worker node for each entry, with these labels; the first has the GPUs."""
    node_ports: int = Field(default=8, ge=1, le=64)
    """How many node ports from 30000 up answer on 127.0.0.1; a team needs one."""

    @property
    def ports(self) -> range:
        """The node ports that answer on this machine."""
        return range(FIRST_NODE_PORT, FIRST_NODE_PORT + self.node_ports)

    def access(self, of_team: Access) -> Access:
        """How a vCluster is reached: at a node port on this machine, unless said otherwise."""
        here = {"host": HERE} if of_team.written.get("type", "NodePort") == "NodePort" else {}
        return Access(**{"type": "NodePort", **here, **of_team.written})

    def unreachable(self, teams: Mapping[str, Access]) -> Wrong:
        """Teams whose vCluster answers at no port of this machine: (team, sentence)."""
        taken = {access.port for access in teams.values()}
        spare = [port for port in self.ports if port not in taken]
        for team, access in teams.items():
            if access.host in (HERE, "localhost") and access.port not in self.ports:
                answer = f"on {HERE} answer {self.ports[0]} to {self.ports[-1]}"
                fix = f"write port: {spare.pop(0)}" if spare else "set kind.nodePorts higher"
                yield team, f"is {access.port or 'missing'}, and {answer}; {fix}"


class Credentials(Strict):
    """A team stack's own way to the platform's cluster; the cluster itself is the platform's."""

    context: str | None = Field(default=None, min_length=1)
    """A context of your kubeconfig."""
    kubeconfig: SecretStr | None = Field(default=None, min_length=1, strict=False)
    """The kubeconfig itself, set with `pulumi config set --secret --path`."""


class Cluster(Credentials):
    """The host cluster. Its name is its identity: credentials may rotate under it."""

    name: Name
    """Stable identity of the cluster."""
    kind: Kind | None = None
    """A kind cluster on this machine, made and deleted with the stack."""

    def mistakes(self) -> Wrong:
        """What is missing of the way to a cluster, or there twice."""
        if sum(way is not None for way in (self.context, self.kubeconfig, self.kind)) != 1:
            cause = "is needed, or kubeconfig, or kind, and only one of them"
            fix = "write context: with a name from `kubectl config get-contexts`, or kind: {}"
            yield "context", f"{cause}; {fix} for a new one on this machine"
