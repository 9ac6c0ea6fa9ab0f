"""Rules about vClusters: versions, chart values, access to the API, store and volume."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from kai_fleet import vcluster_values as stores
from kai_fleet.releases import (
    DEFAULT_VCLUSTER,
    VCLUSTER,
    kubernetes_refusal,
    vcluster_refusal,
)
from kai_fleet.releases.allowed_values import READ, refusals
from kai_fleet.values import UNKNOWN, get, items, number, pairs, parse_quantity, value_at
from kai_fleet.vcluster_values import KUBERNETES, kubernetes_of
from kai_fleet_policies.model.cluster import Cluster, Team
from kai_fleet_policies.rules.kai import in_table, of_advice
from kai_fleet_policies.rules.rule import (
    Findings,
    Place,
    advisory,
    each_vcluster,
    known,
    mandatory,
    row,
)


@mandatory("vcluster-version-known", "high", each_vcluster)
def vcluster_version_known(cluster: Cluster, team: Team, place: Place) -> Findings:
    """Only vCluster versions of the release table; of one that is not advised a warning.

    The keys of vCluster's chart differ by version, its virtual scheduler's among them. A line past
    its end of life gets no more fixes, security fixes included.
    """
    version = known(team.version, "its version is known") or DEFAULT_VCLUSTER
    place = place.at("version")
    yield from in_table(VCLUSTER, version, team.untested, place, "not supported here")
    yield from of_advice(VCLUSTER, version, place)


@mandatory("vcluster-upgrade", "critical", each_vcluster)
def vcluster_upgrade(cluster: Cluster, team: Team, place: Place) -> Findings:
    """vCluster goes up one minor version at a time, and never down.

    Larger steps are untested, and a downgrade does not undo what the newer version wrote to its
    volume: the team's whole Kubernetes may not start again.
    """
    before = team.running_version
    if before is not None and isinstance(team.version, str):
        cause, _, fix = (vcluster_refusal(before, team.version) or "").partition("; ")
        if cause:
            yield place.at("version").refuse(cause, fix)


@mandatory("vcluster-kubernetes", "critical", each_vcluster)
def vcluster_kubernetes(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A vCluster's Kubernetes is one that its version has, and goes up one minor version at a time.

    An older API server does not read what a newer one wrote, and one that vCluster does not know
    may not start: the team's whole Kubernetes restarts for ever.
    """
    if team.running_version and vcluster_refusal(team.running_version, str(team.version)):
        return  # vcluster-upgrade says so
    written = kubernetes_of(known(team.chart_values, "its values are known"))
    written = known(written, "its Kubernetes is known")
    release = VCLUSTER.get(str(team.version or DEFAULT_VCLUSTER))
    after = str(written or (release.kubernetes if release else ""))
    if not re.fullmatch(_TAG, after):
        return  # the tag of an image of one's own, or a version that vcluster-version-known refuses
    newest = None if release is None or team.untested else release.kubernetes
    runs = team.running_kubernetes or ""
    before = runs if re.fullmatch(_TAG, runs) else None
    if refusal := kubernetes_refusal(after, before, newest):
        in_values = [key for key in KUBERNETES if value_at(team.values, key)]
        keys = ("values", in_values[0]) if in_values else ("kubernetesVersion",)
        cause, _, fix = refusal.partition("; ")
        yield place.at(*keys).refuse(cause, fix)


_TAG: Final = r"v[0-9]+\.[0-9]+\.[0-9]+([-+].*)?"
_EVERY: Final[Mapping[str, Any]] = READ["every"]
_FLAGS: Final = re.compile("|".join(_EVERY["flags"]))
_VARIABLES: Final = re.compile(_EVERY["names"])


@mandatory("vcluster-values", "critical", each_vcluster)
def vcluster_values(cluster: Cluster, team: Team, place: Place) -> Findings:
    """Of an isolated team only values of the allow-list, of others none that open or break it.

    Whoever writes the values of a vCluster would decide what it may do on the host, to all
    teams. One flag of its API server opens a team's Kubernetes to everybody who reaches it. Keys
    of paid tiers make the control plane crash without a licence; the vendor guide's podgroups sync
    does so in any case.
    """
    values = known(team.values, "its values are known")
    refused = list(refusals("vcluster", values)) if team.isolated else []
    above = tuple(f"{key}." for key, *_ in refused)
    more = (*_programs(values, ""), *_broken(team, values))
    refused += [each for each in more if not f"{each[0]}.".startswith(above)]
    for key, cause, fix in refused:
        where = place.at("values", key)
        yield where.refuse(cause, fix) if cause else where.undecided(f"{key} is known")


def _programs(value: object, above: str) -> Iterator[tuple[str, str, str]]:
    """What runs as the control plane: commands, variables and flags."""
    for name, below in pairs(value).items():
        key = f"{above}.{name}".lstrip(".")
        if name in _EVERY["programs"] and below:
            yield key, *row("vcluster-program", key=key)
        elif name in _EVERY["variables"]:
            below = known(below, f"{key} is known")
            variables = (*pairs(below), *(get(entry, "name") for entry in items(below)))
            if not all(_VARIABLES.fullmatch(str(variable)) for variable in variables):
                yield key, *row("vcluster-variables", key=key)
        elif name == "extraArgs":
            yield from ((key, cause, "drop it") for cause in _flags(below, key))
        else:
            yield from _programs(below, key)


def _flags(arguments: object, key: str) -> Iterator[str]:
    """What is wrong with a list of flags, without their values, which may be secrets.

    One or two dashes, `=` or a space or the next item, underscores for dashes, several in one item.
    """
    every = arguments if isinstance(arguments, list | tuple) else [arguments]
    known(UNKNOWN if UNKNOWN in every else None, f"{key} is known")
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
        elif name in ("oidc-username-prefix", "oidc-groups-prefix") and (
            # `-` is no prefix; with `sy` a provider's `stem:masters` is Kubernetes' own.
            value in ("", "-") or "system:".startswith(value) or value.startswith("system")
        ):
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
        yield synced, *row("vcluster-podgroups")
        return
    for key in () if team.licensed else (*_EVERY["paid"], *_EVERY["free"]):
        value = value_at(values, key)
        on = value.get("enabled", True) if isinstance(value, Mapping) and value else value
        if on not in (None, False) and value != {}:
            yield key, *row("vcluster-paid", key=key)


_NGINX: Final = "nginx.ingress.kubernetes.io/"
_ANNOTATIONS: Final = re.compile("|".join(_EVERY["annotations"]["own"]))
_NAMES: Final = re.compile("|".join(_EVERY["annotations"]["names"]))


@mandatory("vcluster-access", "critical", each_vcluster)
def vcluster_access(cluster: Cluster, team: Team, place: Place) -> Findings:
    """Each vCluster's API has a host name to itself, and its annotations take nothing of others.

    Ingresses and Gateways lead a name to whoever claims it, so one team would answer the
    clients of another. By annotations controllers share load balancers, take addresses and run
    configuration: a team writes those of a list, the platform all others. And who does not pass
    TLS through lets nobody in: the client's certificate ends there.
    """
    access = team.access
    if access is None:
        return
    host = (access.host or "").lower()
    before = cluster.teams[: cluster.teams.index(team)]
    taken = {
        (each.access.host or "").lower(): each.name
        for each in before
        if each.access is not None and each.access.type != "NodePort"
    }
    if host and host in taken and access.type != "NodePort":
        domain = host.partition(".")[2]
        values = {"team": team.name, "domain": domain if "." in domain else host}
        yield place.at("access.host").refuse(
            *row("vcluster-host-taken", host=host, other=taken[host], **values)
        )
    for annotation, value in access.annotations.items():
        if why := _why_refused(team, annotation, str(value), host):
            yield place.at("access.annotations").refuse(
                *row("vcluster-annotation", key=annotation, why=why)
            )


def _why_refused(team: Team, annotation: str, value: str, own: str) -> str | None:
    """Why an annotation is refused of an API whose name is `own`."""
    if annotation == f"{_NGINX}ssl-passthrough" and value.lower() != "true":
        return "ends TLS before the API, and nobody is let in"
    if not team.isolated:
        return None
    names = [name.strip().rstrip(".").lower() for name in value.split(",")]
    if _NAMES.fullmatch(annotation):
        own_name = set(names) == {own}
        return None if own_name else "asks for a name that is not access.host, the API's own"
    if annotation in team.own_annotations and not _ANNOTATIONS.fullmatch(annotation):
        return "is none of those that take nothing of other teams"
    return None


# What a store or a volume takes that cannot be changed.
_ANOTHER: Final = (
    "needs another vCluster: add a team of another name beside it and move what it runs, or remove"
    " the team, which deletes all that is in it, and add it again"
)
# By which vCluster moves an etcd into itself, once.
_MIGRATE: Final = "controlPlane.backingStore.etcd.embedded.migrateFromDeployedEtcd"


@mandatory("vcluster-store", "critical", each_vcluster)
def vcluster_store(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A control plane's store fits its replicas and its licence, and stays what it is.

    vCluster moves no state from one store to another: the team's Kubernetes would start again
    empty, or not at all. Several control planes on one SQLite do not start.
    """
    values = known(team.chart_values, "its values are known")
    for key in stores.SWITCHES.values():
        known(value_at(values, key), "its store is known")
    store, runs = stores.store_of(values), team.running_store
    replicas = number(value_at(values, stores.REPLICAS))
    if store.type == stores.EMBEDDED and isinstance(replicas, float) and replicas > 1:
        which = "vcluster-sqlite" if runs is None else "vcluster-sqlite-runs"
        yield place.at("replicas").refuse(*row(which, replicas=replicas, another=_ANOTHER))
    of_type = place.at("store", "type")
    if store.type in ("embeddedEtcd", "external") and not team.licensed:
        yield of_type.refuse(*row("vcluster-store-paid", type=store.type))
    if runs is None:
        return
    moves = (runs.type, store.type) == ("etcd", "embeddedEtcd") and value_at(values, _MIGRATE)
    if runs.type != store.type and moves is not True:
        types = {"before": runs.type, "after": store.type, "another": _ANOTHER}
        yield of_type.refuse(*row("vcluster-store-changes", **types))
    elif runs.type == store.type and runs.members != store.members:
        counts = {"before": runs.members, "after": store.members, "another": _ANOTHER}
        yield place.at("store", "replicas").refuse(*row("vcluster-members-change", **counts))


# What the chart has of itself.
_DEFAULTS: Final = {"size": "5Gi", "storageClass": ""}


@mandatory("vcluster-volume", "high", each_vcluster)
def vcluster_volume(cluster: Cluster, team: Team, place: Place) -> Findings:
    """The volume of a vCluster that runs keeps its storage class and size.

    Kubernetes changes no volume template of a StatefulSet: the update would fail each time,
    with all else that it was to do.
    """
    runs = team.running_store
    if runs is None or runs.type != team.store.type:
        return  # vcluster-store says so
    of_etcd = team.store.type == "etcd"
    for key, default in _DEFAULTS.items():
        before, after = (store.claim.get(key) or default for store in (runs, team.store))
        was, now = (_size(value) if key == "size" else value for value in (before, after))
        if was == now:
            continue
        grows = isinstance(was, Decimal) and isinstance(now, Decimal) and now > was
        members = [f"-etcd-{n}" for n in range(team.store.members)] if of_etcd else ["-0"]
        no_class = "the cluster's default class"
        values = {
            "before": before or no_class,
            "after": after or no_class,
            "write": before or '""',
            "namespace": team.namespace,
            "claims": " ".join(f"data-{team.name}{member}" for member in members),
            "another": _ANOTHER,
        }
        in_values = key in pairs(value_at(team.values, stores.CLAIM))
        steps = ("values", stores.CLAIM, key) if in_values else (key,)
        which = "vcluster-volume-grows" if grows else "vcluster-volume-changes"
        yield place.at(*steps).refuse(*row(which, **values))


@mandatory("vcluster-storage-class", "medium", each_vcluster)
def vcluster_storage_class(cluster: Cluster, team: Team, place: Place) -> Findings:
    """The volume of an isolated team's vCluster is of a class that the platform lists.

    The host refuses claims of other classes, the control plane's too: it would never start.
    """
    chosen = team.store.claim.get("storageClass")
    if team.isolated and chosen and chosen not in team.classes:
        has = ", ".join(team.classes) or "none"
        yield place.at("storageClass").refuse(
            *row("vcluster-storage-class", chosen=chosen, listed=has)
        )


def _size(quantity: str) -> Decimal | str:
    """The number of a quantity; what is none as it is: the chart says what is wrong with it."""
    try:
        return parse_quantity(quantity)
    except ValueError:
        return quantity


@advisory("vcluster-provider-reached", "high", each_vcluster)
def vcluster_provider_reached(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A vCluster's API server reaches its identity provider.

    It reads the provider's keys before it takes a token: where network policies keep it away,
    nobody gets in by an account of the provider, and nothing but its log says why.
    """
    if team.unreached_issuer:
        cidrs = team.written_at("isolation", "network", "cidrs")
        cause, fix = row("vcluster-provider", issuer=team.unreached_issuer, cidrs=cidrs)
        yield place.at("oidc", "issuer").warn(cause, fix)
