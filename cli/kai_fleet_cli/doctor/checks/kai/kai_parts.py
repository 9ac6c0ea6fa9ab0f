"""KAI's parts: there, rolled out, of the wanted version, and Ready in its own words (K3, K16)."""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet.kai.keys import KAI_NAMESPACE
from kai_fleet.releases import KaiRelease
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.known_messages import meaning
from kai_fleet_cli.doctor.objects import (
    Object,
    condition,
    image_tag,
    is_true,
    labels_of,
    name_of,
    spec,
    status,
)

NAME = "kai-parts"
VERSION = "kai-version"
_LOOK = "look with: `{kubectl} -n kai-scheduler get pods,jobs,events`"


def check(look: Snapshot) -> Iterator[Finding]:
    """Every cluster that runs KAI, or is to."""
    for cluster in look.with_kai:
        release = cluster.kai
        if release is not None and "deployments" not in cluster.unreadable:
            yield from _parts(cluster, release)
            yield from _conditions(cluster, release)
            yield from _version(cluster, release)
            yield from _helm(cluster)


def _parts(cluster: ClusterState, release: KaiRelease) -> Iterator[Finding]:
    there = {name_of(item): item for item in cluster.within("deployments", KAI_NAMESPACE)}
    look = cluster.filled_in(_LOOK)
    if not there:
        yield cluster.broken(
            NAME, f"KAI {release.version}", "it is not installed: nothing is there", cluster.update
        )
        return
    absent = [name for name in release.deployments if name not in there]
    scaled = [name for name in release.deployments if _is_zero(there.get(name))]
    if absent and release.needs_cluster_policy_crd and not cluster.all("clusterpolicycrd"):
        yield cluster.broken(
            NAME,
            f"deployments {', '.join(absent)}",
            "they are not there: this operator waits for the CRD clusterpolicies.nvidia.com,"
            " and makes nothing before",
            f"{cluster.update}, which declares it",
        )
    elif absent:
        names = ", ".join(absent)
        yield cluster.broken(
            NAME, f"deployments {names}", "they are not there", made_again(cluster)
        )
    for name in scaled:
        scale = f"`{cluster.kubectl} -n {KAI_NAMESPACE} scale deployment {name} --replicas=1`"
        yield cluster.broken(NAME, f"deployment {name}", "it is scaled to 0", scale)
    for name in release.deployments:
        if name in there and name not in scaled and not rolled_out(there[name]):
            yield cluster.broken(NAME, f"deployment {name}", _why(cluster, there[name]), look)
    yield from _pending_jobs(cluster)
    if not absent and all(rolled_out(there[name]) for name in release.deployments):
        yield cluster.well(NAME, f"{len(release.deployments)} parts of KAI")


def made_again(cluster: ClusterState) -> str:
    """Pulumi and Helm know the release and not what has become of its objects: an update of the
    stack leaves it alone. What the operator makes, it makes again by itself.
    """
    if not cluster.all("releases"):
        return cluster.update
    at = f"-n {KAI_NAMESPACE}"
    return (
        f"make them again as the release has them: `{cluster.helm} {at} get manifest kai-scheduler"
        f" | {cluster.kubectl} {at} apply -f -`"
    )


def _is_zero(item: Object | None) -> bool:
    return item is not None and spec(item).get("replicas", 1) == 0


def rolled_out(item: Object) -> bool:
    """Whether all the pods that a deployment wants are there and serve."""
    wanted = spec(item).get("replicas", 1)
    now = status(item)
    return bool(
        now.get("observedGeneration", 0) >= item["metadata"].get("generation", 0)
        and now.get("updatedReplicas", 0) >= wanted
        and now.get("availableReplicas", 0) >= wanted
        and wanted > 0
    )


def _why(cluster: ClusterState, item: Object) -> str:
    selector = (spec(item).get("selector") or {}).get("matchLabels") or {}
    for pod in cluster.within("pods", KAI_NAMESPACE):
        if not all(labels_of(pod).get(key) == value for key, value in selector.items()):
            continue
        scheduled = condition(pod, "PodScheduled")
        if scheduled.get("status") == "False":
            return f"its pod has no node: {scheduled.get('message', '')}"
        for container in status(pod).get("containerStatuses") or []:
            waiting = (container.get("state") or {}).get("waiting") or {}
            ended = (container.get("lastState") or {}).get("terminated") or {}
            said = str(ended.get("message") or waiting.get("message") or "")
            known = meaning(said)
            if known is not None:
                return known.cause
            if waiting.get("reason"):
                return f"its container waits: {waiting['reason']} {said}".strip()
    return "it is not rolled out"


def _pending_jobs(cluster: ClusterState) -> Iterator[Finding]:
    for pod in cluster.within("pods", KAI_NAMESPACE):
        job = labels_of(pod).get("job-name")
        if job and status(pod).get("phase") == "Pending" and not spec(pod).get("nodeName"):
            yield cluster.broken(
                NAME,
                f"job {job}",
                "its pod is Pending, and Helm waits for it: no node has room",
                f"free some cpu on a node that KAI may use, then {cluster.update}",
            )


def _conditions(cluster: ClusterState, release: KaiRelease) -> Iterator[Finding]:
    for what in release.ready_conditions:
        kind, name = what.split("/")
        item = cluster.named(kind.partition(".")[0], name)
        if item is None:
            yield cluster.broken(NAME, what, "it is not there", made_again(cluster))
        elif not is_true(item, "Ready"):
            said = condition(item, "Ready").get("message") or "its operator has not said Ready"
            yield cluster.broken(NAME, what, str(said), cluster.filled_in(_LOOK))


def _version(cluster: ClusterState, release: KaiRelease) -> Iterator[Finding]:
    tags = {
        name_of(item): tag
        for item in cluster.within("deployments", KAI_NAMESPACE)
        if name_of(item) in release.deployments and (tag := image_tag(item))
    }
    other = {name: tag for name, tag in tags.items() if tag != release.version}
    if other:
        runs = ", ".join(f"{name} {tag}" for name, tag in sorted(other.items())[:3])
        yield cluster.broken(
            VERSION,
            f"KAI {release.version}",
            f"{len(other)} of {len(tags)} parts are of another version: {runs}",
            f"{cluster.update}, or write {cluster.wanted.key}.version: {sorted(other.values())[0]}",
        )
    elif tags:
        yield cluster.well(VERSION, f"KAI {release.version}")


def _helm(cluster: ClusterState) -> Iterator[Finding]:
    """Helm keeps a Secret per revision; the last one that did not end says so in a label."""
    releases = cluster.all("releases")
    if not releases:
        return
    last = max(releases, key=lambda item: int(labels_of(item).get("version", 0)))
    state = labels_of(last).get("status", "")
    if state not in ("deployed", ""):
        yield cluster.broken(
            NAME,
            "Helm release kai-scheduler",
            f"its last revision {labels_of(last).get('version')} is {state}",
            f"{cluster.update}; it goes on from there",
        )
