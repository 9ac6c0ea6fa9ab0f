"""What another version or a removed team left behind, and two KAIs where one is to be."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kai_fleet.kai.keys import KAI_NAMESPACE
from kai_fleet.releases import KAI, nearest_maintained, support
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.objects import is_true, name_of, namespace_of, seconds_since, spec

NAME = "leftovers"
MODES = "one-mode"
SUPPORTED = "kai-supported"
_STUCK = 120.0  # seconds that a namespace may take to go
_ROLE = re.compile(r"vc-(?P<name>.+)-v-(?P<namespace>.+)")


def check(look: Snapshot) -> Iterator[Finding]:
    """Each cluster by itself, then the host's vClusters."""
    for cluster in look.clusters:
        yield from _terminating(cluster)
        yield from _schedulers(cluster)
        yield from _unwanted(cluster)
        yield from _supported(cluster)
    yield from _roles(look.host)
    yield from _modes(look)


def _terminating(cluster: ClusterState) -> Iterator[Finding]:
    for item in cluster.all("namespaces"):
        since = item["metadata"].get("deletionTimestamp")
        if since is None or seconds_since(since, cluster.now) < _STUCK:
            continue
        said = [
            str(entry.get("message"))
            for entry in (item.get("status") or {}).get("conditions") or []
            if entry.get("status") == "True" and entry.get("message")
        ]
        left = "; ".join(text for text in said if "remaining" in text)
        yield cluster.broken(
            NAME,
            f"namespace {name_of(item)}",
            "it is being deleted and does not go: "
            + (left or "; ".join(said) or "no reason given"),
            f"look with: `{cluster.kubectl} get all,pvc -n {name_of(item)}`; take the"
            " finalizers of what is left away",
        )


def _schedulers(cluster: ClusterState) -> Iterator[Finding]:
    there = cluster.schedulers
    shards = {f"kai-scheduler-{name_of(item)}" for item in cluster.all("schedulingshards")}
    orphans = [name for name in there if name != "scheduler" and name not in shards]
    if "scheduler" in there and len(there) > 1:
        others = ", ".join(name for name in there if name != "scheduler")
        yield cluster.broken(
            NAME,
            "schedulers of KAI",
            f"two versions schedule the same pods: scheduler, and {others} of a SchedulingShard",
            f"`{cluster.kubectl} delete schedulingshard"
            f" {others.replace(',', '').replace('kai-scheduler-', '')}`, where the chart brings its"
            " own scheduler (v0.9 and older)",
        )
    elif shards and cluster.kai is not None and not cluster.kai.has_shards:
        names = ", ".join(name_of(item) for item in cluster.all("schedulingshards"))
        yield cluster.broken(
            NAME,
            f"SchedulingShard {names}",
            f"a newer KAI left it, and the operator of {cluster.kai.version} makes a second"
            " scheduler from it",
            f"`{cluster.kubectl} delete schedulingshard {names.replace(',', '')}`",
        )
    elif orphans and cluster.kai is not None:
        yield cluster.broken(
            NAME,
            f"deployment {orphans[0]}",
            "its SchedulingShard is gone, and nobody takes it away: it schedules beside the others",
            f"`{cluster.kubectl} -n {KAI_NAMESPACE} delete deployment {orphans[0]}`",
        )


def _unwanted(cluster: ClusterState) -> Iterator[Finding]:
    if not cluster.wanted.declared or cluster.wanted.release is not None:
        return
    there = [name_of(item) for item in cluster.within("deployments", KAI_NAMESPACE)]
    if there:
        yield cluster.broken(
            NAME,
            f"KAI {cluster.running_version or ''}".strip(),
            f"it runs here ({', '.join(sorted(there)[:3])}), and the stack wants none",
            f"declare it at {cluster.wanted.key}, or take it away: {_removal(cluster, there)}",
        )


def _removal(cluster: ClusterState, deployments: list[str]) -> str:
    if cluster.all("releases"):
        return f"`{cluster.helm} -n {KAI_NAMESPACE} uninstall kai-scheduler`"
    return f"`{cluster.kubectl} -n {KAI_NAMESPACE} delete deployment {' '.join(deployments)}`"


def _supported(cluster: ClusterState) -> Iterator[Finding]:
    running = cluster.running_version
    known = KAI.get(running or "")
    if running is None:
        return
    if known is None:
        yield cluster.warning(
            SUPPORTED,
            f"KAI {running}",
            "it is a version that this program does not know",
            f"write one of {', '.join(list(KAI)[-3:])} at {cluster.wanted.key}.version",
        )
    elif not (said := support(running, cluster.now.date())).maintained:
        near = nearest_maintained(running, cluster.now.date()) or "a newer one"
        yield cluster.warning(
            SUPPORTED,
            f"KAI {running}",
            said.words,
            f"move to {near} at {cluster.wanted.key}.version",
        )


def _roles(host: ClusterState) -> Iterator[Finding]:
    """Deleting a vCluster's namespace by hand leaves its cluster role and its binding (V17)."""
    there = {name_of(item) for item in host.all("namespaces")}
    if "namespaces" in host.unreadable:
        return
    for item in host.all("clusterroles"):
        found = _ROLE.fullmatch(name_of(item))
        if found is not None and found["namespace"] not in there:
            name = name_of(item)
            yield host.warning(
                NAME,
                f"ClusterRole {name}",
                f"it is of a vCluster whose namespace {found['namespace']} is gone",
                f"`{host.kubectl} delete clusterrole,clusterrolebinding {name} --ignore-not-found`",
            )


def _modes(look: Snapshot) -> Iterator[Finding]:
    """A KAI on the host and one inside a vCluster delete each other's pods (V14)."""
    inside = [
        name
        for name, team in look.teams.items()
        if team.inside is not None and _runs_kai(team.inside)
    ]
    if _runs_kai(look.host) and inside:
        yield look.host.broken(
            MODES,
            "KAI on the host and inside vClusters",
            f"the host's KAI deletes the fraction pods of {', '.join(inside)} each time it starts",
            "a host is in virtual mode or in host mode: drop kai-fleet:kai, or give these teams"
            f" scheduler.mode: host; then {look.host.update}",
        )


def _runs_kai(cluster: ClusterState) -> bool:
    return any(
        is_true(item, "Available") or spec(item).get("replicas", 1)
        for item in cluster.all("deployments")
        if namespace_of(item) == KAI_NAMESPACE
        and (name_of(item) == "binder" or name_of(item) in cluster.schedulers)
    )
