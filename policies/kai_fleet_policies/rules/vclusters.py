"""Rules about vClusters: their versions, their access, and the values of their chart."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kai_fleet.finding import Level
from kai_fleet.fleet.cluster import Cluster, Team
from kai_fleet.guards.policies import OLDEST_KUBERNETES, POLICY
from kai_fleet.kube.text import may_name_system
from kai_fleet.releases import (
    DEFAULT_VCLUSTER,
    KUBERNETES,
    VCLUSTER,
    advice,
    instead,
    taken_for,
    vcluster_support,
    version_key,
)
from kai_fleet.releases.allowed_values import READ, refusals
from kai_fleet.releases.transitions import vcluster_refusal
from kai_fleet.values import UNKNOWN, get, items, pairs, value_at
from kai_fleet.wording import listed
from kai_fleet_policies.rules.rule import (
    Findings,
    Place,
    Severity,
    UnknownValueError,
    known,
    of_vcluster,
    rule,
    vclusters,
)


@rule("vcluster-version-known", Level.MANDATORY, Severity.HIGH, each=vclusters)
def vcluster_version_known(cluster: Cluster, team: Team, place: Place) -> Findings:
    """Only vCluster versions of the release table.

    The keys of vCluster's chart differ by version, its virtual scheduler's among them.

    Remedy: Write one of the versions that the message names.
    """
    version = known(team.version, "its version is known")
    if not version or version in VCLUSTER:
        return  # one that names none gets the newest known
    place = of_vcluster(team, "version")
    if team.untested and (newest := taken_for(VCLUSTER, version)):
        yield place.warn(
            f"is {version}, which nobody tried with this program; it is taken for {newest}"
        )
    else:
        yield place.refuse(
            f"has version {version}, which is not supported here",
            f"write {instead(VCLUSTER, version)} (all: {', '.join(VCLUSTER)})",
        )


@rule("vcluster-version-supported", Level.ADVISORY, Severity.MEDIUM, each=vclusters)
def vcluster_version_supported(cluster: Cluster, team: Team, place: Place) -> Findings:
    """vCluster lines that still get fixes.

    A line past its end of life gets no more fixes, security fixes included.

    Remedy: Go up one line at a time, to one that gets fixes.
    """
    version = str(team.version or DEFAULT_VCLUSTER)
    if version in VCLUSTER and not (support := vcluster_support(version)).maintained:
        yield of_vcluster(team, "version").warn(
            f"is {version}: {support.words}", advice(VCLUSTER, version)
        )


@rule("vcluster-upgrade", Level.MANDATORY, Severity.CRITICAL, each=vclusters)
def vcluster_upgrade(cluster: Cluster, team: Team, place: Place) -> Findings:
    """vCluster goes up one minor version at a time, and never down.

    Larger steps are untested, and a downgrade does not undo what the newer version wrote to its
    volume: the team's whole Kubernetes may not start again.

    Remedy: Take the steps that the message names, one update each.
    """
    before = team.runs.version if team.runs is not None else None
    if before is not None and isinstance(team.version, str):
        cause, _, fix = (vcluster_refusal(before, team.version) or "").partition("; ")
        if cause:
            yield of_vcluster(team, "version").refuse(cause, fix)


@rule("vcluster-kubernetes", Level.MANDATORY, Severity.HIGH, each=vclusters)
def vcluster_kubernetes(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A Kubernetes inside a vCluster that knows the policies of the guard there.

    The guard inside a vCluster is made of ValidatingAdmissionPolicies. An API server without
    them refuses the update after the vCluster is made, and any pod may name any queue.

    Remedy: Write Kubernetes 1.30 or newer, or leave it to vCluster's version.
    """
    values = {"kubernetesVersion": team.kubernetes_version}
    # Where chart values say it, they go before the key.
    for key in ("controlPlane.distro.k8s.version", "controlPlane.distro.k8s.image.tag"):
        if isinstance(value_at(team.values, key), str):
            values = {f"values.{key}": value_at(team.values, key)}
    for key, version in values.items():
        number = re.match(r"v?([0-9]+\.[0-9]+)", version or "")
        if team.guard and number and version_key(number[1]) < version_key(OLDEST_KUBERNETES):
            own = VCLUSTER.get(team.version or "", VCLUSTER[DEFAULT_VCLUSTER]).kubernetes
            yield of_vcluster(team, key).refuse(
                f"is {version}, and the guard inside needs Kubernetes {OLDEST_KUBERNETES} or newer,"
                f" for {POLICY}: write {own}, which this vCluster has of itself, or"
                " kai-fleet:guard: {mode: off} to do without the guard"
            )


@rule("vcluster-kubernetes-known", Level.ADVISORY, Severity.LOW, each=vclusters)
def vcluster_kubernetes_known(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A Kubernetes inside a vCluster that vCluster's version and KAI list.

    A Kubernetes that is newer than vCluster's version was not tried with it, nor with KAI.

    Remedy: Write the Kubernetes that the message names, or a newer vCluster.
    """
    own, version = team.kubernetes_version, str(team.version or DEFAULT_VCLUSTER)
    newest = VCLUSTER[version].kubernetes if version in VCLUSTER else None
    if isinstance(own, str) and newest and version_key(own)[:2] > version_key(newest)[:2]:
        yield of_vcluster(team, "kubernetesVersion").warn(
            f"is {own}, and vCluster {version} lists Kubernetes up to"
            f" {newest.rpartition('.')[0]} (KAI up to {KUBERNETES})",
            f"write {newest}",
        )


_INGRESS: Final = "controlPlane.ingress"
_ROUTE: Final = "controlPlane.tlsRoute"
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


@rule("vcluster-access", Level.MANDATORY, Severity.CRITICAL)
def vcluster_access(cluster: Cluster) -> Findings:
    """Each vCluster's API has a host name to itself, and its annotations take nothing of others.

    Ingresses and Gateways lead a name to whoever claims it, so one team would answer the
    clients of another; some annotations have a controller run what they say, for everybody. And
    who does not pass TLS through lets nobody in: the client's certificate ends there.

    Remedy: Give each API a name of its own, and drop the annotation.
    """
    taken: dict[str, str] = {}
    for team in cluster.teams:
        hosts = list(_hosts(team))
        for host, key in hosts:
            yield from _wrong_host(team, host, of_vcluster(team, key), taken.get(host.lower()))
        taken |= {host.lower(): team.name for host, _ in hosts}
        access = team.access
        if access is not None and access.type == "Gateway":
            yield from _makes_no_route(team)
        for annotation, value in access.annotations.items() if access is not None else ():
            if why := _why_refused(team, annotation, value):
                yield of_vcluster(team, "access.annotations").refuse(
                    f"has {annotation}, which {why[0]}", why[1]
                )


def _wrong_host(team: Team, host: str, place: Place, other: str | None) -> Findings:
    """What is wrong with a name of this API; `other` is the team that has it already."""
    if host == "" or host.startswith("*"):
        yield place.refuse(
            f"takes {host or 'every name'} of its controller", "write the API's one name"
        )
    elif other is not None:
        domain = host.partition(".")[2]
        yield place.refuse(
            f"is {host}, where team {other} is reached already: clients of the one would come"
            " to the other",
            f"write another name, such as {team.name}.{domain if '.' in domain else host}",
        )


def _hosts(team: Team) -> Iterator[tuple[str, str]]:
    """The names that are led to this API, each with the key that says so."""
    access, values = team.access, team.values
    if access is not None and access.type != "NodePort" and access.host is not None:
        yield access.host, "access.host"
    rules = [get(each, "host") for each in items(value_at(values, f"{_INGRESS}.spec.rules"))]
    names = [*items(value_at(values, f"{_ROUTE}.spec.hostnames"))]
    for part, hosts in ((_INGRESS, rules), (_ROUTE, names)):
        if str(value_at(values, f"{part}.enabled")).lower() == "true":
            if value_at(values, f"{part}.spec.defaultBackend") is not None:
                hosts.append("")  # what no rule leads elsewhere
            for host in hosts or [value_at(values, f"{part}.host")]:
                if host is not UNKNOWN:
                    yield str(host or ""), f"values.{part}"


def _makes_no_route(team: Team) -> Findings:
    release = VCLUSTER.get(team.version or "")
    if release is not None and not release.tls_route:
        having = [version for version, each in VCLUSTER.items() if each.tls_route]
        yield of_vcluster(team, "access.type").refuse(
            f"is Gateway, and the chart of {team.version} makes no TLSRoute ({listed(having)} do)",
            "write type: Ingress or LoadBalancer, or one of those versions",
        )


def _why_refused(team: Team, annotation: str, value: object) -> tuple[str, str] | None:
    if annotation == _PASSTHROUGH and str(value).lower() != "true":
        return "ends TLS before the API, and nobody is let in", "drop it"
    if not team.isolated:
        return None
    if _RUN.search(annotation):
        return (
            "has the controller of everybody run configuration of this team",
            "drop it, or write isolation: {level: off} for the team if that is meant",
        )
    if annotation.startswith(_NGINX) and annotation.removeprefix(_NGINX) not in _READ:
        return "nginx does not read where it passes TLS through, as it has to", "drop it"
    own = (team.access.host or "").lower() if team.access is not None else ""
    names = [name.strip().rstrip(".") for name in str(value).split(",")]
    others = [name for name in names if name.lower() != own]
    if _DNS.match(annotation) and others:
        return (
            f"asks for the name {others[0]}, and the API is not known by it",
            "write it as access.host too, or drop it",
        )
    return None


_EVERY: Final[Mapping[str, Any]] = READ["every"]
_FLAGS: Final = re.compile("|".join(_EVERY["flags"]))
_VARIABLES: Final = re.compile(_EVERY["names"])
_FREE_TIER: Final = ", free up to 64 CPUs and 32 GPUs where vCluster Platform is connected"


@rule("vcluster-values", Level.MANDATORY, Severity.CRITICAL, each=vclusters)
def vcluster_values(cluster: Cluster, team: Team, place: Place) -> Findings:
    """Of an isolated team only values of the allow-list, of others none that open or break it.

    Whoever writes the values of a vCluster would decide what it may do on the host, to all
    teams. One flag of its API server opens a team's Kubernetes to everybody who reaches it. Keys
    of paid tiers make the control plane crash without a licence; the vendor guide's podgroups sync
    does so in any case.

    Remedy: Write the key of the stack file that the message names, drop the value, or write
    isolation: {level: off} for that team if it is meant.
    """
    values = known(team.values, "its values are known")
    refused = list(refusals("vcluster", values)) if team.isolated else []
    for key, cause, fix in refused:
        at_key = of_vcluster(team, "values", key)
        yield at_key.refuse(cause, fix) if cause else at_key.undecided(f"{key} is known")
    for key, cause, fix in (*_programs(values, ""), *_broken(team, values)):
        if not any(f"{key}.".startswith(f"{above}.") for above, *_ in refused):
            yield of_vcluster(team, "values", key).refuse(cause, fix)


def _programs(value: object, above: str) -> Iterator[tuple[str, str, str]]:
    """What runs as the control plane: commands, variables and flags."""
    for name, below in pairs(value).items():
        key = f"{above}.{name}" if above else str(name)
        if name in _EVERY["programs"] and below:
            cause = f"has {key}, which runs something else than the control plane"
            yield key, cause, "drop it"
        elif name in _EVERY["variables"]:
            below = known(below, f"{key} is known")
            variables = (*pairs(below), *(get(entry, "name") for entry in items(below)))
            if not all(_VARIABLES.fullmatch(str(variable)) for variable in variables):
                cause = (
                    f"sets variables of the control plane in {key}, which may change what it does"
                )
                yield key, cause, "drop it; those of a proxy and of Go's memory may be set"
        elif name == "extraArgs":
            for cause in _flags(below, key):
                yield key, cause, "drop it"
        else:
            yield from _programs(below, key)


def _flags(arguments: object, key: str) -> Iterator[str]:
    """What is wrong with a list of flags, without their values, which may be secrets.

    One or two dashes, `=` or a space or the next item, underscores for dashes, several in one item.
    """
    every = arguments if isinstance(arguments, list | tuple) else [arguments]
    if UNKNOWN in every:
        raise UnknownValueError(f"{key} is known")
    tokens = " ".join(map(str, filter(None, every))).split()
    flags: dict[str, str] = {}
    name = ""
    for token in (token.strip("\"'") for token in tokens):
        if token.startswith("-"):
            name, _, value = token.lstrip("-").partition("=")
            name = name.replace("_", "-").lower()
            flags[name] = value
        else:
            flags[name] = token
        name = name if token.startswith("-") and "=" not in token else ""
    for name, value in flags.items():
        if not name or not _FLAGS.fullmatch(name):
            plain = re.fullmatch(r"[a-z0-9.-]{1,80}", name)
            flag = f"--{name}" if plain else "something that is no flag"
            yield f"gives {flag} in {key}, which is none of those that are known to open nothing"
        elif name in ("oidc-username-prefix", "oidc-groups-prefix") and may_name_system(value):
            yield f"gives --{name}, which lets an identity provider name Kubernetes' own accounts"
    # Groups of a provider could be system:masters: it is their prefix that bars it.
    if "oidc-groups-claim" in flags and not flags.get("oidc-groups-prefix"):
        yield (
            "gives --oidc-groups-claim without --oidc-groups-prefix: its provider could put anybody"
            " into system:masters; add --oidc-groups-prefix=oidc: or"
        )


def _broken(team: Team, values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What keeps a vCluster from starting, or pods from being placed."""
    synced = "sync.fromHost.customResources"
    if "podgroups" in str(value_at(values, synced)):
        cause = "syncs podgroups from the host: the vCluster then does not start"
        yield synced, cause, "drop it: KAI needs no such sync"
        return
    for key in () if team.licensed else (*_EVERY["paid"], *_EVERY["free"]):
        value = value_at(values, key)
        on = value.get("enabled", True) if isinstance(value, Mapping) and value else value
        if on not in (None, False) and value != {}:
            free = _FREE_TIER if key in _EVERY["free"] else ""
            cause = f"has {key}, which needs a vCluster licence{free}"
            yield key, cause, "drop it, or write licensed: true beside values if you have one"
    image = "controlPlane.statefulSet.image.repository"
    if not team.licensed and "vcluster-pro" in str(value_at(values, image)):
        yield image, "takes the Pro image, which needs a licence", "drop it"
    for mode, key, wrong, cause in _TRAPS:
        if team.mode == mode and value_at(values, key) is wrong:
            yield key, cause, "drop it"


_TRAPS: Final[Sequence[tuple[str, str, bool, str]]] = (
    (
        *("virtual", "controlPlane.distro.k8s.scheduler.enabled", False),
        "switches the virtual scheduler off, and with it mode virtual: pods would stay Pending on"
        " both sides",
    ),
    (
        *("virtual", "sync.fromHost.nodes.enabled", False),
        "switches node sync off, without which a virtual scheduler does not start",
    ),
    (
        *("host", "experimental.syncSettings.setOwner", True),
        "sets owners on synced pods, which KAI's pod-grouper may not follow",
    ),
)
