"""Checks of KAI: its parts, webhooks, queues and shards, and what another KAI left behind."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from kai_fleet.cluster.kube.objects import Killed, KubeObject, in_pool, seconds_since
from kai_fleet.cluster.provider.queues import TREE
from kai_fleet.releases.keys import CHART_QUEUES, DEFAULT_SHARD, KAI_NAMESPACE, NODE_POOL
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.faults import (
    NAME,
    NAMES,
    Fault,
    Faults,
    Subject,
    Why,
    being_deleted,
)
from kai_fleet_cli.doctor.messages import reason
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_cli.doctor.usage import queue_of
from kai_fleet_policies.finding import Command, Fix, Level
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_policies.model.queues import QueueIndex

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


def recreate_part(cluster: Cluster) -> Fix:
    """Return a fix that creates a missing part of KAI again."""
    if cluster.all("releases"):
        return cluster.recreate_release(_RELEASE, KAI_NAMESPACE)
    return (cluster.update,)


def parts(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield Deployments of the cluster's KAI that are absent, scaled to 0 or not rolled out.

    One fault for all of KAI if it has no Deployment, or its version is unknown.
    """
    release = cluster.kai
    deployments = {item.name: item for item in cluster.within("deployments", KAI_NAMESPACE)}
    if release is None or not deployments:
        version = release.version if release else ""
        yield Subject(cluster, "KAI", version).broken("is not installed", cluster.update)
        return
    again = recreate_part(cluster)
    for name in release.deployments:
        subject = Subject(cluster, "Deployment", name)
        deployment = deployments.get(name)
        if deployment is None:
            yield subject.broken("is not there", *again)
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
    """Return why the pods of a part are not Ready; None if check `killed` reports it."""
    if unread := cluster.unread("pods"):
        return Why(f"why is not known: {unread}")
    pods = _pods_of(cluster, deployment)
    if killed_lately(cluster, pods):
        return None
    return reason(cluster, *pods) if pods else Why("it has no pod")


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
        yield killed_for_memory(
            Subject(cluster, "Deployment", deployment.name),
            last,
            path.removesuffix("."),
            runs_again=deployment.rolled_out,
        )


def killed_for_memory(subject: Subject, last: Killed, path: str, *, runs_again: bool) -> Fault:
    """Return the fault of an object with this killed container. `path` is the key of its memory."""
    return subject.at(
        Level.ADVISORY if runs_again else Level.MANDATORY,
        f"its {last.sentence}",
        f"raise limits.memory at {path}, then ",
        subject.cluster.apply,
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
        subject = Subject(cluster, "KAI's", resource_and_name)
        if item is None:
            yield subject.broken("is not there", *recreate_part(cluster))
        elif not item.is_true("Ready"):
            message = item.condition("Ready").get("message") or "its operator has not said Ready"
            yield subject.broken(f"is not Ready: {message}", "look with: ", _look(cluster))


def hooks(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield Jobs of Helm hooks whose pod has no node."""
    for pod in cluster.within("pods", KAI_NAMESPACE):
        job = pod.labels.get("job-name")
        if job and pod.phase == "Pending" and not pod.spec.get("nodeName"):
            yield Subject(cluster, "Job", job).broken(
                "its pod has no node, and Helm waits for it",
                "free some cpu on a node that KAI may use, then ",
                cluster.update,
            )


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
    def judges_updates(self) -> bool:
        """Whether it judges resources that an update creates."""
        return not self.judged_resources.isdisjoint(_CREATED_RESOURCES)

    @property
    def refused(self) -> str:
        """What is refused if it does not answer, in words."""
        return " and ".join(sorted(self.judged_resources)) or "requests"

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
        is_of_kai = webhook.namespace == KAI_NAMESPACE
        if not webhook.may_refuse or not (is_of_kai or webhook.judges_updates):
            continue
        is_there = cluster.named("services", webhook.service, webhook.namespace) is not None
        is_answered = (webhook.namespace, webhook.service) in answering
        if is_of_kai:
            yield from _own_webhook(cluster, webhook, is_there=is_there, is_answered=is_answered)
        elif not (is_there and is_answered):
            yield _webhook_of_others(cluster, webhook)


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


def _own_webhook(
    cluster: Cluster, webhook: _Webhook, *, is_there: bool, is_answered: bool
) -> Faults:
    """Yield a webhook of KAI whose Service is absent or silent, or that has no authority.

    `is_there`: its Service exists. `is_answered`: the Service has a ready endpoint.
    """
    subject = Subject(cluster, "webhook", webhook.configuration)
    resource = webhook.resource.removesuffix("s")
    if not is_there:
        yield subject.broken(
            f"its Service {webhook.service} is not there, so {webhook.refused} are refused: an"
            " uninstalled KAI left it",
            cluster.command(f"delete {resource} {NAMES}"),
            ", or ",
            cluster.update,
            " where this KAI is declared",
        )
    elif not is_answered:
        yield subject.broken(
            f"nothing answers for its Service {webhook.service}, so {webhook.refused} are refused",
            "look with: ",
            cluster.command(f"-n {KAI_NAMESPACE} get deployments,endpoints"),
        )
    elif not value_at(webhook.fields, "clientConfig.caBundle"):
        yield subject.broken(
            f"it has no certificate authority, so {webhook.refused} are refused: KAI's"
            " installation did not end",
            cluster.update,
            "; it continues from there",
        )


def _webhook_of_others(cluster: Cluster, webhook: _Webhook) -> Fault:
    """Return the fault of a webhook that does not answer."""
    resource = webhook.resource.removesuffix("s")
    space = webhook.namespace
    return Subject(cluster, "webhook", webhook.configuration).warning(
        f"nothing answers for {webhook.fields.get('name')}, which is not KAI's, at its Service"
        f" {webhook.service} of namespace {space}, so {webhook.refused} are refused",
        "have its owner repair it: ",
        cluster.command(f"-n {space} get services,endpointslices,pods"),
        ", or ",
        cluster.command(f"get {resource} {NAME}"),
        " for the namespaces that it is asked about",
    )


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
    subject = Subject(cluster, "KAI", version)
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
    """Return the commands that remove a KAI: its release, or without one its Deployments."""
    if not cluster.all("releases"):
        names = " ".join(deployments)
        return (cluster.command(f"-n {KAI_NAMESPACE} delete deployment {names}"),)
    uninstall = Command(f"{cluster.helm} -n {KAI_NAMESPACE} uninstall {_RELEASE}")
    # When these are deleted KAI's operator removes its parts, so before the operator itself.
    owners = list[str]()
    for resource, name in (("configs", "kai-config"), ("schedulingshards", DEFAULT_SHARD)):
        if cluster.named(resource, name):
            owners.append(f"{resource}/{name}")
    if not owners:
        return (uninstall,)
    return (cluster.command(f"delete {' '.join(owners)}"), ", then ", uninstall)


def schedulers(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield schedulers besides the declared ones, and shards that an older KAI does not know."""
    release = cluster.kai
    if release is None:
        return
    shards = [shard.name for shard in cluster.all("schedulingshards")]
    if not release.has_shards:
        for name in shards:
            yield Subject(cluster, "SchedulingShard", name).broken(
                f"a newer KAI left it, and the operator of {release.version} makes a second"
                " scheduler of it",
                cluster.command(f"delete schedulingshard {NAMES}"),
            )
    for scheduler in cluster.schedulers:
        shard = scheduler.name.removeprefix("kai-scheduler-")
        if scheduler.name != "scheduler" and shard not in shards:
            yield Subject(cluster, "Deployment", scheduler.name).broken(
                "its SchedulingShard is gone: it schedules beside the others",
                cluster.command(f"-n {KAI_NAMESPACE} delete deployment {NAMES}"),
            )


def queues(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield a KAI without any queue, queues that it ignores, and queues that are not declared.

    KAI schedules from queues only, and ignores those below a cycle or an absent parent. In a
    cluster that another stack declares no queue counts as undeclared.
    """
    index = QueueIndex(map(queue_of, cluster.all("queues")))
    if not index.queues and not cluster.desired.queues:
        yield Subject(cluster, "cluster", cluster.name).warning(
            "has no queue: KAI schedules no pod",
            f"declare one at {cluster.desired.queues_key}, then ",
            cluster.apply,
        )
    for queue in index.queues:
        if queue.name not in index.levels:
            yield Subject(cluster, "queue", str(queue.name)).broken(
                f"its parent {queue.parent} is not there, or is itself below such a one: KAI drops"
                " it",
                cluster.update,
                f", or give it another parent at {cluster.desired.queues_key}",
            )
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
    subject = Subject(cluster, "queue", name)
    key = cluster.desired.queues_key
    delete = cluster.command(f"delete queue {NAMES}")
    tree = None if queue is None else queue.labels.get(TREE)
    if tree == f"{cluster.name}-queues":
        return subject.warning(
            "is left over from this stack, whose file does not have it any more",
            cluster.update,
            f", which deletes it; or put it back at {key}",
        )
    if tree is not None and tree not in trees:
        return subject.warning(
            f"is of the tree {tree}, which this stack does not have: another program made it",
            "leave it to whoever has it",
        )
    if name in CHART_QUEUES:
        return subject.warning(
            "KAI's chart made it, with a quota of 0: it takes its part of what others leave",
            delete,
            "; leave defaultQueue.createDefaultQueue out of the values",
        )
    return subject.warning(
        "somebody made it by hand: the stack does not declare it",
        f"declare it at {key}, or delete it: ",
        delete,
    )


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
        for shard in scheduler.shards:
            label = f"{NODE_POOL}={shard}"
            if shard != DEFAULT_SHARD and (NODE_POOL, shard) not in labels:
                yield Subject(cluster, "SchedulingShard", shard).broken(
                    f"no node has the label {label}: nothing is scheduled there",
                    "label nodes on the host: ",
                    snapshot.host.command(f"label node <node> {label}"),
                )
    keys = {key for key, _ in labels}
    for name, levels in scheduler.topologies.items():
        for level in set(levels) - keys:
            yield Subject(cluster, "Topology", name).warning(
                f"no node has the label {level}: placement by it is impossible",
                f"label the nodes with their {level}, or leave it out of the topology",
            )
