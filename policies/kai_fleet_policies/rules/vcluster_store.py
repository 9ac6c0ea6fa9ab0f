"""Rules about the store and the volume of a vCluster."""

from kai_fleet.releases import chart_stores as stores
from kai_fleet.releases.chart_stores import ChartStore
from kai_fleet.values import number, pairs, value_at
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.rules.rule import Findings, Subject, each_vcluster, mandatory, require_known
from kai_usage.quantities import parse_quantity

# Completes a fix where a store or a volume cannot be changed.
_NEEDS_ANOTHER_VCLUSTER = (
    "needs another vCluster: add a team of another name beside it and move what it runs, or remove"
    " the team, which deletes all that is in it, and add it again"
)
# With this value vCluster moves a deployed etcd into itself, once.
_MIGRATE = "controlPlane.backingStore.etcd.embedded.migrateFromDeployedEtcd"


@mandatory("vcluster-store", "critical", each_vcluster)
def vcluster_store(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """A control plane's store fits its replicas and its licence, and changes by a restore alone.

    vCluster moves no state from one store to another: the team's Kubernetes would start again
    empty, or not at all. Several control planes on one SQLite do not start.
    """
    # One UNKNOWN switch leaves all undecided; UNKNOWN replicas are passed over. Else up to three
    # findings: a change only if it is known what the last update left.
    values = require_known(team.chart_values, "its values are known")
    for key in stores.SWITCHES.values():
        require_known(value_at(values, key), "its store is known")
    store = stores.store_of(values)
    replicas = number(value_at(values, stores.REPLICAS))
    if store.type == stores.EMBEDDED and isinstance(replicas, float) and replicas > 1:
        fix = "write store: {type: etcd, replicas: 3}, or 1"
        if team.running_store is not None:
            fix = f"write 1; {_moved(team, 'etcd')}"
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
        yield from _changed_store(team, team.running_store, store, migrates, subject)


def _moved(team: TeamModel, store: str) -> str:
    """How a team's vCluster gets another store, and keeps what it has."""
    return (
        f"for {store}, take a backup (fleet team backup {team.name} --to FILE), write {store}, and"
        f" restore it: fleet team restore {team.name} --from FILE"
    )


def _changed_store(
    team: TeamModel,
    before: ChartStore,
    after: ChartStore,
    migrates: bool,
    subject: Subject,
) -> Findings:
    """Refuse another type of store, else another number of etcd members, than the one that runs.

    With `migrates` an etcd may become the embedded one.
    """
    if before.type != after.type:
        if migrates and (before.type, after.type) == ("etcd", "embeddedEtcd"):
            return
        yield subject.at("store", "type").refuse(
            f"changes from {before.type} to {after.type}, and the state stays in the one before",
            f"write {before.type}; {_moved(team, after.type)}",
        )
    elif before.members != after.members:
        yield subject.at("store", "replicas").refuse(
            f"changes from {before.members} to {after.members}, and each etcd keeps the members of"
            " its first start: others would begin a second, empty store under the same name",
            f"write {before.members}; {_moved(team, str(after.members))}",
        )


# What vCluster's chart has for a volume's size and class where they are not written.
_VOLUME_DEFAULTS = {"size": "5Gi", "storageClass": ""}


@mandatory("vcluster-volume", "high", each_vcluster)
def vcluster_volume(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """The volume of a vCluster that runs keeps its storage class, and does not shrink.

    Kubernetes changes no class of a claim and makes none smaller: every update would fail, and with
    it all its other changes. To a larger size the update has the claims grow.
    """
    running = team.running_store
    if running is None or running.type != team.store.type:
        return  # not known, or vcluster-store says so
    # A finding for each. Sizes are compared as amounts.
    for key, default in _VOLUME_DEFAULTS.items():
        before = running.claim.get(key) or default
        after = team.store.claim.get(key) or default
        if before == after or (key == "size" and _is_enough(after, before)):
            continue
        no_class = "the cluster's default class"
        kept = before or '""'
        in_values = key in pairs(value_at(team.values, stores.CLAIM))
        keys = ["values", stores.CLAIM, key] if in_values else [key]
        yield subject.at(*keys).refuse(
            f"changes from {before or no_class} to {after or no_class}, and the volume is made"
            " already",
            f"write {kept}. Another volume {_NEEDS_ANOTHER_VCLUSTER}",
        )


def _is_enough(size: str, before: str) -> bool:
    """Whether both sizes are quantities, and the first is as large or larger."""
    try:
        return parse_quantity(size) >= parse_quantity(before)
    except ValueError:  # the chart reports that
        return False


@mandatory("vcluster-storage-class", "medium", each_vcluster)
def vcluster_storage_class(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
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
