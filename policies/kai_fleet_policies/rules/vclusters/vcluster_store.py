"""A control plane's store fits its replicas and its licence, and stays what it is."""

from typing import Final

from kai_fleet.fleet.chart_stores import EMBEDDED, REPLICAS, SWITCHES, ChartStore, store_of
from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.values import UNKNOWN, number, value_at
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.vclusters import ANOTHER, of_vcluster

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "vCluster moves no state from one store to another: the team's Kubernetes would start again"
    " empty, or not at all. Several control planes on one SQLite do not start."
)
REMEDY = "Choose the store before the vCluster is made, and keep it."

_ANOTHER: Final = f"Another store {ANOTHER}"
_MIGRATE: Final = "controlPlane.backingStore.etcd.embedded.migrateFromDeployedEtcd"
_LICENCES: Final = {"embeddedEtcd": "the free tier has it", "external": "the tier Prod has it"}


def check(cluster: DeclaredCluster) -> Problems:
    """The store of each vCluster, also against the one that runs now, where that is known."""
    for team in cluster.teams:
        values = team.chart_values
        if values is UNKNOWN:
            continue  # vcluster-values says so
        if any(value_at(values, key) is UNKNOWN for key in SWITCHES.values()):
            yield of_vcluster(team, "store").undecided("its store is known")
            continue
        store = store_of(values)
        yield from _replicas(team, store, number(value_at(values, REPLICAS)))
        yield from _licence(team)
        if team.runs is not None and team.runs.store is not None:
            yield from _change(team, team.runs.store, store)


def _replicas(team: DeclaredTeam, store: ChartStore, replicas: object) -> Problems:
    if not isinstance(replicas, float) or replicas <= 1:
        return
    place, count = of_vcluster(team, "replicas"), f"is {replicas:g}"
    if store.type == EMBEDDED:
        runs = team.runs is not None
        way = f"write 1. {_ANOTHER}" if runs else "write store: {type: etcd, replicas: 3}, or 1"
        yield place.mandatory(
            f"{count}, and its store is SQLite, a file that one process has: none would start;"
            f" {way}"
        )
    elif store.type == "embeddedEtcd" and replicas % 2 == 0:
        more = "etcd is in each of them, and needs more than half"
        yield place.mandatory(f"{count}, and {more}; write {replicas + 1:g}")
    elif store.type == "etcd" and store.members == 1:
        alone = "and all of them need its one etcd: without that one nothing answers"
        yield place.advisory(
            f"{count}, {alone}; write store: {{type: etcd, replicas: 3}}, which cannot be changed"
            " once it is made"
        )


def _licence(team: DeclaredTeam) -> Problems:
    """Of its own keys; of what its values say, vcluster-values tells."""
    kind = store_of(team.control_plane).type
    if kind in _LICENCES and not team.licensed:
        yield of_vcluster(team, "store", "type").mandatory(
            f"is {kind}, which the open source image has in no version; write etcd, or licensed:"
            f" true beside store if you have a licence ({_LICENCES[kind]})"
        )


def _change(team: DeclaredTeam, before: ChartStore, after: ChartStore) -> Problems:
    if before.type != after.type:
        moves = (before.type, after.type) == ("etcd", "embeddedEtcd")
        if moves and value_at(team.chart_values, _MIGRATE) is True:
            return
        way = (
            f"write etcd, or have vCluster move it once, by {_MIGRATE}: true in values"
            if moves
            else f"write {before.type}. {_ANOTHER}"
        )
        yield of_vcluster(team, "store", "type").mandatory(
            f"changes from {before.type} to {after.type}, and the state stays in the one before:"
            f" {way}"
        )
    elif before.members != after.members:
        yield of_vcluster(team, "store", "replicas").mandatory(
            f"changes from {before.members} to {after.members}, and each etcd keeps the members of"
            " its first start: others would begin a second, empty store under the same name; write"
            f" {before.members}. {_ANOTHER}"
        )
