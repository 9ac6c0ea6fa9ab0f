"""Each vCluster's API has a host name to itself, and its annotations take nothing of others."""

import re
from collections.abc import Iterator
from typing import Final

from kai_fleet import releases
from kai_fleet.fleet.installed import access_values
from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.releases.chart_values import unknown_keys
from kai_fleet.values import UNKNOWN, get, items, pairs, value_at
from kai_fleet.wording import listed
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.vclusters import Values, of_vcluster

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "Ingresses and Gateways lead a name to whoever claims it, so one team would answer another's"
    " clients; some annotations have a controller run what they say, for everybody. And who"
    " does not pass TLS through lets nobody in: the client's certificate ends there."
)
REMEDY = "Give each API a name of its own, and drop the annotation."

_INGRESS: Final = "controlPlane.ingress"
_ROUTE: Final = "controlPlane.tlsRoute"
_ETCD: Final = "controlPlane.backingStore.etcd.deploy"
_ANNOTATED: Final = (
    *("controlPlane.service", _INGRESS, _ROUTE, "controlPlane.advanced.headlessService"),
    *(f"{_ETCD}.service", f"{_ETCD}.headlessService", "controlPlane.coredns.service"),
)
_NGINX: Final = "nginx.ingress.kubernetes.io/"
_PASSTHROUGH: Final = f"{_NGINX}ssl-passthrough"
# All that nginx reads where it passes TLS through, and what the chart writes.
_READ: Final = ("ssl-passthrough", "backend-protocol", "ssl-redirect", "force-ssl-redirect")
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


def check(cluster: DeclaredCluster) -> Problems:
    """The host names of all vClusters on one host, and the annotations of each."""
    first: dict[str, str] = {}
    for team in cluster.teams:
        values = team.chart_values
        if values is UNKNOWN:
            continue  # vcluster-values says so
        for host, key in _hosts(team, values):
            other = first.setdefault(host.lower(), team.name)
            if host == "" or host.startswith("*"):
                yield of_vcluster(team, key).mandatory(
                    f"takes {host or 'every name'} of its controller; write the API's one name"
                )
            elif other != team.name:
                yield of_vcluster(team, key).mandatory(
                    f"is {host}, where team {other} is reached already: clients of the one would"
                    f" come to the other; write another name, such as {team.name}.{_domain(host)}"
                )
        yield from _versions(team)
        yield from _annotations(team, values)


def _hosts(team: DeclaredTeam, values: Values) -> Iterator[tuple[str, str]]:
    """The names that are led to this API, each with the key that says so."""
    access = team.access
    own = access.host if access is not None and access.type != "NodePort" else None
    if own is not None:
        yield own, "access.host"
    rules = items(value_at(values, f"{_INGRESS}.spec.rules"))
    for switch, hosts in (
        (_INGRESS, [get(rule, "host") for rule in rules]),
        (_ROUTE, [*items(value_at(values, f"{_ROUTE}.spec.hostnames"))]),
    ):
        if str(value_at(values, f"{switch}.enabled")).lower() != "true":
            continue
        if value_at(values, f"{switch}.spec.defaultBackend") is not None:
            hosts.append("")  # what no rule leads elsewhere
        for host in hosts or [value_at(values, f"{switch}.host")]:
            if host is not UNKNOWN and (own is None or host != own):
                yield str(host or ""), f"values.{switch}"


def _domain(host: str) -> str:
    """What a name of another team may be below."""
    above = host.partition(".")[2]
    return above if "." in above else host


def _versions(team: DeclaredTeam) -> Problems:
    """A TLSRoute where the chart makes one."""
    access, version = team.access, team.version or ""
    if access is None or version not in releases.VCLUSTER:
        return  # vcluster-version-known says so
    for unknown in unknown_keys("vcluster", version, access_values(access))[:1]:
        yield of_vcluster(team, "access.type").mandatory(
            f"is {access.type}, and the chart of {version} makes no TLSRoute"
            f" ({listed(unknown.versions)} do); write type: Ingress or LoadBalancer, or one of"
            " those versions"
        )


def _annotations(team: DeclaredTeam, values: Values) -> Problems:
    kept_apart = team.level not in (None, "off")
    for place in _ANNOTATED:
        annotations = pairs(value_at(values, f"{place}.annotations"))
        for annotation, value in ((str(key), value) for key, value in annotations.items()):
            why = _why_refused(team, annotation, value) if kept_apart else None
            if annotation == _PASSTHROUGH and str(value).lower() != "true":
                why = "ends TLS before the API, and nobody is let in; drop it"
            if why:
                own = team.access is not None and annotation in team.access.annotations
                key = "access.annotations" if own else f"values.{place}.annotations"
                yield of_vcluster(team, key).mandatory(f"has {annotation}, which {why}")


def _why_refused(team: DeclaredTeam, annotation: str, value: object) -> str | None:
    if _RUN.search(annotation):
        return (
            "has the controller of everybody run configuration of this team; drop it, or write"
            " isolation: {level: off} for the team if that is meant"
        )
    if annotation.startswith(_NGINX) and annotation.removeprefix(_NGINX) not in _READ:
        return "nginx does not read where it passes TLS through, as it has to; drop it"
    if _DNS.match(annotation) and value is not UNKNOWN:
        own = team.access.host if team.access is not None else None
        names = [it.strip().rstrip(".") for it in str(value).split(",")]
        others = [it for it in names if own is None or it.lower() != own.lower()]
        if others:
            return (
                f"asks for the name {others[0]}, and the API is not known by it; write it as"
                " access.host too, or drop it"
            )
    return None
