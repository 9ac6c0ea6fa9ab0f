"""KAI: its parts, webhooks, queues and shards, and what another KAI left."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from kai_fleet.cluster.kube.objects import Killed, KubeObject, in_pool, seconds_since
from kai_fleet.cluster.provider.queues import DEFAULT_QUEUES, TREE
from kai_fleet.releases.keys import DEFAULT_SHARD, KAI_NAMESPACE, NODE_POOL
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.causes import Fault, Why, fault, going, reason
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_cli.doctor.usage import queue_of
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_policies.model.queues import QueueIndex

# What an update makes, or what it makes makes; "*" is in rules of all kinds.
_MADE: Final = frozenset(
    {"*", "*/*", "namespaces", "pods", "services", "secrets", "configmaps", "serviceaccounts"}
    | {"persistentvolumeclaims", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs"}
    | {"resourcequotas", "networkpolicies", "roles", "rolebindings", "clusterroles"}
    | {"clusterrolebindings", "customresourcedefinitions", "runtimeclasses", "priorityclasses"}
)
_DAY: Final = 86400.0  # seconds
_WEBHOOKS: Final = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")


def recreate_part(cluster: Cluster) -> str:
    """The command that creates a part of KAI again."""
    apply = cluster.recreate_release("kai-scheduler", KAI_NAMESPACE)
    return apply if cluster.all("releases") else cluster.update


def parts(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """The deployments of its version."""
    release = cluster.kai
    deployments = {item.name: item for item in cluster.within("deployments", KAI_NAMESPACE)}
    if release is None or not deployments:
        yield fault("kai-absent", cluster, release.version if release else "")
        return
    again = recreate_part(cluster)
    for name in release.deployments:
        item = deployments.get(name)
        if item is None:
            yield fault("part-absent", cluster, name, again=again)
        elif item.spec.get("replicas", 1) == 0:
            yield fault("part-scaled-to-0", cluster, name)
        elif not item.rolled_out:
            why = _why(cluster, item)
            if why is not None:
                values = {"cause": why.cause, "effect_of": why.effect_of}
                yield fault("part-not-ready", cluster, name, **values)


def _why(cluster: Cluster, item: KubeObject) -> Why | None:
    """Why the pods of a part are not ready; None where `killed` says it."""
    if unread := cluster.unread("pods"):
        return Why(f"why is not known: {unread}", "")
    pods = _pods_of(cluster, item)
    if killed_lately(cluster, pods):
        return None
    return reason(cluster, *pods) if pods else Why("it has no pod", "")


def _pods_of(cluster: Cluster, part: KubeObject) -> list[KubeObject]:
    selector = value_at(part.spec, "selector.matchLabels") or {}
    every = cluster.within("pods", KAI_NAMESPACE)
    return [pod for pod in every if in_pool(pod.labels, selector)]


def killed(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """The deployments of its version that were killed for memory, also where they run again."""
    release = cluster.kai
    if release is None:
        return
    for item in cluster.within("deployments", KAI_NAMESPACE):
        declared = item.name in release.deployments and item.spec.get("replicas", 1) > 0
        last = killed_lately(cluster, _pods_of(cluster, item)) if declared else None
        if last is not None:
            key = f"{cluster.desired.key}.values.{release.resources_key(item.name)}"
            level = "advisory" if item.rolled_out else "mandatory"
            values = {"cause": last.sentence, "path": key.removesuffix("."), "level": level}
            yield fault("killed-for-memory", cluster, item.name, kind="Deployment", **values)


def killed_lately(cluster: Cluster, pods: Iterable[KubeObject]) -> Killed | None:
    """The container of some pods that was killed for memory within a day; None if none was."""
    for pod in pods:
        for each in pod.killed_for_memory:
            if seconds_since(each.ended, cluster.now) < _DAY:
                return each
    return None


def conditions(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """What KAI's operator reports, where it is installed."""
    release = cluster.kai
    if release is None or not any(cluster.within("deployments", KAI_NAMESPACE)):
        return
    for what in release.ready_conditions:
        kind, name = what.split("/")
        item = cluster.named(kind.partition(".")[0], name)
        if item is None:
            yield fault("condition-absent", cluster, what, again=recreate_part(cluster))
        elif not item.is_true("Ready"):
            message = item.condition("Ready").get("message") or "its operator has not said Ready"
            yield fault("condition-not-ready", cluster, what, cause=message)


def hooks(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Helm hooks that wait."""
    for pod in cluster.within("pods", KAI_NAMESPACE):
        job = pod.labels.get("job-name")
        if job and pod.phase == "Pending" and not pod.spec.get("nodeName"):
            yield fault("hook-waits", cluster, job)


def webhooks(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Webhooks without an answer: what they judge is refused. Those of others are named too, where
    they judge what a stack makes.
    """
    answering = {
        (piece.namespace, piece.labels.get("kubernetes.io/service-name"))
        for piece in cluster.all("endpointslices")
        for endpoint in piece.get("endpoints") or []
        if (endpoint.get("conditions") or {}).get("ready", True)
    }
    hooks = [
        (plural, item.name, hook)
        for plural in _WEBHOOKS
        for item in cluster.all(plural)
        for hook in item.get("webhooks") or []
    ]
    for plural, name, hook in hooks:
        space = value_at(hook, "clientConfig.service.namespace")
        service = str(value_at(hook, "clientConfig.service.name"))
        never = any(each.get("expression") == "false" for each in hook.get("matchConditions") or [])
        if not space or never or hook.get("failurePolicy", "Fail") != "Fail":
            continue
        rules = hook.get("rules") or []
        kinds = {str(kind) for rule in rules for kind in rule.get("resources") or []}
        of_kai = space == KAI_NAMESPACE
        if not of_kai and kinds.isdisjoint(_MADE):
            continue
        row = ""
        if cluster.named("services", service, space) is None:
            row = "webhook-without-service" if of_kai else "webhook-of-others"
        elif (space, service) not in answering:
            row = "webhook-unanswered" if of_kai else "webhook-of-others"
        elif of_kai and not value_at(hook, "clientConfig.caBundle"):
            row = "webhook-without-authority"
        if row:
            refused = " and ".join(sorted(kinds)) or "requests"
            values = {"service": service, "plural": plural.removesuffix("s"), "refused": refused}
            yield fault(row, cluster, name, space=space, hook=hook.get("name"), **values)


def undeclared(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """A KAI that nobody declares."""
    if cluster.kai is not None or not cluster.desired.declared:
        return
    names = [item.name for item in cluster.within("deployments", KAI_NAMESPACE)]
    if names:
        parts = ", ".join(sorted(names)[:3])
        if cluster.name == HOST:
            yield fault("kai-of-others", cluster, cluster.version or "", parts=parts)
            return
        remove = _removal(cluster, names)
        yield fault("kai-undeclared", cluster, cluster.version or "", parts=parts, remove=remove)


def _removal(cluster: Cluster, deployments: Sequence[str]) -> str:
    """The commands that remove a KAI."""
    if not cluster.all("releases"):
        names = " ".join(deployments)
        return f"`{cluster.kubectl} -n {KAI_NAMESPACE} delete deployment {names}`"
    remove = f"`{cluster.helm} -n {KAI_NAMESPACE} uninstall kai-scheduler`"
    # Its operator removes its parts with these, and goes with the release: so before it.
    kinds = {"configs": "kai-config", "schedulingshards": DEFAULT_SHARD}
    owners = [f"{kind}/{name}" for kind, name in kinds.items() if cluster.named(kind, name)]
    return f"`{cluster.kubectl} delete {' '.join(owners)}`, then {remove}" if owners else remove


def schedulers(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Schedulers besides those that are declared, and what makes them."""
    release = cluster.kai
    if release is None:
        return
    shards = [item.name for item in cluster.all("schedulingshards")]
    for name in shards if not release.has_shards else ():
        yield fault("shard-of-newer-kai", cluster, name, version=release.version)
    for name in (item.name for item in cluster.schedulers):
        if name != "scheduler" and name.removeprefix("kai-scheduler-") not in shards:
            yield fault("scheduler-without-shard", cluster, name)


def queues(cluster: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """KAI schedules from queues only, and drops those that hang below none."""
    desired, index = cluster.desired, QueueIndex(map(queue_of, cluster.all("queues")))
    if not index.queues and not desired.queues:
        yield fault("without-queues", cluster, cluster.name)
    levels, known = index.levels, {*desired.queue_specs}
    for queue in index.queues:
        if queue.name not in levels:
            yield fault("queue-dropped", cluster, queue.name, parent=queue.parent)
    for grant in desired.grants:  # a team stack makes its own below it
        parent = grant.parent_queue
        below = index.below(parent) if parent in index.by_name else ()
        known |= {name for name in below if f"{name}-".startswith(f"{grant.name}-")}
    teams = (*snapshot.teams, *snapshot.settings.team_stacks)
    trees = {"host-queues", *(f"{team}-queues" for team in teams)}
    # KAI does not delete a queue that has children.
    for name in sorted(index.by_name, key=lambda name: (-levels.get(name, 0), name)):
        if desired.declared and name not in known:
            yield _undeclared_queue(cluster, name, trees)


def _undeclared_queue(cluster: Cluster, name: str, trees: Collection[str]) -> Fault:
    """A queue that the file does not have: one that goes, is of this stack, or of others.

    `trees` are those that this stack may have.
    """
    item = cluster.named("queues", name)
    if item is not None and item.is_being_deleted:
        return going(cluster, item, "queue", "queues", declared=False)
    tree = None if item is None else item.labels.get(TREE)
    if tree == f"{cluster.name}-queues":
        return fault("queue-left", cluster, name)
    if tree is not None and tree not in trees:
        return fault("queue-of-others", cluster, name, tree=tree)
    return fault("queue-by-chart" if name in DEFAULT_QUEUES else "queue-by-hand", cluster, name)


def shards(cluster: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Shards and topologies, and nodes with their labels."""
    desired, team = cluster.desired, snapshot.settings.teams.get(cluster.name)
    labels = {pair for node in cluster.all("nodes") for pair in node.labels.items()}
    for shard in () if team and team.autoscaled else desired.scheduler.shards:
        if shard != DEFAULT_SHARD and (NODE_POOL, shard) not in labels:
            host = snapshot.host.kubectl
            yield fault("shard-without-nodes", cluster, shard, shard=shard, host=host)
    for name, levels in desired.scheduler.topologies.items():
        for level in set(levels) - {key for key, _ in labels}:
            yield fault("topology-without-nodes", cluster, name, label=level)
