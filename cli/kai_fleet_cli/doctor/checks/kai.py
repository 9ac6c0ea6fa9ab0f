"""Checks of KAI: its parts, and what another KAI left behind.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object. `parts`, `killed` and `conditions` run by `in_kai_clusters` alone,
where `Cluster.kai` is never None.
"""

from collections.abc import Iterable, Sequence

from kai_fleet.cluster.kube.objects import Killed, KubeObject
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.faults import NAMES, Affected, Fault, Faults, Why
from kai_fleet_cli.doctor.messages import reason
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_policies.finding import Command, Fix, Level
from kai_fleet_policies.model.cluster import HOST
from kai_usage.keys import KAI_NAMESPACE
from kai_usage.objects import has_labels
from kai_usage.times import seconds_since

_DAY_SECONDS = 86400.0
_RELEASE = "kai-scheduler"  # KAI's Helm release


def recreate_part(cluster: Cluster) -> Fix:
    """Return a fix that creates a missing part of KAI again: from its Helm release if there is one,
    else by an update. Raises UnreadError if releases were not read.
    """
    if cluster.all("releases"):
        return cluster.recreate_release(_RELEASE, KAI_NAMESPACE)
    return (cluster.update_command,)


def parts(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield Deployments of the cluster's KAI that are absent, scaled to 0 or not rolled out.

    One fault for all of KAI if it has no Deployment. A Deployment that is not rolled out and that
    `killed` reports is left out.
    """
    release = cluster.kai
    assert release
    deployments = {item.name: item for item in cluster.within("deployments", KAI_NAMESPACE)}
    if not deployments:
        subject = Affected(cluster, "KAI", release.version)
        yield subject.broken("is not installed", cluster.update_command)
        return
    recreation = recreate_part(cluster)
    for name in release.deployments:
        subject = Affected(cluster, "Deployment", name)
        deployment = deployments.get(name)
        if deployment is None:
            yield subject.broken("is not there", *recreation)
        elif deployment.spec.get("replicas", 1) == 0:
            scale = f"-n {KAI_NAMESPACE} scale deployment {NAMES} --replicas=1"
            yield subject.broken("is scaled to 0", cluster.command(scale))
        elif not deployment.rolled_out:
            why = _why_not_ready(cluster, deployment)
            if why is not None:
                yield subject.broken(
                    f"is not rolled out: {why.cause}",
                    "look with: ",
                    _look(cluster),
                    effect_of=why.effect_of,
                )


def _look(cluster: Cluster) -> Command:
    """Return the command that shows what becomes of KAI's parts."""
    return cluster.command(f"-n {KAI_NAMESPACE} get pods,jobs,events")


def _why_not_ready(cluster: Cluster, deployment: KubeObject) -> Why | None:
    """Return why the pods of a part are not Ready; None if `killed` reports it.

    If pods were not read in all namespaces, the cause says that.
    """
    if unread := cluster.unread("pods"):
        return Why(f"why is not known: {unread}")
    pods = _pods_of(cluster, deployment)
    if killed_lately(cluster, pods):
        return None
    return reason(cluster, *pods) if pods else Why("it has no pod")


def _pods_of(cluster: Cluster, deployment: KubeObject) -> list[KubeObject]:
    """Return the pods that a Deployment selects; all in its namespace if it has no selector."""
    selector = value_at(deployment.spec, "selector.matchLabels") or {}
    pods = cluster.within("pods", KAI_NAMESPACE)
    return [pod for pod in pods if has_labels(pod, selector)]


def killed(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield Deployments of the cluster's KAI with a container that was killed for memory within a
    day: a warning if they are rolled out, else broken. Not those scaled to 0.
    """
    release = cluster.kai
    assert release
    for deployment in cluster.within("deployments", KAI_NAMESPACE):
        wanted = deployment.spec.get("replicas", 1) > 0
        if deployment.name not in release.deployments or not wanted:
            continue
        last = killed_lately(cluster, _pods_of(cluster, deployment))
        if last is None:
            continue
        path = f"{cluster.desired.key}.values.{release.resources_key(deployment.name)}"
        yield killed_for_memory(
            Affected(cluster, "Deployment", deployment.name),
            last,
            path.removesuffix("."),
            runs_again=deployment.rolled_out,
        )


def killed_for_memory(subject: Affected, last: Killed, path: str, *, runs_again: bool) -> Fault:
    """Return the fault of an object with this killed container: a warning if it runs again.

    `path` is the key of the stack file that has its `limits`.
    """
    return subject.at_level(
        Level.ADVISORY if runs_again else Level.MANDATORY,
        f"its {last.sentence}",
        f"raise limits.memory at {path}, then ",
        subject.cluster.apply_command,
    )


def killed_lately(cluster: Cluster, pods: Iterable[KubeObject]) -> Killed | None:
    """Return the first container that was killed for memory within a day; None without one.

    A kill whose time cannot be read counts as within a day.
    """
    for pod in pods:
        for container in pod.killed_for_memory:
            if seconds_since(container.ended_at, cluster.now) < _DAY_SECONDS:
                return container
    return None


def conditions(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield objects that KAI's operator has to report as Ready and does not, or that are absent.
    The release table names them, as `RESOURCE.GROUP/NAME`.

    Nothing for a cluster without KAI's Deployments, which `parts` reports.
    """
    release = cluster.kai
    assert release
    if not any(cluster.within("deployments", KAI_NAMESPACE)):
        return
    for resource_and_name in release.ready_conditions:
        resource, name = resource_and_name.split("/")
        item = cluster.find(resource.partition(".")[0], name)
        subject = Affected(cluster, "KAI's", resource_and_name)
        if item is None:
            yield subject.broken("is not there", *recreate_part(cluster))
        elif not item.is_true("Ready"):
            message = item.condition("Ready").get("message") or "its operator has not said Ready"
            yield subject.broken(f"is not Ready: {message}", "look with: ", _look(cluster))


def hooks(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield Jobs in KAI's namespace, taken for Helm hooks, whose pod is Pending without a node."""
    for pod in cluster.within("pods", KAI_NAMESPACE):
        job = pod.labels.get("job-name")
        if job and pod.phase == "Pending" and not pod.spec.get("nodeName"):
            yield Affected(cluster, "Job", job).broken(
                "its pod has no node, and Helm waits for it",
                "free some cpu on a node that KAI may use, then ",
                cluster.update_command,
            )


def undeclared(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield a KAI that runs in a cluster of this stack without being declared.

    Any Deployment in its namespace counts. Nothing if the stack declares a KAI of the release
    table, nor in a cluster that another stack declares. On the host it is a warning: it may belong
    to others, so the fix does not remove it. In a vCluster it is broken.
    """
    if cluster.kai is not None or not cluster.desired.declared:
        return
    names = [deployment.name for deployment in cluster.within("deployments", KAI_NAMESPACE)]
    if not names:
        return
    parts = ", ".join(sorted(names)[:3])
    subject = Affected(cluster, "KAI", cluster.version or "")
    if cluster.name == HOST:
        yield subject.warning(
            f"runs on the host ({parts}), and the stack declares none there: another program has"
            " it, or somebody installed it",
            "leave it to whoever has it; one KAI schedules for a whole host",
        )
        return
    yield subject.broken(
        f"runs here ({parts}), and the stack declares none",
        f"declare it at {cluster.desired.key}, or remove it: ",
        *_removal(cluster, names),
    )


def _removal(cluster: Cluster, deployments: Sequence[str]) -> Fix:
    """Return the commands that remove a KAI: its release, or without one its Deployments.

    Before the release go the objects whose parts KAI's operator removes. `deployments` are the
    Deployments' names.
    """
    if not cluster.all("releases"):
        names = " ".join(deployments)
        return (cluster.command(f"-n {KAI_NAMESPACE} delete deployment {names}"),)
    uninstall = Command(f"{cluster.helm} -n {KAI_NAMESPACE} uninstall {_RELEASE}")
    # When these are deleted KAI's operator removes its parts, so before the operator itself.
    made = (("configs", "kai-config"), ("schedulingshards", DEFAULT_SHARD))
    owners = [f"{resource}/{name}" for resource, name in made if cluster.find(resource, name)]
    if not owners:
        return (uninstall,)
    return (cluster.command(f"delete {' '.join(owners)}"), ", then ", uninstall)


def schedulers(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield schedulers whose SchedulingShard is gone, and all shards if KAI's release has none.

    The chart's own scheduler has no shard. Nothing without a KAI of the release table.
    """
    release = cluster.kai
    if release is None:
        return
    shards = [shard.name for shard in cluster.all("schedulingshards")]
    if not release.has_shards:
        for name in shards:
            yield Affected(cluster, "SchedulingShard", name).broken(
                f"a newer KAI left it, and the operator of {release.version} makes a second"
                " scheduler of it",
                cluster.command(f"delete schedulingshard {NAMES}"),
            )
    for scheduler in cluster.schedulers:
        shard = scheduler.name.removeprefix("kai-scheduler-")
        if scheduler.name != "scheduler" and shard not in shards:
            yield Affected(cluster, "Deployment", scheduler.name).broken(
                "its SchedulingShard is gone: it schedules beside the others",
                cluster.command(f"-n {KAI_NAMESPACE} delete deployment {NAMES}"),
            )
