"""What another version or a removed team left behind, and two KAIs where one is to be."""

import re

from kai_fleet import releases
from kai_fleet.guards.policies import ENFORCED, ISOLATION_LABEL, TEAM_LABEL, USED_LABEL
from kai_fleet.kube.objects import seconds_since
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot

MODES = "one-mode"
SUPPORTED = "kai-supported"
_STUCK = 120.0  # seconds that a namespace may take to go
# What a team leaves on a namespace that others made (docs/start.md).
_LABELS = (TEAM_LABEL, USED_LABEL, ISOLATION_LABEL, ENFORCED, f"{ENFORCED}-version")
_ROLE = re.compile(r"vc-(?P<name>.+)-v-(?P<namespace>.+)")


def check(snapshot: Snapshot) -> Findings:
    """Each cluster by itself, then the host's vClusters."""
    for cluster in snapshot.clusters:
        yield from _terminating(cluster)
        yield from _schedulers(cluster)
        yield from _unwanted(cluster)
        yield from _supported(cluster)
    yield from _roles(snapshot.host)
    yield from _undeclared(snapshot.host)
    yield from _modes(snapshot)


def _terminating(cluster: ClusterState) -> Findings:
    for item in cluster.all("namespaces"):
        since = item["metadata"].get("deletionTimestamp")
        if since is None or seconds_since(since, cluster.now) < _STUCK:
            continue
        messages = [
            str(condition.get("message"))
            for condition in item.status.get("conditions") or []
            if condition.get("status") == "True" and condition.get("message")
        ]
        reasons = [text for text in messages if "remaining" in text] or messages
        yield cluster.broken(
            f"namespace {item.name}",
            f"it is being deleted and does not go: {'; '.join(reasons) or 'no reason given'}",
            f"look with: `{cluster.kubectl} get all,pvc -n {item.name}`; take the finalizers of"
            " what is left away",
        )


def _schedulers(cluster: ClusterState) -> Findings:
    names, release = cluster.schedulers, cluster.kai
    shards = [item.name for item in cluster.all("schedulingshards")]
    delete_shard = f"`{cluster.kubectl} delete schedulingshard"
    others = [name for name in names if name != "scheduler"]
    orphans = [name for name in others if name.removeprefix("kai-scheduler-") not in shards]
    if "scheduler" in names and others:
        yield cluster.broken(
            "schedulers of KAI",
            f"two versions schedule the same pods: scheduler, and {', '.join(others)} of a"
            " SchedulingShard",
            f"{delete_shard} {' '.join(others).replace('kai-scheduler-', '')}`, where the chart"
            " brings its own scheduler (v0.9 and older)",
        )
    elif shards and release is not None and not release.has_shards:
        yield cluster.broken(
            f"SchedulingShard {', '.join(shards)}",
            f"a newer KAI left it, and the operator of {release.version} makes a second scheduler"
            " from it",
            f"{delete_shard} {' '.join(shards)}`",
        )
    elif orphans and release is not None:
        yield cluster.broken(
            f"deployment {orphans[0]}",
            "its SchedulingShard is gone, and nobody takes it away: it schedules beside the others",
            f"`{cluster.kubectl} -n {KAI_NAMESPACE} delete deployment {orphans[0]}`",
        )


def _unwanted(cluster: ClusterState) -> Findings:
    names = [item.name for item in cluster.within("deployments", KAI_NAMESPACE)]
    if not names or not cluster.wanted.declared or cluster.wanted.release is not None:
        return
    at = f"-n {KAI_NAMESPACE}"
    if cluster.all("releases"):
        remove = f"`{cluster.helm} {at} uninstall kai-scheduler`"
    else:
        remove = f"`{cluster.kubectl} {at} delete deployment {' '.join(names)}`"
    yield cluster.broken(
        f"KAI {cluster.running_version or ''}".strip(),
        f"it runs here ({', '.join(sorted(names)[:3])}), and the stack wants none",
        f"declare it at {cluster.wanted.key}, or take it away: {remove}",
    )


def _supported(cluster: ClusterState) -> Findings:
    running, today = cluster.running_version, cluster.now.date()
    if running is None:
        return
    key = f"{cluster.wanted.key}.version"
    advice = f"{releases.advice(releases.KAI, running, today)}, at {key}"
    if running in releases.KAI:
        if not (support := releases.support(running, today)).maintained:
            yield cluster.warning(f"KAI {running}", support.words, advice, check=SUPPORTED)
        return
    newer = releases.taken_for(releases.KAI, running)
    yield cluster.warning(
        f"KAI {running}",
        "it is a version that this program does not know",
        advice if newer else f"write {releases.instead(releases.KAI, running)} at {key}",
        check=SUPPORTED,
    )


def _roles(host: ClusterState) -> Findings:
    """Deleting a vCluster's namespace by hand leaves its cluster role and its binding (V17)."""
    if "namespaces" in host.unreadable:
        return
    for name in (item.name for item in host.all("clusterroles")):
        role = _ROLE.fullmatch(name)
        if role is not None and host.named("namespaces", role["namespace"]) is None:
            yield host.warning(
                f"ClusterRole {name}",
                f"it is of a vCluster whose namespace {role['namespace']} is gone",
                f"`{host.kubectl} delete clusterrole,clusterrolebinding {name} --ignore-not-found`",
            )


def _undeclared(host: ClusterState) -> Findings:
    """Namespaces of teams that the platform's stack file does not have: nobody looks at these."""
    wanted = {team.name for team in (*host.wanted.teams, *host.wanted.grants)}
    for item in host.all("namespaces") if host.wanted.declared else ():
        name = item.labels.get(TEAM_LABEL)
        if name is not None and name not in wanted and "deletionTimestamp" not in item["metadata"]:
            # One that others made, and the team used, stays theirs.
            used = USED_LABEL in item.labels
            tell = host.warning if used else host.broken
            left = f"label namespace {item.name} {' '.join(f'{key}-' for key in _LABELS)}"
            yield tell(
                f"namespace {item.name}",
                f"it is of team {name}, which is not in the stack's file: its pods hold what they"
                " have, and nothing else here looks at it",
                f"put the team back, or its name into kai-fleet:removed, then {host.update}; if the"
                " namespace stays, the stack does not have it any more:"
                f" `{host.kubectl} {left if used else f'delete namespace {item.name}'}`",
            )


def _modes(snapshot: Snapshot) -> Findings:
    """A KAI on the host and one inside a vCluster delete each other's pods (V14)."""
    inside = [name for name, it in snapshot.teams.items() if it.inside and _runs_kai(it.inside)]
    if inside and _runs_kai(snapshot.host):
        yield snapshot.host.broken(
            "KAI on the host and inside vClusters",
            f"the host's KAI deletes the fraction pods of {', '.join(inside)} each time it starts",
            "a host is in virtual mode or in host mode: drop kai-fleet:kai, or give these teams"
            f" scheduler.mode: host; then {snapshot.host.apply}",
            check=MODES,
        )


def _runs_kai(cluster: ClusterState) -> bool:
    return any(
        item.is_true("Available") or item.spec.get("replicas", 1)
        for item in cluster.within("deployments", KAI_NAMESPACE)
        if item.name in ("binder", *cluster.schedulers)
    )
