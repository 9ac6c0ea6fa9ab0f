"""The rule about how a vCluster's API is reached."""

import re
from collections.abc import Iterator
from typing import Final

from kai_fleet.fleet.cluster import Cluster, Team
from kai_fleet.releases import (
    VCLUSTER,
)
from kai_fleet.values import UNKNOWN, get, items, value_at
from kai_fleet.wording import listed
from kai_fleet_policies.rules.places import of_vcluster
from kai_fleet_policies.rules.rule import Findings, mandatory

_INGRESS: Final = "controlPlane.ingress"
_ROUTE: Final = "controlPlane.tlsRoute"
_NGINX: Final = "nginx.ingress.kubernetes.io/"
# All that nginx reads where it passes TLS through, and what the chart writes.
_READ: Final = re.compile(r"/(ssl-passthrough|backend-protocol|(force-)?ssl-redirect)$")
# Of ingress-nginx, HAProxy's two controllers, Kong, Skipper and Emissary.
_RUN: Final = re.compile(
    r"snippets?$|/(server-alias(-regex)?|host-aliases|redirect-from(-regex)?"
    r"|config-(backend|defaults|frontend|global|proxy|sections|tcp|tcp-service)"
    r"|skipper-(filter|predicate|routes))$|^getambassador\.io/"
)
# Of ExternalDNS, CoreDNS' gateway, kOps and Gardener.
_DNS: Final = re.compile(
    r"^external-dns\.[^/]+/(internal-)?hostname$|^coredns\.io/hostname$"
    r"|^dns\.alpha\.kubernetes\.io/(external|internal)$|^dns\.gardener\.cloud/dnsnames$"
)


@mandatory("vcluster-access", "critical")
def vcluster_access(cluster: Cluster) -> Findings:
    """Each vCluster's API has a host name to itself, and its annotations take nothing of others.

    Ingresses and Gateways lead a name to whoever claims it, so one team would answer the
    clients of another; some annotations have a controller run what they say, for everybody. And
    who does not pass TLS through lets nobody in: the client's certificate ends there.
    """
    taken: dict[str, str] = {}
    for team in cluster.teams:
        hosts = dict(_hosts(team))
        for host, key in hosts.items():
            place, other = of_vcluster(team, key), taken.get(host.lower())
            if host == "" or host.startswith("*"):
                yield place.refuse(
                    f"takes {host or 'every name'} of its controller", "write the API's one name"
                )
            elif other is not None:
                domain = host.partition(".")[2]
                yield place.refuse(
                    f"is {host}, where team {other} is reached already: clients of the one would"
                    " come to the other",
                    f"write another name, such as {team.name}.{domain if '.' in domain else host}",
                )
        taken |= {host.lower(): team.name for host in hosts}
        access, release = team.access, VCLUSTER.get(team.version or "")
        if access is not None and access.type == "Gateway" and release and not release.tls_route:
            having = [version for version, each in VCLUSTER.items() if each.tls_route]
            yield of_vcluster(team, "access.type").refuse(
                f"is Gateway, and the chart of {team.version} makes no TLSRoute ({listed(having)}"
                " do)",
                "write type: Ingress or LoadBalancer, or one of those versions",
            )
        own = (access.host or "").lower() if access is not None else ""
        for annotation, value in access.annotations.items() if access is not None else ():
            if why := _why_refused(team, annotation, str(value), own):
                yield of_vcluster(team, "access.annotations").refuse(
                    f"has {annotation}, which {why[0]}", why[1]
                )


def _hosts(team: Team) -> Iterator[tuple[str, str]]:
    """The names that are led to this API, each with the key that says so."""
    access, values = team.access, team.values
    if access is not None and access.type != "NodePort" and access.host is not None:
        yield access.host, "access.host"
    for part in () if team.isolated else (_INGRESS, _ROUTE):  # the allow-list has neither
        spec = value_at(values, f"{part}.spec")
        if str(value_at(values, f"{part}.enabled")).lower() == "true":
            hosts = [*items(get(spec, "hostnames"))]
            hosts += [get(each, "host") for each in items(get(spec, "rules"))]
            if get(spec, "defaultBackend") is not None:
                hosts.append("")  # what no rule leads elsewhere
            for host in hosts or [value_at(values, f"{part}.host")]:
                if host is not UNKNOWN:
                    yield str(host or ""), f"values.{part}"


def _why_refused(team: Team, annotation: str, value: str, own: str) -> tuple[str, str] | None:
    """Why an annotation is refused of an API whose name is `own`."""
    if annotation == f"{_NGINX}ssl-passthrough" and value.lower() != "true":
        return "ends TLS before the API, and nobody is let in", "drop it"
    if team.isolated and _RUN.search(annotation):
        return (
            "has the controller of everybody run configuration of this team",
            "drop it, or write isolation: {level: off} for the team if that is meant",
        )
    if team.isolated and annotation.startswith(_NGINX) and not _READ.search(annotation):
        return "nginx does not read where it passes TLS through, as it has to", "drop it"
    names = (name.strip().rstrip(".") for name in value.split(","))
    other = next((name for name in names if name.lower() != own), None)
    if team.isolated and _DNS.match(annotation) and other is not None:
        return (
            f"asks for the name {other}, and the API is not known by it",
            "write it as access.host too, or drop it",
        )
    return None
