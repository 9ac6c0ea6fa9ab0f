"""How a vCluster's API is reached: by a Service, or by an Ingress or a Gateway in front of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints

from kai_fleet.settings.sections.isolation import Cidr
from kai_fleet.settings.sections.kubernetes import LabelKey
from kai_fleet.settings.sections.model import Strict
from kubectl_fleet.wording import listed

_LABEL: Final = r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_GATEWAY: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?/[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_ALONE: Final = ("Ingress", "Gateway")  # by its name alone they know whose API is meant
_HTTPS: Final = 443


def _host(value: str) -> str:
    text = value.removeprefix("[").removesuffix("]")
    if is_address(text) or (_NAME.fullmatch(value) and not value.rpartition(".")[2].isdigit()):
        return text
    raise ValueError(
        f"is {value[:80]!r}, which is neither a host name nor an address; write one such as"
        " ml.vc.example.com, 10.0.0.5 or 2001:db8::5, and a port at port"
    )


def is_address(host: str) -> bool:
    """Whether this is an IPv4 or IPv6 address, and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return "%" not in host  # the zone of one machine


def _gateway(value: str) -> str:
    if _GATEWAY.fullmatch(value):
        return value
    raise ValueError(f"is {value[:80]!r}; write NAMESPACE/NAME, such as gateways/tls")


Host = Annotated[str, AfterValidator(_host)]
GatewayName = Annotated[str, AfterValidator(_gateway)]
IngressClassName = Annotated[
    str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)
]


class Access(Strict):
    """How the vCluster's API is reached from where Pulumi runs."""

    type: Literal["LoadBalancer", "NodePort", "ClusterIP", "Ingress", "Gateway"] = Field(
        default="LoadBalancer",
        description="ClusterIP: only from inside the host cluster. Ingress, Gateway: TLS is passed"
        " through to the API by its host name.",
    )
    host: Host | None = Field(
        default=None,
        description="Name or address to use. NodePort: of a node. Ingress, Gateway: the name by"
        " which they lead to the API.",
    )
    port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="NodePort: a fixed one. Ingress, Gateway: of the controller; 443 unless set.",
    )
    class_: IngressClassName | None = Field(
        default=None, alias="class", description="Ingress: its class; the default one unless set."
    )
    gateway: GatewayName | None = Field(
        default=None,
        description="Gateway: NAMESPACE/NAME of one that has a listener with tls.mode Passthrough.",
    )
    annotations: dict[LabelKey, str] = Field(
        default_factory=dict,
        description="Of the API's Service, or of its Ingress or TLSRoute: those of an internal load"
        " balancer.",
    )
    load_balancer_class: LabelKey | None = Field(
        default=None, description="LoadBalancer: which controller makes it."
    )
    load_balancer_source_ranges: list[Cidr] = Field(
        default_factory=list, description="LoadBalancer: who reaches it; everybody unless set."
    )

    @property
    def led_by_name(self) -> bool:
        """Whether something in front of the Service leads a host name to it."""
        return self.type in _ALONE

    @property
    def endpoint(self) -> str:
        """The host to use; where a name alone leads there, with its port. "" where none is said."""
        if self.host is None or not self.led_by_name:
            return self.host or ""
        return f"{self.host}:{self.port or _HTTPS}"

    def over(self, own: Self | None) -> Self:
        """This one, of a stack, with what a team says for itself; with another type the team's."""
        if own is not None and own.written.get("type", self.type) != self.type:
            return own
        return super().over(own)


# What each key is for, and what to write where the type is another.
_FOR: Final = {
    "host": ("LoadBalancer", "NodePort", *_ALONE),
    "port": ("NodePort", *_ALONE),
    "class_": ("Ingress",),
    "gateway": ("Gateway",),
    "load_balancer_class": ("LoadBalancer",),
    "load_balancer_source_ranges": ("LoadBalancer",),
}


def access_mistakes(access: Access) -> Iterator[tuple[str, str]]:
    """What is missing, or has no use with this type: (key, sentence)."""
    for name, types in _FOR.items():
        if access.written.get(name) and access.type not in types:
            key = Access.key_of(name)
            ways = listed([f"type: {it}" for it in types])
            yield key, f"has no use with type {access.type}; write {ways}, or drop {key}"
    if access.type == "NodePort" and access.host is None:
        yield "host", "is missing: a NodePort is reached at a node; write its name or address"
    if not access.led_by_name:
        return
    if access.host is None:
        yield "host", "is missing: it is what the API is known by; write ml.vc.example.com"
    elif is_address(access.host) or "." not in access.host:
        yield (
            "host",
            f"is {access.host}: an {access.type} tells APIs from each other by names, as TLS has"
            " no addresses there; write a name of your DNS, such as ml.vc.example.com",
        )
    if access.type == "Gateway" and access.gateway is None:
        yield "gateway", "is missing: it has the listener; write NAMESPACE/NAME of the Gateway"
