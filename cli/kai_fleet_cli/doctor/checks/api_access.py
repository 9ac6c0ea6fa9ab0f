"""What leads a host name to a vCluster's API: an IngressClass, a Gateway, and TLS through both."""

from typing import Final

from kai_fleet.settings.sections.access import Access
from kai_fleet.values import value_at
from kai_fleet.wording import listed
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot, TeamState

_DEFAULT: Final = "ingressclass.kubernetes.io/is-default-class"
# Controllers that end the TLS of every Ingress: with it ends the client's certificate, by which a
# kubeconfig is let in.
_ENDS_TLS: Final = (
    *("ingress.k8s.aws/alb", "traefik.io/ingress-controller", "azure/application-gateway"),
    *("k8s.io/ingress-gce", "ingress.cloud.google.com/gce"),
)


def check(snapshot: Snapshot) -> Findings:
    """Every team whose API is behind an Ingress or a Gateway, where the host tells of those."""
    for team in snapshot.teams.values():
        access, host = team.wanted.access, snapshot.host
        if access is None or team.wanted.granted:
            continue
        subject = f"{access.type} of vCluster {team.wanted.name}"
        if access.type == "Ingress" and "ingressclasses" in host.objects:
            yield from host.or_well(_ingress(host, team, access, subject), subject)
        if access.type == "Gateway" and "gateways" in host.objects:
            yield from host.or_well(_gateway(host, team, access, subject), subject)


def _ingress(host: ClusterState, team: TeamState, access: Access, subject: str) -> Findings:
    key, classes = f"{team.wanted.path}.vcluster.access", host.all("ingressclasses")
    names = [it.name for it in classes]
    there = listed(names, "and") or "none"
    if access.class_ is not None:
        own = host.named("ingressclasses", access.class_)
        if own is None:
            yield host.broken(
                subject,
                f"IngressClass {access.class_} is not there (there: {there}), so nothing leads"
                f" {access.host} to the API",
                f"write one that is there at {key}.class, or install its controller",
            )
            return
    else:
        own = next((it for it in classes if it.annotations.get(_DEFAULT) == "true"), None)
        if own is None:
            yield host.warning(
                subject,
                f"it names no class, and no IngressClass is the default one (there: {there})",
                f"write one of them at {key}.class",
            )
            return
    controller = str(own.spec.get("controller") or "")
    if controller in _ENDS_TLS:
        yield host.broken(
            subject,
            f"the controller of IngressClass {own.name}, {controller}, ends TLS itself, and nobody"
            " is let in without the client certificate that ends there",
            f"write type: LoadBalancer at {key}, or a class whose controller passes TLS through",
        )


def _gateway(host: ClusterState, team: TeamState, access: Access, subject: str) -> Findings:
    key = f"{team.wanted.path}.vcluster.access.gateway"
    space, _, name = (access.gateway or "").partition("/")
    gateway = host.named("gateways", name, space)
    if gateway is None:
        there = listed([f"{it.namespace}/{it.name}" for it in host.all("gateways")], "and")
        yield host.broken(
            subject,
            f"Gateway {access.gateway} is not there (there: {there or 'none'}), so nothing leads"
            f" {access.host} to the API",
            f"write one that is there at {key}",
        )
        return
    listeners = gateway.spec.get("listeners") or []
    if not any(value_at(it, "tls.mode") == "Passthrough" for it in listeners):
        yield host.broken(
            subject,
            f"Gateway {access.gateway} has no listener that passes TLS through",
            "have its owner add one of protocol TLS with tls.mode Passthrough that admits routes of"
            f" namespace {team.wanted.namespace}, or write another Gateway at {key}",
        )
