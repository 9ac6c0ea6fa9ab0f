"""Rules about a control plane: its store, its volume, and what it asks for."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from kai_fleet.finding import Level
from kai_fleet.fleet import chart_stores
from kai_fleet.fleet.chart_stores import CLAIM, EMBEDDED, REPLICAS, SWITCHES, ChartStore, store_of
from kai_fleet.fleet.cluster import Cluster, Team
from kai_fleet.quantities import parse_quantity
from kai_fleet.releases import DEFAULT_VCLUSTER
from kai_fleet.releases.chart_values import merged
from kai_fleet.values import UNKNOWN, mapping, number, pairs, value_at
from kai_fleet_policies.rules.rule import (
    Findings,
    Place,
    Severity,
    known,
    of_vcluster,
    rule,
    vclusters,
)

# What a store or a volume takes that cannot be changed.
_ANOTHER: Final = (
    "needs another vCluster: add a team of another name beside it and move what it runs, or remove"
    " the team, which deletes all that is in it, and add it again"
)
_MIGRATE: Final = "controlPlane.backingStore.etcd.embedded.migrateFromDeployedEtcd"
_LICENCES: Final = {"embeddedEtcd": "the free tier has it", "external": "the tier Prod has it"}


@rule("vcluster-store", Level.MANDATORY, Severity.CRITICAL, each=vclusters)
def vcluster_store(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A control plane's store fits its replicas and its licence, and stays what it is.

    vCluster moves no state from one store to another: the team's Kubernetes would start again
    empty, or not at all. Several control planes on one SQLite do not start.

    Remedy: Choose the store before the vCluster is made, and keep it.
    """
    values = team.chart_values
    if values is UNKNOWN:
        return  # vcluster-values says so
    for key in SWITCHES.values():
        known(value_at(values, key), "its store is known")
    store, runs = store_of(values), team.runs.store if team.runs is not None else None
    replicas = number(value_at(values, REPLICAS))
    if isinstance(replicas, float) and replicas > 1:
        yield from _replicas(team, store, replicas)
    if store.type in _LICENCES and not team.licensed:
        yield of_vcluster(team, "store", "type").refuse(
            f"is {store.type}, which the open source image has in no version",
            "write etcd, or licensed: true beside store if you have a licence"
            f" ({_LICENCES[store.type]})",
        )
    if runs is not None:
        yield from _change(team, runs, store)


def _replicas(team: Team, store: ChartStore, replicas: float) -> Findings:
    place, count = of_vcluster(team, "replicas"), f"is {replicas:g}"
    if store.type == EMBEDDED:
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


def _change(team: Team, before: ChartStore, after: ChartStore) -> Findings:
    if before.type != after.type:
        moves = (before.type, after.type) == ("etcd", "embeddedEtcd")
        if moves and value_at(team.chart_values, _MIGRATE) is True:
            return
        fix = f"write {before.type}. Another store {_ANOTHER}"
        if moves:
            fix = f"write etcd, or have vCluster move it once, by {_MIGRATE}: true in values"
        yield of_vcluster(team, "store", "type").refuse(
            f"changes from {before.type} to {after.type}, and the state stays in the one before",
            fix,
        )
    elif before.members != after.members:
        yield of_vcluster(team, "store", "replicas").refuse(
            f"changes from {before.members} to {after.members}, and each etcd keeps the members of"
            " its first start: others would begin a second, empty store under the same name",
            f"write {before.members}. Another store {_ANOTHER}",
        )


# The names of resources in a pod, and in a stack file.
_NAMES: Final = {"cpu": "cpu", "memory": "memory", "ephemeral-storage": "ephemeralStorage"}


@rule("vcluster-resources", Level.MANDATORY, Severity.HIGH, each=vclusters)
def vcluster_resources(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A control plane's requests are within its limits, and within what its team may have.

    Kubernetes makes no pod that asks for more than its limit, or than its namespace's quota has
    left: the control plane would not start, and an update waits for it in vain.

    Remedy: Write a larger limit or bound, or ask for less.
    """
    values, version = team.chart_values, team.version or DEFAULT_VCLUSTER
    own = mapping(value_at(values, chart_stores.RESOURCES))
    if UNKNOWN in (values, version, own):
        return  # other rules say so
    resources = merged(chart_stores.default_resources(version), own)
    requests, limits = (pairs(resources.get(kind)) for kind in ("requests", "limits"))
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
        yield from _within_bounds(team, values, name, request, at_key)


def _within_bounds(
    team: Team, values: Mapping[str, Any], name: str, request: Decimal, place: Place
) -> Findings:
    """All pods of a control plane against the team's quota, which counts them."""
    bound = _amount(team.bounds.get(name))
    if bound is None:
        return
    whole = request * int(known(number(value_at(values, REPLICAS)), "its replicas are known") or 1)
    store = store_of(values)
    if store.type == "etcd":
        own = pairs(value_at(values, f"{chart_stores.ETCD}.statefulSet.resources.requests"))
        chart = {**chart_stores.ETCD_REQUESTS, **own}
        whole += (_amount(chart.get(name)) or 0) * store.members
    if whole > bound:
        yield place.refuse(
            f"makes {_shown(name, whole)} of {_NAMES[name]} for all pods of the control plane, and"
            f" the team may have {_shown(name, bound)} with all that it runs: Kubernetes would make"
            " none",
            f"ask for less, or raise isolation.bounds.{_NAMES[name]}",
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


@rule("vcluster-volume", Level.MANDATORY, Severity.HIGH, each=vclusters)
def vcluster_volume(cluster: Cluster, team: Team, place: Place) -> Findings:
    """The volume of a vCluster that runs keeps its storage class and size.

    Kubernetes changes no volume template of a StatefulSet: the update would fail each time,
    with all else that it was to do.

    Remedy: Write what the volume has; a volume grows by its claim, as the message says.
    """
    runs = team.runs.store if team.runs is not None else None
    if runs is None or runs.type != team.store.type:
        return  # vcluster-store says so
    for key, default in _DEFAULTS.items():
        before = runs.claim.get(key) or default
        after = team.store.claim.get(key) or default
        if not same_claim(key, before, after):
            yield _volume_place(team, key).refuse(*_changed(team, key, before, after))


def same_claim(key: str, before: Any, after: Any) -> bool:
    """Whether two values of `size` or `storageClass` mean the same."""
    size = _amount(before) if key == "size" else None
    return bool(before == after or (size is not None and size == _amount(after)))


def _volume_place(team: Team, key: str) -> Place:
    """Where the value is written."""
    if key in pairs(value_at(team.values, CLAIM)):
        return of_vcluster(team, "values", CLAIM, key)
    return of_vcluster(team, *(("store", key) if team.store.type == "etcd" else (key,)))


def _changed(team: Team, key: str, before: Any, after: Any) -> tuple[str, str]:
    was, is_now = before or "the cluster's default class", after or "the cluster's default class"
    written = before or '""'
    cause = f"changes from {was} to {is_now}, and the volume is made already"
    if key == "size" and (_amount(after) or 0) > (_amount(before) or 0):
        etcds = [f"data-{team.name}-etcd-{n}" for n in range(team.store.members)]
        claims = " ".join(etcds) if team.store.type == "etcd" else f"data-{team.name}-0"
        grow = f'{{"spec":{{"resources":{{"requests":{{"storage":"{after}"}}}}}}}}'
        return cause, (
            f"write {written}, and have the volume itself grow where its class can: `kubectl -n"
            f" {team.namespace} patch pvc {claims} -p '{grow}'`"
        )
    return cause, f"write {written}. Another volume {_ANOTHER}"
