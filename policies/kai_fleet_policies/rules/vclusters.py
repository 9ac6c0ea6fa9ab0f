"""The rule about how a vCluster's API is reached."""

import re
from typing import Final

from kai_fleet.fleet.cluster import Cluster, Team
from kai_fleet.releases import VCLUSTER
from kai_fleet.wording import listed
from kai_fleet_policies.rules.places import of_vcluster
from kai_fleet_policies.rules.rule import Findings, mandatory

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
        if (access := team.access) is None:
            continue
        host, release = (access.host or "").lower(), VCLUSTER.get(team.version or "")
        if host in taken and access.type != "NodePort":
            domain = host.partition(".")[2]
            yield of_vcluster(team, "access.host").refuse(
                f"is {host}, where team {taken[host]} is reached already: clients of the one would"
                " come to the other",
                f"write another name, such as {team.name}.{domain if '.' in domain else host}",
            )
        elif host and access.type != "NodePort":
            taken[host] = team.name
        if access.type == "Gateway" and release and not release.tls_route:
            having = [version for version, each in VCLUSTER.items() if each.tls_route]
            yield of_vcluster(team, "access.type").refuse(
                f"is Gateway, and the chart of {team.version} makes no TLSRoute ({listed(having)}"
                " do)",
                "write type: Ingress or LoadBalancer, or one of those versions",
            )
        for annotation, value in access.annotations.items():
            if why := _why_refused(team, annotation, str(value), host):
                yield of_vcluster(team, "access.annotations").refuse(
                    f"has {annotation}, which {why[0]}", why[1]
                )


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
