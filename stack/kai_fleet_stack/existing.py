"""Find foreign objects on a host that a stack would declare: RuntimeClasses, CRDs, namespaces.

An object that is not in the stack's state is a foreign one. If it fits, the stack uses it and does
not declare it, so that no update changes or deletes it. Else the run is refused.

"The host cannot tell" stands for a read without an answer. An object that the user may not read is
not such a case: it counts as absent, with one warning in a run.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import pulumi
from pulumi import RunError
from pulumi.runtime import invoke

from kai_fleet.cluster.connection import ClusterConnection
from kai_fleet.cluster.queues import PATH, TREE
from kai_fleet.isolation.policies import policy_name
from kai_fleet.isolation.team_namespace import USED, namespace_labels
from kai_fleet.names import EXISTING, NAMESPACE, NAMESPACE_PATCH, RELEASE, TEAM_LABEL
from kai_fleet.ownership.deployed import Deployed
from kai_fleet.queues.specs import named_specs
from kai_fleet.releases import GPU_PROVIDERS, kai, version_key
from kai_fleet.releases.keys import CHART_QUEUES, KAI_PRIORITIES
from kai_fleet.values import value_at
from kai_fleet.vcluster.chart_values import HIGH, MEMBERS
from kai_fleet_policies import rules
from kai_fleet_policies.finding import Level, report
from kai_fleet_policies.rules.kai import kai_kubernetes
from kai_fleet_policies.rules.vclusters import vcluster_host_kubernetes
from kai_fleet_stack.arguments import Arguments, UseExisting
from kai_fleet_stack.closed_pool import closed_pool
from kai_fleet_stack.declared import host_of
from kai_fleet_stack.settings import Settings
from kai_usage.keys import KAI_NAMESPACE

if TYPE_CHECKING:
    from kai_fleet.gpu_stack import GpuStackArgs
    from kai_fleet.isolation.team_namespace import TeamNamespaceArgs
    from kai_fleet.kai.kai_scheduler import KaiSchedulerArgs
    from kai_fleet.queue_tree import QueueTreeArgs

# Names of the program's GpuStack and of the host's KaiScheduler.
GPU_STACK = "host-gpu"
KAI = "host"
CRD = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
RUNTIME_CLASS = "kubernetes:node.k8s.io/v1:RuntimeClass"
_PATHS = {
    CRD: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/",
    RUNTIME_CLASS: "/apis/node.k8s.io/v1/runtimeclasses/",
    NAMESPACE: "/api/v1/namespaces/",
}
_NODES = "/api/v1/nodes"
_VERSION = "/version"
# ClusterRole `system:discovery` lets all authenticated users read this path, and nobody else.
_ANY_USER = "/api"
_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/"
_ENFORCED_TOLERATIONS = "sync.toHost.pods.enforceTolerations"
_PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses/"
# Values of the PriorityClasses in KAI's charts. Charts from _WITHOUT_PRIORITIES on can leave the
# classes out.
_PRIORITIES = dict(zip(KAI_PRIORITIES, (50, 75, 100, 125), strict=True))
_WITHOUT_PRIORITIES = "v0.16.7"
_CLUSTER_POLICY_CRD = "clusterpolicies.nvidia.com"
# What the provider's function `existing` answers: `there`, and of an object that is there `labels`,
# `spec`, `handler` (of a RuntimeClass), `value` (of a PriorityClass) and `release` (of Helm, as
# NAMESPACE/NAME), of a list of nodes `nodes`, each with `labels` and `taints`, of _VERSION
# `version`. Or `problem`, the message, with `denied` and `away`. Empty in an offline plan.
Answer = Mapping[str, Any]
_UNREACHED = (
    "kai-fleet:cluster: there is no preview and no update without the host cluster: {}. Nothing was"
    " made. Write a context of your kubeconfig that reaches it as a user (kubectl --context NAME"
    " auth whoami), or log in. Without a cluster: .venv/bin/fleet plan"
)


@dataclass
class HostObjects:
    """The objects on a host, read with the user's rights, and the stack's state.

    An object that the user may not read counts as absent: that user may not create it either. The
    first of them is warned about, and sets `warned`. So `require` comes before all other calls: a
    host that does not know the user may refuse it in the same way.

    Args:
        read: returns the answer of the provider's function `existing` for a path of the API.
        deployed: the state. It has to be `readable`: without it the stack's own objects look
            foreign.
        warned: whether that warning was given.
    """

    read: Callable[[str], Answer]
    deployed: Deployed
    warned: bool = False

    def require(self) -> None:
        """Raise pulumi.RunError if the host does not answer, or does not know the user."""
        problem = self._answer(_ANY_USER).get("problem")
        if problem:
            raise RunError(_UNREACHED.format(problem))

    def _answer(self, path: str) -> Answer:
        """The answer about a path; the second one if the first is that the host was `away`."""
        answer = self.read(path)
        if answer.get("away"):
            answer = self.read(path)
        return answer

    def at(self, path: str) -> Answer | None:
        """The answer about the object or the list at a path of the API; None if it is absent.

        None as well, with a warning once for these objects, if the user may not read it; and in an
        offline plan.

        Raises:
            pulumi.RunError: the host cannot tell, and an object that was not read may exist.
        """
        answer = self._answer(path)
        problem = answer.get("problem")
        if problem and not answer.get("denied"):
            raise RunError(_UNREACHED.format(f"{problem} to GET {path}"))
        if problem and not self.warned:
            self.warned = True
            pulumi.log.warn(
                f"what the host cluster has already is not known: {problem} to GET {path}. What"
                " others made there looks free in this run, and an update may fail. Look with:"
                " kubectl auth can-i --list"
            )
        return answer if answer.get("there") else None

    def foreign(self, kind: str, name: str, resource: str) -> Answer | None:
        """The existing object of this type and name; None if the stack's state has `resource`.

        None as well for no name, and as `at`.

        Args:
            kind: type of the resource, one of _PATHS.
            name: name of the object; "" for none.
            resource: the resource's name in the stack.

        Raises:
            pulumi.RunError: as `at`.
        """
        if not name or self.deployed.has(kind, resource):
            return None
        return self.at(f"{_PATHS[kind]}{name}")


def find(
    settings: Settings,
    host: ClusterConnection,
    deployed: Deployed,
    package: pulumi.ProviderResource,
) -> UseExisting:
    """Find the foreign objects on the host that components of the stack use.

    Empty for a kind cluster of the stack, which may not exist yet and is not asked, and in a team's
    own stack, whose platform declares them. There the host only has to answer, and its version is
    judged, as in a platform's. Warns of taints that keep the pods of a team off all of its nodes.

    Args:
        settings: those that `checked_settings` returns: rules have accepted them.
        deployed: the state of the last update.
        package: the package's provider, which reads the host; in an offline plan it reads nothing.

    Raises:
        pulumi.RunError: a foreign object does not fit, another stack has the host, the stack's
            state cannot be read, the host does not answer this user, or a version does not work
            on it.
        UnknownVersionError: as `host_kai`.
    """
    if settings.cluster.kind is not None:
        return {}
    is_team_stack = settings.platform_facts is not None
    if not is_team_stack and not deployed.readable:
        raise RunError(
            "kai-fleet:cluster: the stack's state cannot be read, and without it what others made"
            " on the host looks like the stack's own. Nothing was made. Run the same again"
        )

    def read(path: str) -> Answer:
        arguments = {"path": path, **host.properties()}
        answer: Any = invoke(EXISTING, arguments, pulumi.InvokeOptions(provider=package)).value
        return answer or {}

    objects = HostObjects(read, deployed)
    objects.require()
    judge_version(settings, objects)
    return {} if is_team_stack else existing_of(settings, objects)


def existing_of(settings: Settings, host: HostObjects) -> UseExisting:
    """`find` in a platform's stack, for a given reader, with the same warnings: all three keys.

    It reads a kind cluster, too. The caller checks before that the state could be read, and calls
    `host.require`: without that a host that does not know the user may look empty. Taints are
    looked for only of teams of this stack that have a node pool, and to whose pods vCluster adds no
    tolerations.

    Raises:
        pulumi.RunError: a foreign object does not fit, another stack has the host, or the host
            cannot tell.
        UnknownVersionError: as `host_kai`.
    """
    _refuse_second_stack(host)
    warn_of_missing_secrets(settings, host)
    args = Arguments(settings)
    for name, team in settings.teams.items():
        if team.node_pool and not value_at(team.vcluster.values, _ENFORCED_TOLERATIONS):
            warn_of_taints(name, args.namespace(name), settings.team_path(name), host)
        if team.vcluster.availability == HIGH:
            warn_of_few_nodes(name, settings.control_pool(name), settings.team_path(name), host)
    gpu = gpu_stack(args.gpu_stack(), host)
    kai = host_kai(args.host_kai(), args.host_queues(), host) if settings.kai else []
    teams = [name for name in settings.all_teams if is_of_others(name, args.namespace(name), host)]
    return {"gpu": gpu, "kai": kai, "teams": teams}


def judge_version(settings: Settings, host: HostObjects) -> None:
    """Judge the vClusters and the host's KAI by the host's version, which no plan knows; warn.

    Raises pulumi.RunError if a rule refuses one of them, or if the host cannot tell.
    """
    version = (host.at(_VERSION) or {}).get("version")
    model = replace(host_of(settings, host.deployed), kubernetes=version)
    findings = rules.check([model], (vcluster_host_kubernetes, kai_kubernetes))
    refused = [finding for finding in findings if finding.level is Level.MANDATORY]
    if refused:
        raise RunError(report(refused))
    for finding in findings:
        pulumi.log.warn(str(finding))


def _refuse_second_stack(host: HostObjects) -> None:
    """Raise pulumi.RunError if the stack has no resources, and the host has guards already.

    The stack itself and its providers do not count. Raises it as well if the host cannot tell, but
    not if the user may not read guards. A state that is not `readable` looks like one of no
    resources: the caller has refused it.
    """
    guard = policy_name("pods")
    if not host.deployed.declared and host.at(f"{_POLICIES}{guard}"):
        raise RunError(
            "kai-fleet:cluster: another stack has this cluster: its guards are there, and this one"
            " has made nothing. If the stack's name, or the project's in Pulumi.yaml, was edited,"
            " write the old one; else run that stack, or write another context. If its state is"
            " lost, make it anew as docs/lost-state.md says, and leave the guards where they are"
        )


def gpu_stack(args: "GpuStackArgs", host: HostObjects) -> list[str]:
    """Argument `use_existing` for the program's GpuStack: any of `runtimeClass` and `namespace`.

    Of `args` it reads `provider`. With a provider that installs no chart the list is empty.

    Raises:
        pulumi.RunError: a foreign RuntimeClass has another handler, a foreign GPU operator is there
            beside provider `operator` and the state has no GPU chart yet, or the host cannot tell.
            The chart of another provider counts: a change of provider is not refused.
    """
    provider_name = args["provider"]
    provider = GPU_PROVIDERS[provider_name]
    name = provider.runtime_class
    runtime_class = host.foreign(RUNTIME_CLASS, name, f"{GPU_STACK}-runtime-class")
    is_new = not host.deployed.has(RELEASE, f"{GPU_STACK}-release")
    lead = f"kai-fleet:gpu.provider: others set up GPUs in this cluster: {provider_name}"
    if runtime_class and runtime_class["handler"] != name:
        raise RunError(
            f"{lead} needs RuntimeClass {name} with handler {name}, and theirs has handler"
            f" {runtime_class['handler']}. Nothing was made. Write provider: none if the nodes"
            " advertise their GPUs already, or have its owner make the class anew with that handler"
        )
    if provider.rival and is_new and host.at(provider.rival):
        raise RunError(
            f"{lead} would install a second GPU operator beside that of ClusterPolicy"
            f" {provider.rival.rpartition('/')[2]}. Nothing was made. Write provider: none"
        )
    namespace = host.foreign(NAMESPACE, provider.chart, f"{GPU_STACK}-namespace")
    foreign = {"runtimeClass": runtime_class, "namespace": namespace}
    return [key for key, existing in foreign.items() if existing]


def host_kai(args: "KaiSchedulerArgs", queues: "QueueTreeArgs", host: HostObjects) -> list[str]:
    """What to add to argument `use_existing` of the host's KaiScheduler.

    Any of `namespace`, `clusterPolicyCrd` and `priorityClasses`. Left out are the CRD if `args` has
    it there or the version needs none, and the classes if the chart's values set
    `defaultPriorityClasses`: then they are not looked at.

    Args:
        args: read are `version`, `untested`, `use_existing` and `values`.
        queues: read is `queues`, as `Arguments.host_queues` gives them, without Outputs.

    Raises:
        pulumi.RunError: foreign priority classes or default queues of KAI do not fit, or the host
            cannot tell.
        UnknownVersionError: the release table lacks the version, which rules have refused before.
        ValueError: a quantity of the queues is invalid, which settings refuse.
    """
    release = kai(args["version"], untested=bool(args.get("untested")))
    use_existing = list[str]()
    if host.foreign(NAMESPACE, KAI_NAMESPACE, f"{KAI}-kai-namespace"):
        use_existing.append("namespace")
    has_crd = "clusterPolicyCrd" in args.get("use_existing", ())
    needs_crd = release.needs_cluster_policy_crd and not has_crd
    if needs_crd and host.foreign(CRD, _CLUSTER_POLICY_CRD, f"{KAI}-kai-cluster-policy"):
        use_existing.append("clusterPolicyCrd")
    sets_classes = "defaultPriorityClasses" in args.get("values", {})
    if not sets_classes and _uses_priority_classes(release.version, host):
        use_existing.append("priorityClasses")
    for name, spec in named_specs(queues["queues"]):
        if name in CHART_QUEUES:
            _refuse_other_queue(name, spec, host)
    return use_existing


def _refuse_other_queue(name: str, spec: Mapping[str, object], host: HostObjects) -> None:
    """Raise pulumi.RunError if the host has a queue of that name with another spec than `spec`.

    A queue with the label TREE is one of a QueueTree, which the provider judges. Raises it as well
    if the host cannot tell. `name` is one of CHART_QUEUES: the message takes KAI's chart for the
    maker.
    """
    queue = host.at(f"{PATH}/{name}")
    if queue is None or TREE in queue["labels"] or queue["spec"] == spec:
        return
    has = json.dumps(queue["spec"], sort_keys=True)
    wants = json.dumps(spec, sort_keys=True)
    raise RunError(
        f"kai-fleet:queues: queue {name} is in the cluster already, from a KAI's chart: it"
        f" has {has}, and yours {wants}. Nothing was made. Write it as it is there, or give"
        " yours another name"
    )


def _uses_priority_classes(version: str, host: HostObjects) -> bool:
    """Whether KAI of this version can use priority classes that others made.

    Those are the classes that are not of our Helm release: another release of KAI owns them, or
    none. False if there are none of them, and if one class is ours, whatever the others are: the
    chart makes all or none, so that True would delete ours. A Helm release that had a class takes
    over one that others made in its place, and fails at one with another value.

    Raises:
        pulumi.RunError: others made all that there are, and a class of _PRIORITIES is absent or has
            another value, or the version is older than _WITHOUT_PRIORITIES; or the host cannot
            tell.
    """
    classes = {name: host.at(f"{_PRIORITY_CLASSES}{name}") or {} for name in _PRIORITIES}
    releases = {existing.get("release") for existing in classes.values() if existing}
    if not releases or f"{KAI_NAMESPACE}/kai-scheduler" in releases:
        return False
    values = {name: int(existing.get("value", 0)) for name, existing in classes.items()}
    if values == _PRIORITIES and version_key(version) >= version_key(_WITHOUT_PRIORITIES):
        return True
    raise RunError(
        "kai-fleet:kai: priority classes of KAI are in this cluster, made by others:"
        f" {_in_words(values)}. Nothing was made. KAI {_WITHOUT_PRIORITIES} or newer uses them if"
        f" they are {_in_words(_PRIORITIES)}; with values: {{defaultPriorityClasses:"
        " {enabled: false}} it takes them as they are"
    )


def _in_words(values: Mapping[str, int]) -> str:
    """Each name with its value, or with `absent` for 0."""
    return ", ".join(f"{name} {value or 'absent'}" for name, value in values.items())


def is_of_others(team: str, args: "TeamNamespaceArgs", host: HostObjects) -> bool:
    """Whether the namespace for these arguments existed before the stack.

    If the stack's state patches the namespace, it did. A namespace with the team's label was
    created by a stack. It existed before only if it also has the label of USED; else an interrupted
    update of this stack, or another stack, created it.

    Args:
        team: the team's name, also that of its TeamNamespace.
        args: read are `name` and what `namespace_labels` reads. They have no Outputs.

    Raises:
        pulumi.RunError: its labels conflict with those of the team, or the host cannot tell.
    """
    resource = f"{team}-namespace"
    name = args.get("name", f"team-{team}")
    if host.deployed.has(NAMESPACE_PATCH, resource):
        return True
    namespace = host.foreign(NAMESPACE, name, resource)
    if namespace is None:
        return False
    labels = namespace["labels"]
    if TEAM_LABEL in labels:
        return bool(USED.items() <= labels.items())
    desired = namespace_labels(team, args)
    conflicts = sorted(key for key, value in labels.items() if desired.get(key, value) != value)
    if conflicts:
        has = " ".join(f"{key}={labels[key]}" for key in conflicts)
        wants = " ".join(f"{key}={desired[key]}" for key in conflicts)
        raise RunError(
            f"namespace {name} was on the cluster before this stack and is used for team {team},"
            f" but it has {has}. Nothing was made. Agree with its owner and run: kubectl label"
            f" namespace {name} --overwrite {wants}; or give the team another name"
        )
    return True


def warn_of_taints(team: str, args: "TeamNamespaceArgs", path: str, host: HostObjects) -> None:
    """Warn of taints that keep a team's pods off all nodes of its pool.

    Not if the pool has no nodes, nor if the user may not read nodes. The caller leaves out a team
    to whose pods vCluster adds tolerations, which `args` do not have.

    Args:
        team: the team's name, for the warning.
        args: need a `node_pool` without Outputs, and have the tolerations. {} is a pool of all
            nodes.
        path: the team's key path: the fix is to write tolerations there.

    Raises:
        pulumi.RunError: the host cannot tell what nodes it has.
    """
    pool = cast("dict[str, str]", args["node_pool"])
    taints = [node["taints"] for node in _nodes_of(pool, host)]
    closed = closed_pool(args, taints, path)
    if closed:
        cause, fix = closed
        pulumi.log.warn(f"nodes of team {team}: {cause}; {fix}")


def warn_of_few_nodes(team: str, pool: Mapping[str, str], path: str, host: HostObjects) -> None:
    """Warn of less than three nodes for the control plane of a vCluster of high availability.

    Not without any node: a pool may scale from zero. Nor if the user may not read nodes.

    Args:
        team: the team's name.
        pool: the labels of the nodes; {} for all.
        path: the team's key path.
        host: as in `warn_of_taints`, with the same error.
    """
    nodes = len(_nodes_of(pool, host))
    if 0 < nodes < MEMBERS:
        pulumi.log.warn(
            f"vCluster {team}: {path}.vcluster.availability is high, and its control plane has"
            f" {nodes} of {MEMBERS} nodes: a node that is lost can take two of three etcd members,"
            f" which stops its API; add nodes, or write others at {path}.vcluster.nodePool"
        )


def warn_of_missing_secrets(settings: Settings, host: HostObjects) -> None:
    """Warn of Secrets of backups that are not there, or that this user may not read.

    Raises pulumi.RunError if the host cannot tell.
    """
    backups = [team.backup for team in settings.teams.values() if team.backup]
    for namespace, secret in sorted({(backup.namespace, backup.secret) for backup in backups}):
        place = f"{_PATHS[NAMESPACE]}{namespace}"
        if host.at(f"{place}/secrets/{secret}"):
            continue
        create = "" if host.at(place) else f"kubectl create namespace {namespace} && "
        pulumi.log.warn(
            f"backups: Secret {secret} of namespace {namespace} is not there, or this user may not"
            " read it, and no backup is taken without it. Write RESTIC_PASSWORD=… and the store's"
            " credentials, such as AWS_ACCESS_KEY_ID=… and AWS_SECRET_ACCESS_KEY=…, a line each,"
            " into backup.env, keep that file where the loss of this cluster does not reach it,"
            f" and run: {create}kubectl -n {namespace} create secret generic {secret}"
            " --from-env-file=backup.env"
        )


def _nodes_of(pool: Mapping[str, str], host: HostObjects) -> list[dict[str, Any]]:
    """The host's nodes with these labels, as the provider answers; none if they cannot be read."""
    nodes = (host.at(_NODES) or {}).get("nodes", ())
    return [node for node in nodes if pool.items() <= node["labels"].items()]
