"""The table of checks: what each one looks at, and the function that yields its faults.

A check without faults in a cluster becomes one finding of level `ok`. A check that needs a list
which was not read ends there: its faults so far count, and it is not `ok`.

The checks are functions that yield faults. While they do, they and their helpers may raise
UnreadError if a list was not read, and one of MALFORMED for a malformed object.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from kai_fleet.cluster.kube.objects import MALFORMED, malformed
from kai_fleet_cli.doctor.checks import (
    access,
    backups,
    bounds,
    control_plane,
    gpu,
    host,
    kai,
    leftovers,
    pods,
    queues,
    webhooks,
)
from kai_fleet_cli.doctor.faults import (
    Affected,
    CheckAndCluster,
    Fault,
    Faults,
    being_deleted,
    findings,
    without_effects,
)
from kai_fleet_cli.doctor.required import Required
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState, UnreadError
from kai_fleet_policies.finding import Finding
from kai_fleet_policies.model.cluster import HOST

JUDGE_SECONDS = 20.0  # for the inside of one vCluster; a large one takes less than one

ClusterCheck = Callable[[Cluster, Snapshot], Faults]
TeamCheck = Callable[[TeamState, Snapshot], Faults]
# A cluster to check, and the function that yields its faults. While it yields, NoSubjectError,
# UnreadError or one of MALFORMED may be raised.
Run = tuple[Cluster, Callable[[], Faults]]
RunsOf = Callable[[Snapshot], Iterable[Run]]


class NoSubjectError(Exception):
    """A check has nothing to judge in a cluster: it gives no finding there, not even `ok`."""


def _in(
    clusters_of: Callable[[Snapshot], Iterable[Cluster]], checks: Iterable[ClusterCheck]
) -> RunsOf:
    """Return a function that gives the runs of checks for these clusters, check by check."""

    def runs(snapshot: Snapshot) -> Iterator[Run]:
        for check in checks:
            for cluster in clusters_of(snapshot):
                yield cluster, partial(check, cluster, snapshot)

    return runs


def on_host(*checks: ClusterCheck) -> RunsOf:
    """Return a function that gives the runs of checks for the host of a snapshot."""
    return _in(lambda snapshot: [snapshot.host], checks)


def in_clusters(*checks: ClusterCheck) -> RunsOf:
    """Return a function that gives the runs of checks for the API servers that answered.

    Check by check, and of each the host first.
    """
    return _in(lambda snapshot: snapshot.clusters, checks)


def in_kai_clusters(*checks: ClusterCheck) -> RunsOf:
    """Return a function as `in_clusters`, for API servers whose KAI is in the table of releases:
    the declared one, or the running one where another stack declares the cluster. Elsewhere there
    is no finding.
    """
    return in_clusters(*(partial(_check_kai, check) for check in checks))


def _check_kai(check: ClusterCheck, cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Return the faults of a check, which yields them later.

    The call raises NoSubjectError without a KAI in the table, UnreadError if that is not known.
    """
    if cluster.kai is None:
        raise NoSubjectError
    return check(cluster, snapshot)


def of_teams(*checks: TeamCheck) -> RunsOf:
    """Return a function that gives the runs of checks for all teams: of their objects on the
    host.

    The runs are of the host, so all teams together have one finding `ok`. Check by check.
    """

    def runs(snapshot: Snapshot) -> Iterator[Run]:
        for check in checks:
            for state in snapshot.teams.values():
                yield snapshot.host, partial(check, state, snapshot)

    return runs


def in_vclusters(*checks: ClusterCheck) -> RunsOf:
    """Return a function that gives the runs of checks for the vClusters that answered."""
    return _in(lambda snapshot: snapshot.insides, checks)


class Check(NamedTuple):
    """One or several functions that judge a subject.

    Args:
        name: Name of its findings. Several checks may have the same.
        runs_of: Gives the runs of the functions for a snapshot.
        before_update: A preview asks it, too: it judges what no update creates.
        of_lost: It also judges a vCluster that is another one than the last update saw. There
            nothing declared exists yet, so other checks would only repeat that.
    """

    name: str
    runs_of: RunsOf
    before_update: bool = False
    of_lost: bool = False


def unreadable(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield a warning for each resource that this user may not read, or that an API server does not
    list now, sorted by name. Not for one that was read in a namespace, nor for APIServices.
    """
    for resource, reason in sorted(cluster.unreadable.items()):
        subject = Affected(cluster, "read access to", resource)
        if reason.startswith("403"):
            yield subject.warning(
                f"is refused ({reason}), so what needs it was not checked",
                "give this user get and list on them (ClusterRole view, and secrets, nodes and"
                " persistentvolumes)",
            )
        else:
            yield subject.warning(
                f"is put off ({reason}), so what needs it was not checked: the API server is"
                " starting, busy or failing",
                "run the doctor again in a minute",
            )


# Beside these, each object in `required.py` is checked.
CHECKS = (
    Check("vcluster", in_vclusters(access.identity), of_lost=True),
    Check("readable", in_clusters(unreadable)),
    Check("kubernetes", in_clusters(host.kubernetes), before_update=True),
    Check("kubernetes", of_teams(host.versions)),
    Check("nodes", on_host(gpu.nodes), before_update=True),
    Check("nodes", of_teams(gpu.pool), before_update=True),
    Check("nodes", in_vclusters(gpu.inside)),
    Check("gpu-stack", on_host(gpu.daemon_sets, gpu.plugins)),
    Check("gpu-stack", in_clusters(gpu.shared_by_plugins)),
    Check(
        "vcluster",
        of_teams(
            control_plane.vcluster,
            control_plane.store,
            control_plane.killed,
            access.certificate,
        ),
    ),
    Check("backup", of_teams(backups.backup)),
    Check(
        "isolation",
        of_teams(
            bounds.too_many_gpus,
            bounds.secrets,
            bounds.control_planes,
            bounds.tenants_pods,
            bounds.undeclared_policies,
        ),
    ),
    Check("network-plugin", on_host(host.ports, host.network), before_update=True),
    Check(
        "classes",
        of_teams(host.default_class, *(partial(host.classes, key) for key in host.CLASSES)),
        before_update=True,
    ),
    Check("kai-parts", in_kai_clusters(kai.parts, kai.killed, kai.conditions, kai.hooks)),
    Check("webhooks", in_clusters(webhooks.webhooks)),
    Check("leftovers", in_clusters(leftovers.stuck, leftovers.api_services)),
    Check("leftovers", on_host(leftovers.cluster_roles, leftovers.undeclared_namespaces)),
    Check("leftovers", in_clusters(kai.undeclared, kai.schedulers)),
    Check("queues", in_kai_clusters(queues.queues)),
    Check("shards", in_kai_clusters(queues.shards)),
    Check("pending", in_clusters(pods.waiting)),
    Check("workload-known-keys", in_clusters(pods.wrong_keys)),
    Check("refused", in_clusters(pods.refused)),
    Check("pod-groups", in_kai_clusters(pods.without_group)),
    Check("gpu-sharing", in_kai_clusters(gpu.switched_off, gpu.sharing)),
    Check("reservation", in_kai_clusters(gpu.reservations)),
)
# The resources of the host that the checks before an update need.
RESOURCES_BEFORE_UPDATE = frozenset(
    {
        "nodes",
        "daemonsets",
        "services",
        host.GUARDS,
        *(resource for _, resource in host.CLASSES.values()),
    }
)


def examine(snapshot: Snapshot, without: str = "") -> list[Finding]:
    """Return the findings of the checks that `judgements` runs, in its order, also those `ok`.

    `without` is a name in CHECKS, or "". A check that could not be completed and has no faults
    gives no finding. A tenant controls the API server of its vCluster, which may send malformed
    objects. That is a finding about the vCluster, and the other checks run all the same. Raises one
    of MALFORMED for malformed objects of the host.
    """
    faults_by_check = defaultdict[CheckAndCluster, list[Fault]](list)
    incomplete = set[CheckAndCluster]()
    for check_and_cluster, faults, complete in judgements(snapshot, without):
        faults_by_check[check_and_cluster] += faults
        if not complete:
            incomplete.add(check_and_cluster)
    decided = {
        check_and_cluster: faults
        for check_and_cluster, faults in faults_by_check.items()
        if faults or check_and_cluster not in incomplete
    }
    all_findings = list[Finding]()
    for (check, cluster), causes in without_effects(decided).items():
        all_findings.extend(findings(check, cluster, causes))
    return all_findings


class Judgement(NamedTuple):
    """The result of one run of a check. `complete`: no list that it asked for was unread."""

    check_and_cluster: CheckAndCluster
    faults: list[Fault]
    complete: bool = True


def judgements(snapshot: Snapshot, without: str = "") -> Iterator[Judgement]:
    """Run all checks but those named `without` in CHECKS, and yield the result of each run, then
    those of all required objects. "" leaves none out. A result names its check, whose other runs
    may give more.

    Before an update only checks with `before_update` run, and of a vCluster in `snapshot.lost` only
    those with `of_lost`. A vCluster with so many objects that its checks take 20 s is a fault of
    check `vcluster`, and not checked further, but for its required objects.

    Raises one of MALFORMED for malformed objects of the host.
    """
    seconds_left: dict[str, float] = defaultdict(lambda: JUDGE_SECONDS)
    seconds_left[HOST] = math.inf
    for check in CHECKS:
        if check.name == without or (snapshot.before_update and not check.before_update):
            continue
        for cluster, run in check.runs_of(snapshot):
            if seconds_left[cluster.name] <= 0:
                continue
            if cluster.name in snapshot.lost and not check.of_lost:
                continue
            begun = time.monotonic()
            judged = list(_judge(check.name, cluster, run, begun + seconds_left[cluster.name]))
            seconds_left[cluster.name] -= time.monotonic() - begun
            yield from judged
            if seconds_left[cluster.name] <= 0:
                many = f"it has so many objects that {JUDGE_SECONDS:.0f} s did not do to judge them"
                yield _not_judged(cluster, many)
    yield from _required(snapshot)


def _judge(
    check: str,
    cluster: Cluster,
    run: Callable[[], Faults],
    deadline: float,
) -> Iterator[Judgement]:
    """Run one check of one subject; nothing if the cluster has no such subject.

    If objects of a vCluster are malformed, the result is that fault alone, of check `vcluster`.
    Raises one of MALFORMED for the host. The first fault after the deadline, a time of the
    monotonic clock in seconds, is the last, and the result is complete all the same.
    """
    faults = list[Fault]()
    complete = True
    try:
        for fault in run():
            faults.append(fault)
            if time.monotonic() > deadline:
                break
    except NoSubjectError:
        return
    except UnreadError:
        complete = False
    except MALFORMED as error:
        if cluster.name == HOST:
            raise
        yield _not_judged(cluster, malformed(error))
        return
    yield Judgement((check, cluster.name), faults, complete)


def _not_judged(cluster: Cluster, why: str) -> Judgement:
    """Return the result for a vCluster that was not checked to the end: a fault of `vcluster`.

    `why` is a clause.
    """
    sent = Affected(cluster, "vCluster", cluster.name).broken(
        f"{why}, so not all of it was checked",
        "look with: ",
        cluster.command("get pods,events -A"),
    )
    return Judgement(("vcluster", cluster.name), [sent])


def _required(snapshot: Snapshot) -> Iterator[Judgement]:
    """Yield a result for each object that the stack requires in a cluster that was read.

    No result for a vCluster in `snapshot.lost`, nor if another check reports what the object lacks.

    Before an update only the host's RuntimeClass is judged, if the stack installs no GPU stack: the
    update creates the rest. Raises as `_judge`.
    """
    clusters = {cluster.name: cluster for cluster in snapshot.clusters}
    for required in snapshot.required:
        cluster = clusters.get(required.cluster)
        if cluster is None or required.cluster in snapshot.lost:
            continue
        is_created = required.check != "runtime-class" or gpu.gpu_stack_pending(snapshot)
        if snapshot.before_update and is_created:
            continue
        run = partial(_absent_or_going, required, cluster, snapshot)
        yield from _judge(required.check, cluster, run, math.inf)


def _reported_by_another(required: Required, cluster: Cluster, snapshot: Snapshot) -> bool:
    """Whether another check reports what an object lacks: `kubernetes` its kind, or `vcluster` the
    namespace of its team. Raises UnreadError if one of the lists that tell was not read, and one of
    MALFORMED.
    """
    if required.check in ("isolation", "guard") and not cluster.serves(required.resource):
        return True
    state = snapshot.teams.get(required.team)
    return state is not None and cluster.find("namespaces", state.team.namespace) is None


def _absent_or_going(required: Required, cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield a required object that is absent or being deleted, with its level.

    Raises NoSubjectError if another check reports it, UnreadError if its list was not read, and one
    of MALFORMED.
    """
    if _reported_by_another(required, cluster, snapshot):
        raise NoSubjectError
    existing = cluster.find(required.resource, required.name, required.namespace)
    name = required.name
    if required.namespace:
        name = f"{required.namespace}/{required.name}"
    subject = Affected(cluster, required.kind, name)
    if existing is None and required.check == "runtime-class":
        yield gpu.no_runtime_class(cluster, required.effect)
    elif existing is None:
        yield subject.at_level(
            required.level, f"is not there: {required.effect}", cluster.update_command
        )
    elif existing.is_being_deleted:
        yield being_deleted(subject, existing, required.resource, required.level)
