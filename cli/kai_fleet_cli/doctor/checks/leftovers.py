"""What another version of KAI or a removed team left."""

from collections.abc import Iterator
from typing import Final

from kai_fleet.guards.policies import ENFORCED, ISOLATION_LABEL, TEAM_LABEL, USED_LABEL
from kai_fleet.kube.objects import seconds_since
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet_cli.doctor.causes import Fault, fault
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot

STUCK: Final = 120.0  # seconds that the deletion of a namespace may take
# What a team leaves on a namespace that others made.
_LABELS: Final = (TEAM_LABEL, USED_LABEL, ISOLATION_LABEL, ENFORCED, f"{ENFORCED}-version")


def cluster(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Namespaces that do not go, and schedulers besides the declared one."""
    for item in cluster.all("namespaces"):
        since = item["metadata"].get("deletionTimestamp")
        if since is not None and seconds_since(since, cluster.now) >= STUCK:
            conditions = item.status.get("conditions") or []
            held = (each for each in conditions if each.get("status") == "True")
            texts = [str(condition.get("message")) for condition in held]
            left = [text for text in texts if "remaining" in text]
            yield fault("namespace-stuck", cluster, item.name, reason="; ".join(left or texts))
    names = [item.name for item in cluster.within("deployments", KAI_NAMESPACE)]
    release, shards = cluster.kai, [item.name for item in cluster.all("schedulingshards")]
    if names and release is None and cluster.desired.declared:
        helm = f"{cluster.helm} -n {KAI_NAMESPACE} uninstall kai-scheduler"
        by_hand = f"{cluster.kubectl} -n {KAI_NAMESPACE} delete deployment {' '.join(names)}"
        remove = f"`{helm if cluster.all('releases') else by_hand}`"
        version, parts = cluster.running_version or "", ", ".join(sorted(names)[:3])
        yield fault("kai-undeclared", cluster, version, parts=parts, remove=remove)
    if release is not None and not release.has_shards:
        for name in shards:
            yield fault("shard-of-newer-kai", cluster, name, version=release.version)
    for name in (item.name for item in cluster.schedulers if release is not None):
        if name != "scheduler" and name.removeprefix("kai-scheduler-") not in shards:
            yield fault("scheduler-without-shard", cluster, name)


def host(host: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """What removed teams left."""
    spaces = {item.name for item in host.all("namespaces")}
    for name in (item.name for item in host.all("clusterroles")):
        # vCluster names it vc-TEAM-v-NAMESPACE; deleting the namespace by hand leaves it.
        own, _, space = name.partition("-v-")
        if own.startswith("vc-") and space and space not in spaces:
            yield fault("cluster-role-left", host, name)
    known = {None, *(team.name for team in (*host.desired.teams, *host.desired.grants))}
    for item in host.all("namespaces") if host.desired.declared else ():
        team = item.labels.get(TEAM_LABEL)
        if team not in known and "deletionTimestamp" not in item["metadata"]:
            labels = f"label namespace {{names}} {' '.join(f'{key}-' for key in _LABELS)}"
            command = labels if USED_LABEL in item.labels else "delete namespace {names}"
            yield fault("namespace-undeclared", host, item.name, team=team, command=command)
