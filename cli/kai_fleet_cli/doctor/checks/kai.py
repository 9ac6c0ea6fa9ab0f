"""Checks of KAI: its parts, webhooks, queues and shards, and what another KAI left behind."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from kai_fleet.cluster.kube.objects import Killed, KubeObject, in_pool
from kai_fleet.cluster.provider.queues import TREE
from kai_fleet.releases.keys import CHART_QUEUES, DEFAULT_SHARD, NODE_POOL
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.causes import Fault, Faults, Why, being_deleted, fault, reason
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_policies.model.queues import QueueIndex
from kai_usage.keys import KAI_NAMESPACE
from kai_usage.times import seconds_since

# Resources that an update creates, or that controllers create for it. "*" matches all resources.
_CREATED_RESOURCES: Final = frozenset(
    {
        "*",
        "*/*",
        "clusterrolebindings",
        "clusterroles",
        "configmaps",
        "customresourcedefinitions",
        "daemonsets",
        "deployments",
        "jobs",
        "namespaces",
        "networkpolicies",
        "persistentvolumeclaims",
        "pods",
        "priorityclasses",
        "replicasets",
        "resourcequotas",
        "rolebindings",
        "roles",
        "runtimeclasses",
        "secrets",
        "serviceaccounts",
        "services",
        "statefulsets",
    }
)
_DAY_SECONDS: Final = 86400.0
_WEBHOOK_CONFIGURATIONS: Final = (
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
)
_RELEASE: Final = "kai-scheduler"  # KAI's Helm release
_NamespaceAndName: TypeAlias = tuple[str | None, str | None]


def recreate_part(cluster: Cluster) -> str:
    """Return a fix that creates a missing part of KAI again."""
    if cluster.all("releases"):
        return cluster.recreate_release(_RELEASE, KAI_NAMESPACE)
    return cluster.update


def parts(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield Deployments of the cluster's KAI that are absent, scaled to 0 or not rolled out.

    One fault for all of KAI if it has no Deployment, or its version is unknown.
    """
    release = cluster.kai
    deployments = {item.name: item for item in cluster.within("deployments", KAI_NAMESPACE)}
    if release is None or not deployments:
        yield fault("kai-absent", cluster, release.version if release else "")
        return
    again = recreate_part(cluster)
    for name in release.deployments:
        deployment = deployments.get(name)
        if deployment is None:
            yield fault("part-absent", cluster, name, again=again)
        elif deployment.spec.get("replicas", 1) == 0:
            yield fault("part-scaled-to-0", cluster, name)
        elif not deployment.rolled_out:
            yield from _not_rolled_out(cluster, deployment)


def _not_rolled_out(cluster: Cluster, deployment: KubeObject) -> Faults:
    why = _why_not_ready(cluster, deployment)
    if why is not None:
        yield fault(
            "part-not-ready",
            cluster,
            deployment.name,
            cause=why.cause,
            effect_of=why.effect_of,
        )


def _why_not_ready(cluster: Cluster, deployment: KubeObject) -> Why | None:
    """Return why the pods of a part are not Ready; None if check `killed` reports it."""
    if unread := cluster.unread("pods"):
        return Why(f"why is not known: {unread}", "")
    pods = _pods_of(cluster, deployment)
    if killed_lately(cluster, pods):
        return None
    return reason(cluster, *pods) if pods else Why("it has no pod", "")


def _pods_of(cluster: Cluster, deployment: KubeObject) -> list[KubeObject]:
    selector = value_at(deployment.spec, "selector.matchLabels") or {}
    pods = cluster.within("pods", KAI_NAMESPACE)
    return [pod for pod in pods if in_pool(pod.labels, selector)]


def killed(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield Deployments of the cluster's KAI with a container that was killed for memory within a
    day: a warning if they run again.
    """
    release = cluster.kai
    if release is None:
        return
    for deployment in cluster.within("deployments", KAI_NAMESPACE):
        wanted = deployment.spec.get("replicas", 1) > 0
        if deployment.name not in release.deployments or not wanted:
            continue
        last = killed_lately(cluster, _pods_of(cluster, deployment))
        if last is None:
            continue
        path = f"{cluster.desired.key}.values.{release.resources_key(deployment.name)}"
        yield fault(
            "killed-for-memory",
            cluster,
            deployment.name,
            kind="Deployment",
            cause=last.sentence,
            path=path.removesuffix("."),
            level="advisory" if deployment.rolled_out else "mandatory",
        )


def killed_lately(cluster: Cluster, pods: Iterable[KubeObject]) -> Killed | None:
    """Return the first container that was killed for memory within a day; None without one."""
    for pod in pods:
        for container in pod.killed_for_memory:
            if seconds_since(container.ended, cluster.now) < _DAY_SECONDS:
                return container
    return None


def conditions(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield objects that KAI's operator has to report as Ready and does not, or that are absent.

    Nothing for a cluster without KAI's Deployments, which `parts` reports.
    """
    release = cluster.kai
    if release is None or not any(cluster.within("deployments", KAI_NAMESPACE)):
        return
    for resource_and_name in release.ready_conditions:
        resource, name = resource_and_name.split("/")
        item = cluster.named(resource.partition(".")[0], name)
        if item is None:
            again = recreate_part(cluster)
            yield fault("condition-absent", cluster, resource_and_name, again=again)
        elif not item.is_true("Ready"):
            message = item.condition("Ready").get("message") or "its operator has not said Ready"
            yield fault("condition-not-ready", cluster, resource_and_name, cause=message)


def hooks(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield Jobs of Helm hooks whose pod has no node."""
    for pod in cluster.within("pods", KAI_NAMESPACE):
        job = pod.labels.get("job-name")
        if job and pod.phase == "Pending" and not pod.spec.get("nodeName"):
            yield fault("hook-waits", cluster, job)


class _Webhook(NamedTuple):
    """A webhook of a configuration, with its fields as in the API."""

    resource: str
    configuration: str
    fields: Mapping[str, Any]

    @property
    def namespace(self) -> str | None:
        """Namespace of its Service; None if it calls a URL."""
        namespace: str | None = value_at(self.fields, "clientConfig.service.namespace")
        return namespace

    @property
    def service(self) -> str:
        """Name of its Service."""
        return str(value_at(self.fields, "clientConfig.service.name"))

    @property
    def judged_resources(self) -> set[str]:
        """The resources that its rules match."""
        resources = set[str]()
        for rule in self.fields.get("rules") or []:
            resources.update(map(str, rule.get("resources") or []))
        return resources

    @property
    def may_refuse(self) -> bool:
        """Whether requests are refused if its Service does not answer."""
        conditions = self.fields.get("matchConditions") or []
        if any(condition.get("expression") == "false" for condition in conditions):
            return False
        return bool(self.namespace and self.fields.get("failurePolicy", "Fail") == "Fail")


def webhooks(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield webhooks that cannot answer, so that what they judge is refused.

    Those of others than KAI only if they judge resources that an update creates.
    """
    answering = _answering_services(cluster)
    for webhook in _webhooks(cluster):
        cause_id = _webhook_cause(cluster, webhook, answering)
        if cause_id:
            yield fault(
                cause_id,
                cluster,
                webhook.configuration,
                space=webhook.namespace,
                hook=webhook.fields.get("name"),
                service=webhook.service,
                plural=webhook.resource.removesuffix("s"),
                refused=" and ".join(sorted(webhook.judged_resources)) or "requests",
            )


def _webhooks(cluster: Cluster) -> list[_Webhook]:
    webhooks = list[_Webhook]()
    for resource in _WEBHOOK_CONFIGURATIONS:
        for configuration in cluster.all(resource):
            for fields in configuration.get("webhooks") or []:
                webhooks.append(_Webhook(resource, configuration.name, fields))
    return webhooks


def _answering_services(cluster: Cluster) -> set[_NamespaceAndName]:
    """Return namespace and name of each Service with a ready endpoint."""
    services = set[_NamespaceAndName]()
    for piece in cluster.all("endpointslices"):
        endpoints = piece.get("endpoints") or []
        if any(map(_is_endpoint_ready, endpoints)):
            services.add((piece.namespace, piece.labels.get("kubernetes.io/service-name")))
    return services


def _is_endpoint_ready(endpoint: Mapping[str, Any]) -> bool:
    conditions = endpoint.get("conditions") or {}
    return bool(conditions.get("ready", True))


def _webhook_cause(
    cluster: Cluster, webhook: _Webhook, answering: Collection[_NamespaceAndName]
) -> str:
    """Return the id of the cause why a webhook refuses requests; "" if it does not.

    In this order: its Service is absent, has no ready endpoint, or KAI's webhook has no authority.
    """
    if not webhook.may_refuse:
        return ""
    is_kais = webhook.namespace == KAI_NAMESPACE
    if not is_kais and webhook.judged_resources.isdisjoint(_CREATED_RESOURCES):
        return ""
    if cluster.named("services", webhook.service, webhook.namespace) is None:
        return "webhook-without-service" if is_kais else "webhook-of-others"
    if (webhook.namespace, webhook.service) not in answering:
        return "webhook-unanswered" if is_kais else "webhook-of-others"
    if is_kais and not value_at(webhook.fields, "clientConfig.caBundle"):
        return "webhook-without-authority"
    return ""


def undeclared(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield a KAI that runs in a cluster of this stack without being declared.

    On the host it may belong to others, so the fix does not remove it.
    """
    if cluster.kai is not None or not cluster.desired.declared:
        return
    names = [deployment.name for deployment in cluster.within("deployments", KAI_NAMESPACE)]
    if not names:
        return
    parts = ", ".join(sorted(names)[:3])
    version = cluster.version or ""
    if cluster.name == HOST:
        yield fault("kai-of-others", cluster, version, parts=parts)
        return
    yield fault(
        "kai-undeclared",
        cluster,
        version,
        parts=parts,
        remove=_removal(cluster, names),
    )


def _removal(cluster: Cluster, deployments: Sequence[str]) -> str:
    """Return the commands that remove a KAI: its release, or without one its Deployments."""
    if not cluster.all("releases"):
        names = " ".join(deployments)
        return f"`{cluster.kubectl} -n {KAI_NAMESPACE} delete deployment {names}`"
    uninstall = f"`{cluster.helm} -n {KAI_NAMESPACE} uninstall {_RELEASE}`"
    # When these are deleted KAI's operator removes its parts, so before the operator itself.
    owners = list[str]()
    for resource, name in (("configs", "kai-config"), ("schedulingshards", DEFAULT_SHARD)):
        if cluster.named(resource, name):
            owners.append(f"{resource}/{name}")
    if not owners:
        return uninstall
    return f"`{cluster.kubectl} delete {' '.join(owners)}`, then {uninstall}"


def schedulers(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield schedulers besides the declared ones, and shards that an older KAI does not know."""
    release = cluster.kai
    if release is None:
        return
    shards = [shard.name for shard in cluster.all("schedulingshards")]
    if not release.has_shards:
        for name in shards:
            yield fault("shard-of-newer-kai", cluster, name, version=release.version)
    for scheduler in cluster.schedulers:
        shard = scheduler.name.removeprefix("kai-scheduler-")
        if scheduler.name != "scheduler" and shard not in shards:
            yield fault("scheduler-without-shard", cluster, scheduler.name)


def queues(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield a KAI without any queue, queues that it ignores, and queues that are not declared.

    KAI schedules from queues only, and ignores those below a cycle or an absent parent. In a
    cluster that another stack declares no queue counts as undeclared.
    """
    index = QueueIndex(cluster.queues)
    if not index.queues and not cluster.desired.queues:
        yield fault("without-queues", cluster, cluster.name)
    for queue in index.queues:
        if queue.name not in index.levels:
            yield fault("queue-dropped", cluster, str(queue.name), parent=queue.parent)
    if cluster.desired.declared:
        yield from _undeclared_queues(cluster, snapshot, index)


def _undeclared_queues(cluster: Cluster, snapshot: Snapshot, index: QueueIndex) -> Faults:
    """Yield queues that neither the stack nor a team's own stack declares.

    Children before their parents: KAI does not delete a queue with children.
    """
    declared = {*cluster.desired.queue_specs, *_queues_of_team_stacks(cluster, index)}
    teams = (*snapshot.teams, *snapshot.settings.team_stacks)
    trees = {"host-queues", *(f"{team}-queues" for team in teams)}

    def children_first(name: str) -> tuple[int, str]:
        return -index.levels.get(name, 0), name

    for name in sorted(index.by_name, key=children_first):
        if name not in declared:
            yield _undeclared_queue(cluster, name, trees)


def _queues_of_team_stacks(cluster: Cluster, index: QueueIndex) -> Iterator[str]:
    """Yield the queues that teams made with stacks of their own, below the queue granted to them.

    Their names begin with the team's.
    """
    for grant in cluster.desired.grants:
        if grant.parent_queue not in index.by_name:
            continue
        for name in index.below(grant.parent_queue):
            if f"{name}-".startswith(f"{grant.name}-"):
                yield name


def _undeclared_queue(cluster: Cluster, name: str, trees: Collection[str]) -> Fault:
    """Return the fault of a queue that the stack does not declare, by the first that applies.

    It is being deleted, is left over from this cluster's tree, belongs to another program, was
    created by KAI's chart, or by hand.

    Args:
        cluster: Its cluster.
        name: Its name.
        trees: Names of the queue trees that this stack may declare.
    """
    queue = cluster.named("queues", name)
    if queue is not None and queue.is_being_deleted:
        return being_deleted(cluster, queue, "queue", "queues", declared=False)
    tree = None if queue is None else queue.labels.get(TREE)
    if tree == f"{cluster.name}-queues":
        return fault("queue-left", cluster, name)
    if tree is not None and tree not in trees:
        return fault("queue-of-others", cluster, name, tree=tree)
    return fault("queue-by-chart" if name in CHART_QUEUES else "queue-by-hand", cluster, name)


def shards(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield shards and topology levels that no node has the label for.

    No shards of a team with an autoscaler, which may add the nodes.
    """
    scheduler = cluster.desired.scheduler
    labels = set[tuple[str, str]]()
    for node in cluster.all("nodes"):
        labels.update(node.labels.items())
    team = snapshot.settings.teams.get(cluster.name)
    if team is None or not team.autoscaled:
        host = snapshot.host.kubectl
        for shard in scheduler.shards:
            if shard != DEFAULT_SHARD and (NODE_POOL, shard) not in labels:
                yield fault(
                    "shard-without-nodes",
                    cluster,
                    shard,
                    shard=shard,
                    host=host,
                )
    keys = {key for key, _ in labels}
    for name, levels in scheduler.topologies.items():
        for level in set(levels) - keys:
            yield fault("topology-without-nodes", cluster, name, label=level)
