"""Rules about vClusters: versions, chart values, access to the API, store and volume."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

from kai_fleet import vcluster_values as stores
from kai_fleet.releases import (
    DEFAULT_VCLUSTER,
    VCLUSTER,
    kubernetes_refusal,
    vcluster_refusal,
)
from kai_fleet.releases.allowed_values import READ, refusals
from kai_fleet.values import UNKNOWN, get, items, number, pairs, parse_quantity, value_at
from kai_fleet.vcluster_values import KUBERNETES, ChartStore, kubernetes_of
from kai_fleet_policies.model.cluster import Cluster, Team
from kai_fleet_policies.rules.kai import advised_against, not_in_table
from kai_fleet_policies.rules.rule import (
    Findings,
    Subject,
    advisory,
    each_vcluster,
    known,
    mandatory,
)

# What is wrong with a chart value: its key, the cause and the fix.
WrongValue: TypeAlias = tuple[str, str, str]


@mandatory("vcluster-version-known", "high", each_vcluster)
def vcluster_version_known(cluster: Cluster, team: Team, subject: Subject) -> Findings:
    """Only vCluster versions of the release table; one that is not advised is a warning.

    The keys of vCluster's chart differ by version, its virtual scheduler's among them. A line past
    its end of life gets no more fixes, security fixes included.
    """
    version = known(team.version, "its version is known") or DEFAULT_VCLUSTER
    written = subject.at("version")
    yield from not_in_table(VCLUSTER, version, team.untested, written, "not supported here")
    yield from advised_against(VCLUSTER, version, written)


@mandatory("vcluster-upgrade", "critical", each_vcluster)
def vcluster_upgrade(cluster: Cluster, team: Team, subject: Subject) -> Findings:
    """vCluster goes up one minor version at a time, and never down.

    Larger steps are untested, and a downgrade does not undo what the newer version wrote to its
    volume: the team's whole Kubernetes may not start again.
    """
    if team.running_version is None or not isinstance(team.version, str):
        return
    refusal = vcluster_refusal(team.running_version, team.version)
    if refusal:
        cause, _, fix = refusal.partition("; ")
        yield subject.at("version").refuse(cause, fix)


_VERSION: Final = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+([-+].*)?")


@mandatory("vcluster-kubernetes", "critical", each_vcluster)
def vcluster_kubernetes(cluster: Cluster, team: Team, subject: Subject) -> Findings:
    """A vCluster's Kubernetes is one that its version has, and goes up one minor version at a time.

    An older API server does not read what a newer one wrote, and one that vCluster does not know
    may not start: the team's whole Kubernetes restarts for ever.
    """
    if team.running_version and vcluster_refusal(team.running_version, str(team.version)):
        return  # vcluster-upgrade says so
    written = kubernetes_of(known(team.chart_values, "its values are known"))
    known(written, "its Kubernetes is known")
    release = VCLUSTER.get(str(team.version or DEFAULT_VCLUSTER))
    of_release = release.kubernetes if release is not None else ""
    version = str(written or of_release)
    if not _VERSION.fullmatch(version):
        return  # the tag of another image, or a vCluster that vcluster-version-known refuses
    running = team.running_kubernetes or ""
    before = running if _VERSION.fullmatch(running) else None
    newest = None if team.untested else of_release or None
    refusal = kubernetes_refusal(version, before, newest)
    if refusal is None:
        return
    key = "kubernetesVersion"
    for key_of_chart in KUBERNETES:
        if value_at(team.values, key_of_chart):
            key = f"values.{key_of_chart}"
            break
    cause, _, fix = refusal.partition("; ")
    yield subject.at(key).refuse(cause, fix)


_READ: Final[Mapping[str, Any]] = READ["every"]
_HARMLESS_FLAGS: Final = re.compile("|".join(_READ["flags"]))
_HARMLESS_VARIABLES: Final = re.compile(_READ["names"])


@mandatory("vcluster-values", "critical", each_vcluster)
def vcluster_values(cluster: Cluster, team: Team, subject: Subject) -> Findings:
    """An isolated team sets only values of the allow-list, others none that open or break vCluster.

    Whoever writes the values of a vCluster would decide what it may do on the host, to all
    teams. One flag of its API server opens a team's Kubernetes to everybody who reaches it. Keys
    of paid tiers make the control plane crash without a licence; the vendor guide's podgroups sync
    does so in any case.
    """
    values = known(team.values, "its values are known")
    wrong = list(refusals("vcluster", values)) if team.isolated else []
    reported = tuple(f"{key}." for key, _, _ in wrong)
    for other in [*_programs(values), *_broken(team, values)]:
        if not f"{other[0]}.".startswith(reported):
            wrong.append(other)
    for key, cause, fix in wrong:
        value = subject.at("values", key)
        if cause:
            yield value.refuse(cause, fix)
        else:
            yield value.undecided(f"{key} is known")


def _programs(values: object, above: str = "") -> Iterator[WrongValue]:
    """Values that change what runs as the control plane: commands, variables and flags.

    Raises:
        UnknownValueError: A list of variables or of flags is not known.
    """
    for name, value in pairs(values).items():
        key = f"{above}.{name}".lstrip(".")
        if name in _READ["programs"] and value:
            yield key, f"has {key}, which runs something else than the control plane", "drop it"
        elif name in _READ["variables"]:
            if not _are_harmless(known(value, f"{key} is known")):
                yield (
                    key,
                    f"sets variables of the control plane in {key}, which may change what it does",
                    "drop it; those of a proxy and of Go's memory may be set",
                )
        elif name == "extraArgs":
            for cause in _wrong_flags(value, key):
                yield key, cause, "drop it"
        else:
            yield from _programs(value, key)


def _are_harmless(variables: object) -> bool:
    """Whether all variables of the control plane may be set, from a mapping or a list."""
    names = [*pairs(variables), *(get(entry, "name") for entry in items(variables))]
    return all(_HARMLESS_VARIABLES.fullmatch(str(name)) for name in names)


def _wrong_flags(arguments: object, key: str) -> Iterator[str]:
    """Causes to refuse a list of flags, without their values, which may be secrets.

    Raises:
        UnknownValueError: One of the arguments is not known.
    """
    flags = _flags(arguments, key)
    for name, value in flags.items():
        if not name or not _HARMLESS_FLAGS.fullmatch(name):
            is_plain = re.fullmatch(r"[a-z0-9.-]{1,80}", name)
            flag = f"--{name}" if is_plain else "something that is no flag"
            yield f"gives {flag} in {key}, which is none of those that are known to open nothing"
        elif name in ("oidc-username-prefix", "oidc-groups-prefix") and _opens_system(value):
            yield f"gives --{name}, which lets an identity provider name Kubernetes' own accounts"
    # A group of a provider could be system:masters: the prefix of groups bars that.
    if "oidc-groups-claim" in flags and not flags.get("oidc-groups-prefix"):
        yield (
            "gives --oidc-groups-claim without --oidc-groups-prefix: its provider could put anybody"
            " into system:masters; add --oidc-groups-prefix=oidc: or"
        )


def _opens_system(prefix: str) -> bool:
    """Whether names with this prefix can begin with `system:`.

    `-` means no prefix, and with `sy` a provider's `stem:masters` is Kubernetes' group.
    """
    if prefix in ("", "-"):
        return True
    return "system:".startswith(prefix) or prefix.startswith("system")


def _flags(arguments: object, key: str) -> dict[str, str]:
    """The flags in an argument or a list of them, by name with their last value.

    Flags are read in every form that a program might take: with one or two dashes, the value behind
    `=`, a space or in the next argument, underscores for dashes, several flags in one argument. A
    value without a flag is one of the flag "".
    """
    given = arguments if isinstance(arguments, list | tuple) else [arguments]
    known(UNKNOWN if UNKNOWN in given else None, f"{key} is known")
    words = " ".join(str(argument) for argument in given if argument).split()
    flags: dict[str, str] = {}
    name = ""  # of the flag whose value is the next word
    for word in words:
        word = word.strip("\"'")
        if not word.startswith("-"):
            flags[name] = word
            name = ""
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-").lower()
        flags[name] = value
        if equals:
            name = ""
    return flags


def _broken(team: Team, values: Mapping[str, object]) -> Iterator[WrongValue]:
    """Values that keep a vCluster from starting, or pods from being placed."""
    synced = "sync.fromHost.customResources"
    if "podgroups" in str(value_at(values, synced)):
        yield (
            synced,
            "syncs podgroups from the host: the vCluster then does not start",
            "drop it: KAI needs no such sync",
        )
        return
    if team.licensed:
        return
    for key in (*_READ["paid"], *_READ["free"]):
        if _is_on(value_at(values, key)):
            yield (
                key,
                f"has {key}, which needs a vCluster licence",
                "drop it, or write licensed: true beside values if you have a licence",
            )


def _is_on(value: object) -> bool:
    """Whether a feature's section or switch turns it on; a section does without `enabled`, too."""
    if isinstance(value, Mapping):
        return bool(value) and value.get("enabled", True) not in (None, False)
    return value not in (None, False)


_NGINX: Final = "nginx.ingress.kubernetes.io/"
_HARMLESS_ANNOTATIONS: Final = re.compile("|".join(_READ["annotations"]["own"]))
_HOST_ANNOTATIONS: Final = re.compile("|".join(_READ["annotations"]["names"]))


@mandatory("vcluster-access", "critical", each_vcluster)
def vcluster_access(cluster: Cluster, team: Team, subject: Subject) -> Findings:
    """Each vCluster's API has a host name to itself, and its annotations take nothing of others.

    Ingresses and Gateways route a name to whoever claims it, so one team would answer the
    clients of another. Annotations make controllers share load balancers, take addresses and run
    configuration: a team may write those of a list, the platform all others. Without TLS
    passthrough nobody gets in: the client's certificate ends at the proxy.
    """
    access = team.access
    if access is None:
        return
    host = (access.host or "").lower()
    teams_before = cluster.teams[: cluster.teams.index(team)]
    other = _team_at(host, teams_before)
    if other is not None and access.type != "NodePort":
        domain = host.partition(".")[2]
        if "." not in domain:
            domain = host
        yield subject.at("access.host").refuse(
            f"is {host}, where team {other.name} is reached already: clients of the one would come"
            " to the other",
            f"write another name, such as {team.name}.{domain}",
        )
    for annotation, value in access.annotations.items():
        reason = _why_annotation_refused(team, annotation, str(value), host)
        if reason is not None:
            yield subject.at("access.annotations").refuse(
                f"has {annotation}, which {reason}",
                "drop it, or have the platform write it in kai-fleet:vcluster.access.annotations,"
                " or its domain in kai-fleet:keyDomains",
            )


def _team_at(host: str, teams: Sequence[Team]) -> Team | None:
    """The last of the teams whose API is reached by this name, but for node ports."""
    for team in reversed(teams):
        access = team.access
        if not host or access is None or access.type == "NodePort":
            continue
        if (access.host or "").lower() == host:
            return team
    return None


def _why_annotation_refused(
    team: Team,
    annotation: str,
    value: str,
    host: str,
) -> str | None:
    """Why an annotation is refused of an API whose name is `host`; None if it is allowed."""
    if annotation == f"{_NGINX}ssl-passthrough" and value.lower() != "true":
        return "ends TLS before the API, and nobody is let in"
    if not team.isolated:
        return None
    if _HOST_ANNOTATIONS.fullmatch(annotation):
        names = value.lower().split(",")
        if all(name.strip().rstrip(".") == host for name in names):
            return None
        return "asks for a name that is not access.host, the API's own"
    if annotation in team.own_annotations and not _HARMLESS_ANNOTATIONS.fullmatch(annotation):
        return "is none of those that take nothing of other teams"
    return None


# Completes a fix where a store or a volume cannot be changed.
_NEEDS_ANOTHER_VCLUSTER: Final = (
    "needs another vCluster: add a team of another name beside it and move what it runs, or remove"
    " the team, which deletes all that is in it, and add it again"
)
# With this value vCluster moves a deployed etcd into itself, once.
_MIGRATE: Final = "controlPlane.backingStore.etcd.embedded.migrateFromDeployedEtcd"


@mandatory("vcluster-store", "critical", each_vcluster)
def vcluster_store(cluster: Cluster, team: Team, subject: Subject) -> Findings:
    """A control plane's store fits its replicas and its licence, and stays what it is.

    vCluster moves no state from one store to another: the team's Kubernetes would start again
    empty, or not at all. Several control planes on one SQLite do not start.
    """
    values = known(team.chart_values, "its values are known")
    for key in stores.SWITCHES.values():
        known(value_at(values, key), "its store is known")
    store = stores.store_of(values)
    replicas = number(value_at(values, stores.REPLICAS))
    if store.type == stores.EMBEDDED and isinstance(replicas, float) and replicas > 1:
        fix = "write store: {type: etcd, replicas: 3}, or 1"
        if team.running_store is not None:
            fix = f"write 1. Another store {_NEEDS_ANOTHER_VCLUSTER}"
        yield subject.at("replicas").refuse(
            f"is {replicas:g}, and its store is SQLite, a file that one process has: none would"
            " start",
            fix,
        )
    if store.type in ("embeddedEtcd", "external") and not team.licensed:
        yield subject.at("store", "type").refuse(
            f"is {store.type}, which the open source image has in no version",
            "write etcd, or licensed: true beside store if you have a licence",
        )
    if team.running_store is not None:
        migrates = value_at(values, _MIGRATE) is True
        yield from _changed_store(team.running_store, store, migrates, subject)


def _changed_store(
    before: ChartStore,
    after: ChartStore,
    migrates: bool,
    subject: Subject,
) -> Findings:
    """Refuse another type of store, or another number of etcd members, than the one that runs.

    With `migrates` an etcd may become the embedded one.
    """
    if before.type != after.type:
        if migrates and (before.type, after.type) == ("etcd", "embeddedEtcd"):
            return
        yield subject.at("store", "type").refuse(
            f"changes from {before.type} to {after.type}, and the state stays in the one before",
            f"write {before.type}. Another store {_NEEDS_ANOTHER_VCLUSTER}",
        )
    elif before.members != after.members:
        yield subject.at("store", "replicas").refuse(
            f"changes from {before.members} to {after.members}, and each etcd keeps the members of"
            " its first start: others would begin a second, empty store under the same name",
            f"write {before.members}. Another store {_NEEDS_ANOTHER_VCLUSTER}",
        )


# What vCluster's chart has for a volume's size and class where they are not written.
_VOLUME_DEFAULTS: Final = {"size": "5Gi", "storageClass": ""}


@mandatory("vcluster-volume", "high", each_vcluster)
def vcluster_volume(cluster: Cluster, team: Team, subject: Subject) -> Findings:
    """The volume of a vCluster that runs keeps its storage class and size.

    Kubernetes changes no volume template of a StatefulSet: every update would fail, and with it
    all its other changes.
    """
    running = team.running_store
    if running is None or running.type != team.store.type:
        return  # vcluster-store says so
    for key, default in _VOLUME_DEFAULTS.items():
        before = running.claim.get(key) or default
        after = team.store.claim.get(key) or default
        is_size = key == "size"
        if before == after or (is_size and _bytes(before) == _bytes(after)):
            continue
        no_class = "the cluster's default class"
        kept = before or '""'
        fix = f"write {kept}. Another volume {_NEEDS_ANOTHER_VCLUSTER}"
        if is_size and _is_larger(after, before):
            fix = _grow_volume(team, before, after)
        in_values = key in pairs(value_at(team.values, stores.CLAIM))
        keys = ["values", stores.CLAIM, key] if in_values else [key]
        yield subject.at(*keys).refuse(
            f"changes from {before or no_class} to {after or no_class}, and the volume is made"
            " already",
            fix,
        )


def _bytes(quantity: str) -> Decimal | str:
    """The quantity as a number, or the text unchanged if it is not one: the chart reports that."""
    try:
        return parse_quantity(quantity)
    except ValueError:
        return quantity


def _is_larger(after: str, before: str) -> bool:
    """Whether both sizes are quantities, and the first is the larger one."""
    size = _bytes(after)
    size_before = _bytes(before)
    if isinstance(size, str) or isinstance(size_before, str):
        return False
    return size > size_before


def _grow_volume(team: Team, before: str, after: str) -> str:
    """How to have a larger volume: by its claim, because the release keeps the size before."""
    members = ["-0"]
    if team.store.type == "etcd":
        members = [f"-etcd-{number}" for number in range(team.store.members)]
    claims = " ".join(f"data-{team.name}{member}" for member in members)
    patch = f'{{"spec":{{"resources":{{"requests":{{"storage":"{after}"}}}}}}}}'
    return (
        f"write {before}, and have the volume itself grow where its class can: `kubectl -n"
        f" {team.namespace} patch pvc {claims} -p '{patch}'`"
    )


@mandatory("vcluster-storage-class", "medium", each_vcluster)
def vcluster_storage_class(cluster: Cluster, team: Team, subject: Subject) -> Findings:
    """The volume of an isolated team's vCluster is of a class that the platform lists.

    The host refuses claims of other classes, the control plane's too: it would never start.
    """
    chosen = team.store.claim.get("storageClass")
    if not team.isolated or not chosen or chosen in team.classes:
        return
    classes = ", ".join(team.classes) or "none"
    yield subject.at("storageClass").refuse(
        f"is {chosen}, and isolation.volumeClasses has {classes}",
        "drop it for the default class, or have the platform write"
        f" volumeClasses: [{chosen}] there",
    )


@advisory("vcluster-provider-reached", "high", each_vcluster)
def vcluster_provider_reached(cluster: Cluster, team: Team, subject: Subject) -> Findings:
    """A vCluster's API server reaches its identity provider.

    It reads the provider's keys before it takes a token: where network policies keep it away,
    nobody gets in by an account of the provider, and nothing but its log says why.
    """
    if not team.unreached_issuer:
        return
    cidrs = team.written_at("isolation", "network", "cidrs")
    yield subject.at("oidc", "issuer").warn(
        f"is {team.unreached_issuer}, which its API server does not reach: with"
        " isolation.network.apiCidrs it reaches these addresses, and what its pods reach",
        f"write the provider's address at {cidrs}, such as [10.20.0.10/32]",
    )
