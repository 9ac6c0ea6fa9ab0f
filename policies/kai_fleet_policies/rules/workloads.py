"""Rules about pods: a leaf queue, KAI as the scheduler, and keys where KAI reads them."""

from collections.abc import Iterator, Mapping

from kai_fleet.releases.keys import CHART_LEAF, right_field, right_key
from kai_fleet.urns import read_urn
from kai_fleet.values import UNKNOWN, Maybe, pairs, quoted
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.model.installed import Kai, ManagedObject
from kai_fleet_policies.model.pods import PodTemplate
from kai_fleet_policies.rules.rule import (
    Findings,
    Judged,
    Subject,
    cluster_subject,
    each_workload,
    kai_subject,
    mandatory,
    name_in_words,
    require_known,
    team_subject,
)
from kai_usage.keys import FRACTION, KAI_NAMESPACE, MEMORY, QUEUE_LABEL, RESERVED, SCHEDULER


def _with_queues(cluster: ClusterModel) -> Judged[PodTemplate | TeamModel]:
    """The workloads of a cluster, and its teams in mode host, which have one queue each."""
    yield from each_workload(cluster)
    for team in cluster.teams:
        if team.mode == "host" and team.queue is not None:
            yield team, team_subject(team).at("queue")


@mandatory("workload-leaf-queue", "high", _with_queues)
def workload_leaf_queue(
    cluster: ClusterModel, user: PodTemplate | TeamModel, subject: Subject
) -> Findings:
    """Pods for KAI, and teams in host mode, name a leaf queue that exists.

    KAI schedules pods only from leaf queues. A pod that names none, a parent or one that does
    not exist stays Pending, in most versions without an event.
    """
    # At most one finding for each.
    if isinstance(user, TeamModel):
        yield from _wrong_queue(user.queue or "", cluster, subject)
    elif user.scheduler in (SCHEDULER, UNKNOWN) and not user.queue_elsewhere:
        yield from _wrong_label(cluster, user, subject)
    # On pods of other schedulers workload-scheduler says what is wrong if they name a queue.


def _wrong_label(cluster: ClusterModel, workload: PodTemplate, subject: Subject) -> Findings:
    """What is wrong with the queue label of a workload for KAI, or for a scheduler not known yet.

    At most one finding; undecided if no queues are declared where its KAI is. None for a value that
    is no text. With a label without a value KAI looks for a queue without a name. Raises
    UnknownValueError if the label is not known, or, if it names no queue, the scheduler.
    """
    queue = require_known(workload.queue, f"its label {QUEUE_LABEL} is known")
    if queue in (None, ""):
        require_known(workload.scheduler, "its schedulerName is known")
        if workload.pod_group:
            return  # the PodGroup may have the queue, where the guard lets it
        leaves = [cluster.team_queue] if cluster.team_queue else cluster.scheduling.tree.leaves
        choice = listed(leaves) or "the name of a leaf queue"
        cause = "asks for KAI and names no queue"
        if queue is None:
            cause += f": KAI would look for one called {CHART_LEAF}"
        yield subject.refuse(
            cause,
            f"write the label kai.scheduler/queue: {choice}, or drop schedulerName to use the"
            " default scheduler",
        )
    elif not isinstance(queue, str):
        return  # workload-known-keys reports it
    elif cluster.scheduling.queues:
        yield from _wrong_queue(queue, cluster, subject)
    else:
        until = f"the queues of {cluster.scheduling.name} are declared here"
        yield cluster_subject("queues", cluster).undecided(until)


def _wrong_queue(queue: str, cluster: ClusterModel, subject: Subject) -> Findings:
    """What is wrong with a queue that is named: it is not the team's, not declared, or no leaf.

    The first of these only. Undecided in place of not declared if a queue's name is not known.
    """
    scheduling = cluster.scheduling
    tree = scheduling.tree
    team_queue = cluster.team_queue
    if team_queue not in (None, queue):
        yield subject.refuse(
            f"names queue {queue}, but the queue of team {cluster.name} is {team_queue}",
            f"write {team_queue}",
        )
    elif queue not in tree.by_name:
        if tree.unknown_names:
            yield subject.undecided(f"all queue names of {scheduling.name} are known")
            return
        leaves = listed(nearest_first(queue, tree.leaves)) or "a leaf queue, declared first"
        yield subject.refuse(
            f"names queue {queue}, which is not declared in {scheduling.name}: its pods would stay"
            " Pending",
            f"write {leaves}",
        )
    elif not tree.is_leaf(queue):
        leaves = listed(tree.leaves_below(queue)) or "a queue without children"
        yield subject.refuse(
            f"names queue {queue}, which has children and so takes no pods",
            f"write {leaves}",
        )


@mandatory("workload-scheduler", "high", each_workload)
def workload_scheduler(cluster: ClusterModel, workload: PodTemplate, subject: Subject) -> Findings:
    """Pods with a queue, or a share of a GPU, have `schedulerName: kai-scheduler`.

    Without schedulerName the default scheduler places the pod: its queue and its GPU fraction
    are ignored without a word.
    """
    # One finding for all keys. They count with any value, and are undecided if the scheduler is
    # UNKNOWN. What a pod of KAI lacks workload-leaf-queue says.
    if workload.scheduler == SCHEDULER:
        return
    names_queue = workload.names_queue
    keys_of_kai = [f"the label {QUEUE_LABEL}"] if names_queue is True else []
    for key in (FRACTION, MEMORY):
        if key in pairs(workload.annotations):
            keys_of_kai.append(f"the annotation {key}")
    if keys_of_kai:
        scheduler = require_known(workload.scheduler, "its schedulerName is known")
        scheduler_text = f"schedulerName: {scheduler}" if scheduler else "no schedulerName"
        yield subject.refuse(
            f"has {listed(keys_of_kai, 'and')} but {scheduler_text}, so KAI never sees it and they"
            " are ignored",
            "write schedulerName: kai-scheduler",
        )
    require_known(names_queue, "its labels are known")
    require_known(workload.annotations, "its annotations are known")


@mandatory("workload-known-keys", "high", each_workload)
def workload_known_keys(cluster: ClusterModel, workload: PodTemplate, subject: Subject) -> Findings:
    """Labels and annotations that KAI reads, in the place where it reads them, as strings.

    KAI ignores keys that it does not know: a pod with kai.scheduler/gpu-fraction runs without a
    GPU, or on one that no queue accounts for. Values of labels and annotations are strings.
    """
    # All that is known is judged; then UNKNOWN labels or annotations leave the rest undecided.
    wrong = [
        *_wrong_keys(workload.labels, "label"),
        *_wrong_keys(workload.annotations, "annotation"),
        *_wrong_keys(workload.owner_labels, "label"),
    ]
    for cause, fix in dict.fromkeys(wrong):  # a Pod has its labels twice: its own are its owner's
        yield subject.refuse(cause, fix)
    for texts in (workload.labels, workload.annotations, workload.owner_labels):
        require_known(texts, "all its labels and annotations are known")


def _wrong_keys(texts: Maybe[Mapping[str, object]], kind: str) -> Iterator[tuple[str, str]]:
    """Causes and fixes of keys that KAI does not read from a `label` or an `annotation`.

    And of values that are no strings, unless they are None or UNKNOWN. Nothing if all `texts` are
    UNKNOWN. The fix is "" if the cause says it.

    Args:
        texts: All labels, or all annotations, of an object or of its pods.
        kind: `label` or `annotation`, as `right_field` takes it.
    """
    for key, value in pairs(texts).items():
        right = right_key(key)
        right_kind = right_field(right or "", kind)
        if right not in (None, key):
            fix = f"write the {right_kind} {right}" if right else "remove it"
            yield f"has the {kind} {key}, which no supported KAI version reads", fix
        elif right is not None and kind != right_kind:
            yield f"has {key} as {kind}; KAI reads it as {right_kind}: move it there", ""
        if value not in (None, UNKNOWN) and not isinstance(value, str):
            cause = f"has the {kind} {key} with a value that is not a string"
            yield cause, f"write {key}: {quoted(value)}"


# What KAI itself needs beside its release: pull secrets, rights, network rules, scraping.
_KAI_SUPPORT = (
    "NetworkPolicy",
    "PodMonitor",
    "ServiceMonitor",
    "Role",
    "RoleBinding",
    "Secret",
    "ServiceAccount",
)


def _in_namespaces(
    cluster: ClusterModel,
) -> Judged[PodTemplate | ManagedObject | Kai]:
    """Everything in a namespace: workloads, other objects, and then KAI.

    Of a chart's resources, which have a component of type Chart in their URN, only those in KAI's
    namespace.
    """
    for workload, subject in each_workload(cluster):
        if _is_judged(workload, subject):
            yield workload, subject
    for thing in cluster.objects:
        subject = Subject(thing.kind, f"{name_in_words(thing.name)} in {cluster.name}", thing.path)
        if _is_judged(thing, subject):
            yield thing, subject
    for kai in cluster.kai:
        yield kai, kai_subject(kai, cluster).at("namespace")


def _is_judged(thing: PodTemplate | ManagedObject, subject: Subject) -> bool:
    """Whether a thing is none of a chart's resources, or is in KAI's namespace."""
    is_of_chart = any(kind.endswith(":Chart") for kind in read_urn(subject.path).above)
    return not is_of_chart or thing.namespace == KAI_NAMESPACE


@mandatory("namespace-reserved", "critical", _in_namespaces)
def namespace_reserved(
    cluster: ClusterModel, thing: PodTemplate | ManagedObject | Kai, subject: Subject
) -> Findings:
    """Namespaces that belong to KAI, the GPU operator and Kubernetes stay theirs.

    KAI's admission lets pods in these namespaces through unseen, and removing KAI deletes
    every Deployment in its own.
    """
    # Pods are kept out of all reserved namespaces, other objects only out of KAI's. UNKNOWN is
    # undecided for pods, KAI and releases, and passed over for other objects.
    namespace = thing.namespace
    if not isinstance(thing, ManagedObject) or thing.kind == "Release":
        require_known(namespace, "its namespace is known")
    own_namespace = "write a namespace of the team's own, for example team-a"
    beside_kai = (
        f"{own_namespace}; KAI itself is declared by kubernetes:helm.sh/v3:Release, which runs its"
        " hooks"
    )
    if isinstance(thing, Kai):
        if namespace != KAI_NAMESPACE:
            yield subject.refuse(
                f"is installed in {namespace or 'default'}, but its clean-up works in kai-scheduler"
                " only",
                "write namespace: kai-scheduler",
            )
    elif isinstance(thing, PodTemplate):
        if namespace in RESERVED:
            yield subject.refuse(
                f"runs in {namespace}, which is reserved for the platform",
                beside_kai if namespace == KAI_NAMESPACE else own_namespace,
            )
    elif namespace == KAI_NAMESPACE and thing.kind not in _KAI_SUPPORT:
        yield subject.refuse(
            "is in kai-scheduler, where removing KAI deletes every Deployment",
            beside_kai,
        )
