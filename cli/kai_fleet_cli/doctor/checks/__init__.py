"""The table of checks: what each looks at, and the function that yields what is wrong.

A check that finds nothing in a cluster is one finding of level `ok`. One that asks for a list that
was not read ends there: what it has found by then stands, and it is not `ok`.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from kai_fleet.cluster.kube.objects import MALFORMED, malformed
from kai_fleet.finding import Finding
from kai_fleet_cli.doctor.causes import Fault, fault, findings, going, merged
from kai_fleet_cli.doctor.checks import gpu, kai, pods, teams
from kai_fleet_cli.doctor.required import Required
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, UnreadError
from kai_fleet_policies.model.cluster import HOST

SECONDS: Final = 20.0  # to judge the inside of one vCluster; a large one takes less than one
# Subjects of checks: the cluster that findings are about, and the function's argument.
_SUBJECTS: Final[Mapping[str, Callable[[Snapshot], Iterable[tuple[Cluster, Any]]]]] = {
    "host": lambda read: [(read.host, read.host)],
    "cluster": lambda read: [(cluster, cluster) for cluster in read.clusters],
    "KAI": lambda read: [(cluster, cluster) for cluster in read.clusters],
    "team": lambda read: [(read.host, team) for team in read.teams.values()],
    "vCluster": lambda read: [(team.inside, team) for team in read.teams.values() if team.inside],
}


class Check(NamedTuple):
    """A check: its name, its subject, and its function. A cluster without KAI is no subject KAI."""

    name: str
    subject: str
    run: Callable[[Any, Snapshot], Iterable[Fault]]
    ahead: bool = False  # it judges what no update makes, so a preview asks it, too

    def faults(self, cluster: Cluster, subject: Any, snapshot: Snapshot) -> Iterable[Fault]:
        """What is wrong with one subject. Raises UnreadError."""
        if self.subject == "KAI" and cluster.kai is None:
            raise NoSubjectError
        return self.run(subject, snapshot)


class NoSubjectError(Exception):
    """A check has nothing to judge in a cluster."""


def unreadable(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Kinds that this user may not read, or that an API server does not give now."""
    for kind, reason in sorted(cluster.unreadable.items()):
        row = "read-access" if reason.startswith("403") else "read-busy"
        yield fault(row, cluster, kind, reason=reason)


# Besides these, what the stack requires: see `required.py`.
CHECKS: Final = (
    Check("vcluster", "vCluster", teams.identity),
    Check("readable", "cluster", unreadable),
    Check("kubernetes", "cluster", teams.kubernetes, ahead=True),
    Check("nodes", "host", gpu.nodes, ahead=True),
    Check("nodes", "team", gpu.pool, ahead=True),
    Check("nodes", "vCluster", gpu.inside),
    Check("gpu-stack", "host", gpu.daemon_sets),
    Check("gpu-stack", "host", gpu.plugins),
    Check("gpu-stack", "cluster", gpu.shared_by_plugins),
    Check("vcluster", "team", teams.vcluster),
    Check("vcluster", "team", teams.store),
    Check("vcluster", "team", teams.killed),
    Check("vcluster", "team", teams.certificate),
    Check("isolation", "team", teams.too_many_gpus),
    Check("isolation", "team", teams.secrets),
    Check("isolation", "team", teams.control_planes),
    Check("isolation", "team", teams.tenants_pods),
    Check("isolation", "team", teams.undeclared_policies),
    Check("network-plugin", "host", teams.ports, ahead=True),
    Check("network-plugin", "host", teams.network, ahead=True),
    Check("classes", "team", teams.default_class, ahead=True),
    *(Check("classes", "team", partial(teams.classes, kinds), True) for kinds in teams.CLASSES),
    Check("kai-parts", "KAI", kai.parts),
    Check("kai-parts", "KAI", kai.killed),
    Check("kai-parts", "KAI", kai.conditions),
    Check("kai-parts", "KAI", kai.hooks),
    Check("webhooks", "cluster", kai.webhooks),
    Check("leftovers", "cluster", teams.stuck),
    Check("leftovers", "cluster", teams.api_services),
    Check("leftovers", "host", teams.cluster_roles),
    Check("leftovers", "host", teams.undeclared_namespaces),
    Check("leftovers", "cluster", kai.undeclared),
    Check("leftovers", "cluster", kai.schedulers),
    Check("queues", "KAI", kai.queues),
    Check("shards", "KAI", kai.shards),
    Check("pending", "cluster", pods.waiting),
    Check("workload-known-keys", "cluster", pods.wrong_keys),
    Check("refused", "cluster", pods.refused),
    Check("pod-groups", "KAI", pods.without_group),
    Check("gpu-sharing", "KAI", gpu.switched_off),
    Check("gpu-sharing", "KAI", gpu.sharing),
    Check("reservation", "KAI", gpu.reservations),
)
# What is read of the host for those that are asked ahead.
AHEAD: Final = frozenset({"nodes", "daemonsets", "services", teams.GUARDS, *teams.CLASSES})


def examine(snapshot: Snapshot, without: str = "") -> list[Finding]:
    """The findings of all checks, or all but one.

    The API server of a vCluster is its tenant's, and may answer objects that no Kubernetes has:
    that is a finding, and the other checks run all the same.
    """
    found: dict[tuple[str, str], list[Fault]] = {}
    undecided = set[tuple[str, str]]()
    for at, faults, decided in judged(snapshot, without):
        found.setdefault(at, []).extend(faults)
        undecided |= set() if decided else {at}
    known = {at: faults for at, faults in found.items() if faults or at not in undecided}
    return [each for at, faults in merged(known).items() for each in findings(*at, faults)]


# Name of a check and of a cluster; its faults; whether all was read that it asked for.
Judged: TypeAlias = tuple[tuple[str, str], list[Fault], bool]


def judged(snapshot: Snapshot, without: str = "") -> Iterator[Judged]:
    """The faults of every check, for one subject after the other."""
    left: dict[str, float] = defaultdict(lambda: SECONDS)
    left[HOST] = math.inf
    for check in (row for row in CHECKS if row.name != without and row.ahead >= snapshot.ahead):
        for cluster, subject in _SUBJECTS[check.subject](snapshot):
            if left[cluster.name] <= 0:
                continue
            if cluster.name in snapshot.lost and check.run is not teams.identity:
                continue  # nothing is declared in another vCluster: what is missing follows from it
            begun = time.monotonic()
            at, decided, faults = (check.name, cluster.name), True, list[Fault]()
            try:
                every = check.faults(cluster, subject, snapshot)
                for each in in_time(every, begun + left[cluster.name]):
                    faults.append(each)
            except NoSubjectError:
                continue
            except UnreadError:
                decided = False
            except MALFORMED as error:
                if cluster is snapshot.host:
                    raise
                cause = malformed(error)
                at = ("vcluster", cluster.name)
                faults = [fault("malformed", cluster, cluster.name, cause=cause)]
            yield at, faults, decided
            left[cluster.name] -= time.monotonic() - begun
            if left[cluster.name] <= 0:
                late = fault("too-large", cluster, cluster.name, seconds=f"{SECONDS:.0f}")
                yield ("vcluster", cluster.name), [late], True
    yield from _required(snapshot)


def in_time(faults: Iterable[Fault], ends: float) -> Iterator[Fault]:
    """The faults that are found until then, by the monotonic clock."""
    for each in faults:
        yield each
        if time.monotonic() > ends:
            return


def _required(snapshot: Snapshot) -> Iterator[Judged]:
    """Each object that the stack requires."""
    clusters = {cluster.name: cluster for cluster in snapshot.clusters}
    for row in snapshot.required:
        cluster = clusters.get(row.cluster)
        comes = snapshot.ahead and (row.check != "runtime-class" or gpu.stack_comes(snapshot))
        if comes or cluster is None or row.cluster in snapshot.lost:
            continue
        at = (row.check, row.cluster)
        try:
            if not _of_another_check(row, cluster, snapshot):
                yield at, list(_absent(row, cluster)), True
        except UnreadError:
            yield at, [], False


def _of_another_check(row: Required, cluster: Cluster, snapshot: Snapshot) -> bool:
    """Whether `kubernetes` reports the absence of its kind, or `vcluster` that of its namespace."""
    if row.check in ("isolation", "guard") and not cluster.serves(row.kinds):
        return True
    state = snapshot.teams.get(row.team)
    return state is not None and cluster.named("namespaces", state.team.namespace) is None


def _absent(row: Required, cluster: Cluster) -> Iterator[Fault]:
    name = f"{row.namespace}/{row.name}" if row.namespace else row.name
    item = cluster.named(row.kinds, row.name, row.namespace)
    if item is None:
        yield fault(row.row, cluster, name, kind=row.kind)
    elif item.is_being_deleted:
        yield going(cluster, item, row.kind, row.kinds)
