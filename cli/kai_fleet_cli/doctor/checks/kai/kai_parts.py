"""KAI's parts: there, rolled out, of the wanted version, and Ready in its own words (K3, K16)."""

from kai_fleet.kube.objects import KubeObject
from kai_fleet.releases import KaiRelease
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.values import value_at
from kai_fleet.wording import agreeing, counted
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot

VERSION = "kai-version"


def check(snapshot: Snapshot) -> Findings:
    """Every cluster that runs KAI, or is to."""
    for cluster in snapshot.with_kai:
        release = cluster.kai
        if release is not None and "deployments" not in cluster.unreadable:
            yield from _parts(cluster, release)
            yield from _conditions(cluster, release)
            yield from _version(cluster, release)
            yield from _helm(cluster)


def make_again(cluster: ClusterState) -> str:
    """Pulumi and Helm know the release and not what has become of its objects: an update of the
    stack leaves it alone. What the operator makes, it makes again by itself.
    """
    if not cluster.all("releases"):
        return cluster.update
    apply = cluster.apply_release("kai-scheduler", KAI_NAMESPACE)
    return f"make them again as the release has them: {apply}"


def _parts(cluster: ClusterState, release: KaiRelease) -> Findings:
    there = {item.name: item for item in cluster.within("deployments", KAI_NAMESPACE)}
    if not there:
        yield cluster.broken(f"KAI {release.version}", "it is not installed: nothing is there")
        return
    absent = [name for name in release.deployments if name not in there]
    subject = f"deployments {', '.join(absent)}"
    if absent and release.needs_cluster_policy_crd and not cluster.all("clusterpolicycrd"):
        yield cluster.broken(
            subject,
            "they are not there: this operator waits for the CRD clusterpolicies.nvidia.com,"
            " and makes nothing before",
            f"{cluster.update}, which declares it",
        )
    elif absent:
        yield cluster.broken(subject, "they are not there", make_again(cluster))
    parts = {name: there[name] for name in release.deployments if name in there}
    waiting = {name: item for name, item in parts.items() if not item.rolled_out}
    for name, item in waiting.items():
        if item.spec.get("replicas", 1) == 0:
            fix = f"`{cluster.kubectl} -n {KAI_NAMESPACE} scale deployment {name} --replicas=1`"
            yield cluster.broken(f"deployment {name}", "it is scaled to 0", fix)
        else:
            yield cluster.broken(f"deployment {name}", _why(cluster, item), _look(cluster))
    yield from _pending_jobs(cluster)
    if not absent and not waiting:
        yield cluster.well(f"{counted(len(release.deployments), 'part')} of KAI")


def _why(cluster: ClusterState, item: KubeObject) -> str:
    selector = value_at(item.spec, "selector.matchLabels") or {}
    for pod in cluster.within("pods", KAI_NAMESPACE):
        if not all(pod.labels.get(key) == value for key, value in selector.items()):
            continue
        scheduled = pod.condition("PodScheduled")
        if scheduled.get("status") == "False":
            return f"its pod has no node: {scheduled.get('message', '')}"
        if (known := cluster.explain(*pod.container_messages)) is not None:
            return known.cause
        for container in pod.status.get("containerStatuses") or []:
            ended = value_at(container, "lastState.terminated.message")
            message = ended or value_at(container, "state.waiting.message") or ""
            if reason := value_at(container, "state.waiting.reason"):
                return f"its container waits: {reason} {message}".strip()
    return "it is not rolled out"


def _look(cluster: ClusterState) -> str:
    return f"look with: `{cluster.kubectl} -n {KAI_NAMESPACE} get pods,jobs,events`"


def _pending_jobs(cluster: ClusterState) -> Findings:
    for pod in cluster.within("pods", KAI_NAMESPACE):
        job = pod.labels.get("job-name")
        if job and pod.phase == "Pending" and not pod.spec.get("nodeName"):
            yield cluster.broken(
                f"job {job}",
                "its pod is Pending, and Helm waits for it: no node has room",
                f"free some cpu on a node that KAI may use, then {cluster.update}",
            )


def _conditions(cluster: ClusterState, release: KaiRelease) -> Findings:
    for what in release.ready_conditions:
        kind, name = what.split("/")
        item = cluster.named(kind.partition(".")[0], name)
        if item is None:
            yield cluster.broken(what, "it is not there", make_again(cluster))
        elif not item.is_true("Ready"):
            message = item.condition("Ready").get("message") or "its operator has not said Ready"
            yield cluster.broken(what, str(message), _look(cluster))


def _version(cluster: ClusterState, release: KaiRelease) -> Findings:
    tags = {
        item.name: tag
        for item in cluster.within("deployments", KAI_NAMESPACE)
        if item.name in release.deployments and (tag := item.image_tag)
    }
    others = sorted((name, tag) for name, tag in tags.items() if tag != release.version)
    if others:
        runs = ", ".join(f"{name} {tag}" for name, tag in others[:3])
        tag = min(tag for _, tag in others)
        yield cluster.broken(
            f"KAI {release.version}",
            f"{len(others)} of {counted(len(tags), 'part')} {agreeing(len(others), 'is')} of"
            f" another version: {runs}",
            f"{cluster.update}, or write {cluster.wanted.key}.version: {tag}",
            check=VERSION,
        )
    elif tags:
        yield cluster.well(f"KAI {release.version}", check=VERSION)


def _helm(cluster: ClusterState) -> Findings:
    """Helm keeps a Secret per revision; the last one that did not end says so in a label."""
    revisions = sorted(
        (int(item.labels.get("version", 0)), item.labels.get("status", ""))
        for item in cluster.all("releases")
    )
    for revision, state in revisions[-1:]:
        if state not in ("deployed", ""):
            yield cluster.broken(
                "Helm release kai-scheduler",
                f"its last revision {revision} is {state}",
                f"{cluster.update}; it goes on from there",
            )
