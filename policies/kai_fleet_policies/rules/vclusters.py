"""Rules about vClusters: access to the API; store, volume and requests of the control plane."""

import re
from decimal import Decimal
from typing import Final

from kai_fleet import vcluster_stores as stores
from kai_fleet.quantities import parse_quantity
from kai_fleet.releases import DEFAULT_VCLUSTER, VCLUSTER
from kai_fleet.releases.chart_values import merged
from kai_fleet.values import UNKNOWN, mapping, number, pairs, value_at
from kai_fleet.wording import listed
from kai_fleet_policies.model.cluster import Cluster, Team
from kai_fleet_policies.rules.places import VCLUSTERS, Place, of_vcluster
from kai_fleet_policies.rules.rule import Findings, known, mandatory

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


# What a store or a volume takes that cannot be changed.
_ANOTHER: Final = (
    "needs another vCluster: add a team of another name beside it and move what it runs, or remove"
    " the team, which deletes all that is in it, and add it again"
)
_MIGRATE: Final = "controlPlane.backingStore.etcd.embedded.migrateFromDeployedEtcd"
_LICENCES: Final = {"embeddedEtcd": "the free tier has it", "external": "the tier Prod has it"}


@mandatory("vcluster-store", "critical", VCLUSTERS)
def vcluster_store(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A control plane's store fits its replicas and its licence, and stays what it is.

    vCluster moves no state from one store to another: the team's Kubernetes would start again
    empty, or not at all. Several control planes on one SQLite do not start.
    """
    values = team.chart_values
    if values is UNKNOWN:
        return  # vcluster-values says so
    for key in stores.SWITCHES.values():
        known(value_at(values, key), "its store is known")
    store, runs = stores.store_of(values), team.runs.store if team.runs is not None else None
    replicas = number(value_at(values, stores.REPLICAS))
    if isinstance(replicas, float) and replicas > 1:
        yield from _replicas(team, store, replicas)
    place = of_vcluster(team, "store", "type")
    if store.type in _LICENCES and not team.licensed:
        yield place.refuse(
            f"is {store.type}, which the open source image has in no version",
            "write etcd, or licensed: true beside store if you have a licence"
            f" ({_LICENCES[store.type]})",
        )
    if runs is None:
        return
    moves = (runs.type, store.type) == ("etcd", "embeddedEtcd")
    if runs.type != store.type and not (moves and value_at(values, _MIGRATE) is True):
        fix = f"write {runs.type}. Another store {_ANOTHER}"
        if moves:
            fix = f"write etcd, or have vCluster move it once, by {_MIGRATE}: true in values"
        yield place.refuse(
            f"changes from {runs.type} to {store.type}, and the state stays in the one before", fix
        )
    elif runs.type == store.type and runs.members != store.members:
        yield of_vcluster(team, "store", "replicas").refuse(
            f"changes from {runs.members} to {store.members}, and each etcd keeps the members of"
            " its first start: others would begin a second, empty store under the same name",
            f"write {runs.members}. Another store {_ANOTHER}",
        )


def _replicas(team: Team, store: stores.ChartStore, replicas: float) -> Findings:
    place, count = of_vcluster(team, "replicas"), f"is {replicas:g}"
    if store.type == stores.EMBEDDED:
        other = "write store: {type: etcd, replicas: 3}, or 1"
        yield place.refuse(
            f"{count}, and its store is SQLite, a file that one process has: none would start",
            other if team.runs is None else f"write 1. Another store {_ANOTHER}",
        )
    elif store.type == "embeddedEtcd" and replicas % 2 == 0:
        yield place.refuse(
            f"{count}, and etcd is in each of them, and needs more than half",
            f"write {replicas + 1:g}",
        )
    elif store.type == "etcd" and store.members == 1:
        yield place.warn(
            f"{count}, and all of them need its one etcd: without that one nothing answers",
            "write store: {type: etcd, replicas: 3}, which cannot be changed once it is made",
        )


# The names of resources in a pod, and in a stack file.
_NAMES: Final = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "ephemeralStorage"}


@mandatory("vcluster-resources", "high", VCLUSTERS)
def vcluster_resources(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A control plane's requests are within its limits, and within what its team may have.

    Kubernetes makes no pod that asks for more than its limit, or than its namespace's quota has
    left: the control plane would not start, and an update waits for it in vain.
    """
    values, version = team.chart_values, team.version or DEFAULT_VCLUSTER
    own = mapping(value_at(values, stores.RESOURCES))
    if UNKNOWN in (values, version, own):
        return  # other rules say so
    resources = merged(stores.default_resources(version), own)
    requests, limits = (pairs(resources.get(kind)) for kind in ("requests", "limits"))
    replicas = int(known(number(value_at(values, stores.REPLICAS)), "its replicas are known") or 1)
    store = stores.store_of(values)
    of_etcd = pairs(value_at(values, f"{stores.ETCD}.statefulSet.resources.requests"))
    of_etcd = {**stores.ETCD_REQUESTS, **of_etcd} if store.type == "etcd" else {}
    for name, key in _NAMES.items():
        request, most = _amount(requests.get(name)), _amount(limits.get(name))
        if request is None:
            continue
        at_key = of_vcluster(team, "resources", "requests", key)
        if most is not None and request > most:
            yield at_key.refuse(
                f"is {requests[name]}, above its limit of {limits[name]}",
                f"write limits: {{{key}: {requests[name]}}} or more beside requests",
            )
        whole = request * replicas + (_amount(of_etcd.get(name)) or 0) * store.members
        bound = _amount(team.bounds.get(name))
        if bound is not None and whole > bound:  # the team's quota counts all its pods
            yield at_key.refuse(
                f"makes {_shown(name, whole)} of {key} for all pods of the control plane, and the"
                f" team may have {_shown(name, bound)} with all that it runs: Kubernetes would"
                " make none",
                f"ask for less, or raise isolation.bounds.{key}",
            )


def _amount(quantity: object) -> Decimal | None:
    """The number of a quantity; None for what is none: the chart says what is wrong with it."""
    try:
        return parse_quantity(quantity)
    except ValueError:
        return None


def _shown(name: str, quantity: Decimal) -> str:
    return f"{quantity.normalize():f}" if name == "cpu" else f"{quantity / 2**20:.0f}Mi"


# What the chart has of itself.
_DEFAULTS: Final = {"size": "5Gi", "storageClass": ""}


@mandatory("vcluster-volume", "high", VCLUSTERS)
def vcluster_volume(cluster: Cluster, team: Team, place: Place) -> Findings:
    """The volume of a vCluster that runs keeps its storage class and size.

    Kubernetes changes no volume template of a StatefulSet: the update would fail each time,
    with all else that it was to do.
    """
    runs = team.runs.store if team.runs is not None else None
    if runs is None or runs.type != team.store.type:
        return  # vcluster-store says so
    for key, default in _DEFAULTS.items():
        before = runs.claim.get(key) or default
        after = team.store.claim.get(key) or default
        sizes = [_amount(value) if key == "size" else None for value in (before, after)]
        if before == after or (sizes[0] is not None and sizes[0] == sizes[1]):
            continue
        in_values = key in pairs(value_at(team.values, stores.CLAIM))
        was, is_now = (value or "the cluster's default class" for value in (before, after))
        fix = "write " + (before or '""')
        if (sizes[1] or 0) > (sizes[0] or 0):
            etcds = (f"data-{team.name}-etcd-{n}" for n in range(team.store.members))
            claims = " ".join(etcds) if team.store.type == "etcd" else f"data-{team.name}-0"
            grow = f'{{"spec":{{"resources":{{"requests":{{"storage":"{after}"}}}}}}}}'
            fix += (
                ", and have the volume itself grow where its class can: `kubectl -n"
                f" {team.namespace} patch pvc {claims} -p '{grow}'`"
            )
        else:
            fix += f". Another volume {_ANOTHER}"
        yield of_vcluster(team, *(("values", stores.CLAIM) if in_values else ()), key).refuse(
            f"changes from {was} to {is_now}, and the volume is made already", fix
        )
