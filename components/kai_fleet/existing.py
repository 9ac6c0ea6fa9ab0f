"""Find existing objects on a host that a stack would declare: RuntimeClasses, CRDs, namespaces.

An object that is not in the stack's state belongs to somebody else. It is used if it fits, and not
declared, so that it is neither changed nor deleted.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pulumi
from pulumi.runtime import invoke

from kai_fleet.arguments import Arguments
from kai_fleet.cluster.connection import ClusterConnection
from kai_fleet.cluster.kube.objects import in_pool, tolerates
from kai_fleet.cluster.provider.queues import DEFAULT_QUEUES, PATH, TREE
from kai_fleet.deployed import Deployed
from kai_fleet.gpu_providers import GPU_PROVIDERS
from kai_fleet.guards.bounds import KAI_PRIORITIES
from kai_fleet.inputs import toleration_spec
from kai_fleet.names import EXISTING, NAMESPACE, NAMESPACE_PATCH, RELEASE, TEAM_LABEL
from kai_fleet.queue_specs import every_spec
from kai_fleet.releases import kai, version_key
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.settings import Settings
from kai_fleet.team_namespace import USED, namespace_labels
from kai_fleet.values import value_at

# Names of the two components in the program.
GPU_STACK: Final = "host-gpu"
KAI: Final = "host"
CRD: Final = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
RUNTIME_CLASS: Final = "kubernetes:node.k8s.io/v1:RuntimeClass"
_PATHS: Final = {
    CRD: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/",
    RUNTIME_CLASS: "/apis/node.k8s.io/v1/runtimeclasses/",
    NAMESPACE: "/api/v1/namespaces/",
}
_NODES: Final = "/api/v1/nodes"
_PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses/"
# Values in KAI's charts, which can leave the classes out from this version on.
_PRIORITIES: Final = dict(zip(KAI_PRIORITIES, (50, 75, 100, 125), strict=True))
_WITHOUT_PRIORITIES: Final = (0, 16, 7)
_ENFORCED_TOLERATIONS: Final = "sync.toHost.pods.enforceTolerations"
Answer = Mapping[str, Any]


class HostObjects:
    """Objects on a host, and whether the stack's state has them.

    Every object counts as absent where the state cannot be read, because the stack's own objects
    would look foreign; and where the cluster refuses the request, or did not answer once.

    Args:
        read: GET for a path of the API, as `read_existing` of the provider.
    """

    def __init__(self, read: Callable[[str], Answer], deployed: Deployed) -> None:
        self.deployed, self._read = deployed, read
        self._unreachable, self._refused = not deployed.readable, False
        self._answers: dict[str, Answer] = {}

    def at(self, path: str) -> Answer | None:
        """The answer about the object at a path of the API; None where it is absent."""
        if path not in self._answers:
            self._answers[path] = {} if self._unreachable else self._asked(path)
        answer = self._answers[path]
        return answer if answer.get("there") else None

    def foreign(self, kind: str, name: str, resource: str) -> Answer | None:
        """An existing object that is not this resource of the stack; else None."""
        if not name or self.deployed.has(kind, resource):
            return None
        return self.at(f"{_PATHS[kind]}{name}")

    def _asked(self, path: str) -> Answer:
        """Ask twice: one broken connection must not make foreign objects look absent."""
        answer = self._read(path)
        if answer.get("away"):
            answer = self._read(path)
        self._unreachable = bool(answer.get("away"))
        if self._unreachable:
            # The Kubernetes plugin previews all the same, as if the cluster were empty.
            pulumi.log.warn(
                f"the host cluster is not reached: {answer.get('problem')}. What it has already is"
                " not known, and an update can change nothing there"
            )
        elif answer.get("problem") and not self._refused:
            self._refused = True
            pulumi.log.warn(
                f"what the host cluster has already is not known: {answer['problem']} to GET"
                f" {path}. What others made there looks free in this run, and an update by this"
                " user may fail. Look with: kubectl auth can-i --list"
            )
        return answer


def find(
    settings: Settings,
    host: ClusterConnection,
    deployed: Deployed,
    package: pulumi.ProviderResource,
) -> dict[str, Any]:
    """Objects of others on the host that components of the stack use.

    None on a kind cluster of the stack, and in a team stack, whose platform declares them.

    Args:
        host: connection to the host.
        deployed: state of the stack.
        package: the package's provider, which reads the host; in an offline plan it reads nothing.

    Returns:
        `use_existing` of the GPU stack (`gpu`) and of the host's KAI (`kai`), and the `teams` with
        an existing namespace.

    Raises:
        pulumi.RunError: an existing object does not fit.
    """
    if settings.cluster.kind is not None or settings.platform_facts is not None:
        return {}

    def read(path: str) -> Answer:
        arguments = {"path": path, **host.properties()}
        answer: Any = invoke(EXISTING, arguments, pulumi.InvokeOptions(provider=package)).value
        return answer or {}

    return existing_of(settings, HostObjects(read, deployed))


def existing_of(settings: Settings, host: HostObjects) -> dict[str, Any]:
    """`find` for a given reader. Warn of node pools whose taints no pod of the team tolerates."""
    args = Arguments(settings)
    namespaces = {name: args.namespace(name) for name in (*settings.teams, *settings.team_stacks)}
    existing = {
        "gpu": gpu_stack(args.gpu_stack(), host),
        "kai": host_kai(args.host_kai(), args.host_queues(), host) if settings.kai else [],
        "teams": [
            name for name, namespace in namespaces.items() if is_of_others(name, namespace, host)
        ],
    }
    for name, team in settings.teams.items():
        if team.node_pool and not value_at(team.vcluster.values, _ENFORCED_TOLERATIONS):
            warn_of_taints(name, namespaces[name], settings.team_path(name), host)
    return existing


def gpu_stack(args: Mapping[str, Any], host: HostObjects) -> list[str]:
    """`use_existing` of a GpuStack. Raises pulumi.RunError beside an incompatible one."""
    kind, provider = args["provider"], GPU_PROVIDERS[args["provider"]]
    name, path = provider.runtime_class, f"{_PATHS[RUNTIME_CLASS]}{provider.runtime_class}"
    if name and (existing := host.at(path)) and existing["handler"] != name:
        raise pulumi.RunError(
            f"kai-fleet:gpu.provider: {kind} needs RuntimeClass {name} with handler {name}, and"
            f" this cluster's has handler {existing['handler']}, which this stack did not write."
            " Nothing was made. Write provider: none if the cluster's nodes advertise their"
            f" GPUs already, or agree with the owner of the class on the handler {name}; a"
            " handler cannot be changed, so the owner has to make it anew"
        )
    is_new = not host.deployed.has(RELEASE, f"{GPU_STACK}-release")
    if provider.rival and is_new and host.at(provider.rival):
        raise pulumi.RunError(
            f"kai-fleet:gpu.provider: {kind} would install a second GPU operator: this cluster has"
            f" one, with ClusterPolicy {provider.rival.rpartition('/')[2]}, which this stack did"
            " not make. Nothing was made. Write provider: none, which uses what is there"
        )
    declared = {
        "runtimeClass": (RUNTIME_CLASS, name, f"{GPU_STACK}-runtime-class"),
        "namespace": (NAMESPACE, provider.chart, f"{GPU_STACK}-namespace"),
    }
    return [key for key, resource in declared.items() if host.foreign(*resource)]


def host_kai(args: Mapping[str, Any], queues: Mapping[str, Any], host: HostObjects) -> list[str]:
    """`use_existing` of the host's KaiScheduler.

    Raises:
        pulumi.RunError: existing priority classes or default queues of KAI do not fit.
    """
    release = kai(args["version"], untested=bool(args.get("untested")))
    brought = "clusterPolicyCrd" in args.get("use_existing", ())
    needs_crd = release.needs_cluster_policy_crd and not brought
    crd = "clusterpolicies.nvidia.com" if needs_crd else ""
    declared = {
        "namespace": (NAMESPACE, KAI_NAMESPACE, f"{KAI}-kai-namespace"),
        "clusterPolicyCrd": (CRD, crd, f"{KAI}-kai-cluster-policy"),
    }
    existing = [key for key, resource in declared.items() if host.foreign(*resource)]
    if "defaultPriorityClasses" not in args.get("values", {}):
        existing += _priority_classes(release.version, host)
    for name, spec in every_spec(queues["queues"]):
        queue = host.at(f"{PATH}/{name}") if name in DEFAULT_QUEUES else None
        if queue is None or TREE in queue["labels"]:
            continue
        live = queue.get("spec") or {}
        differs = [
            f"{key} is {json.dumps(live.get(key))} there, and {json.dumps(spec.get(key))} here"
            for key in sorted(live.keys() | spec.keys())
            if live.get(key) != spec.get(key)
        ]
        if differs:
            raise pulumi.RunError(
                f"kai-fleet:queues: queue {name} is in the cluster already, from a KAI's chart, and"
                f" differs: {'; '.join(differs)}. Nothing was made. Write it as it is there, or"
                " give yours another name"
            )
    return existing


def _priority_classes(version: str, host: HostObjects) -> Iterator[str]:
    """`priorityClasses` if KAI's exist, belong to another release, and have its values."""
    classes = {name: host.at(f"{_PRIORITY_CLASSES}{name}") for name in _PRIORITIES}
    ours = f"{KAI_NAMESPACE}/kai-scheduler"
    others = [name for name, found in classes.items() if found and found.get("release") != ours]
    if not others:
        return
    wrong = [
        f"{name} has {found.get('value'):.0f} in place of {_PRIORITIES[name]}"
        if found
        else f"there is no {name}"
        for name, found in classes.items()
        if not found or found.get("value") != _PRIORITIES[name]
    ]
    lead = (
        f"kai-fleet:kai: priority classes of KAI ({', '.join(others)}) are in this cluster, made by"
        " others"
    )
    if version_key(version) < _WITHOUT_PRIORITIES:
        raise pulumi.RunError(
            f"{lead}, and the chart of {version} cannot leave them out. Nothing was made. Take KAI"
            " v0.16.7 or newer"
        )
    if wrong:
        raise pulumi.RunError(
            f"{lead}, and do not fit: {'; '.join(wrong)}. Nothing was made. Have their owner make"
            " them as KAI does, or write values: {defaultPriorityClasses: {enabled: false}} to go"
            " on with them as they are"
        )
    yield "priorityClasses"


def is_of_others(team: str, args: Mapping[str, Any], host: HostObjects) -> bool:
    """Whether the namespace for these TeamNamespaceArgs existed before the stack.

    One with the team's label but not label `kai-fleet/namespace` was created by an interrupted
    update of this stack, or by another stack.

    Raises:
        pulumi.RunError: its labels conflict with those of the team.
    """
    resource, name = f"{team}-namespace", args.get("name", f"team-{team}")
    if host.deployed.has(NAMESPACE_PATCH, resource):
        return True
    namespace = host.foreign(NAMESPACE, name, resource)
    if namespace is None:
        return False
    labels = namespace["labels"]
    if TEAM_LABEL in labels:
        return all(labels.get(key) == value for key, value in USED.items())
    desired = namespace_labels(team, args)
    differ = sorted(key for key, value in labels.items() if desired.get(key, value) != value)
    if differ:
        has = ", ".join(f"{key}={labels[key]}" for key in differ)
        wants = ", ".join(f"{key}={desired[key]}" for key in differ)
        raise pulumi.RunError(
            f"namespace {name} was on the cluster before this stack and is used for team"
            f" {team}, but it has {has}, and the team's labels are {wants}. Nothing was"
            " made. Agree with its owner and set the label: kubectl label namespace"
            f" {name} --overwrite {wants.replace(', ', ' ')}; or give the team another name"
        )
    return True


def warn_of_taints(team: str, args: Mapping[str, Any], path: str, host: HostObjects) -> None:
    """Warn of a taint that keeps a team's pods off all of its nodes, with the fix at `path`."""
    every = (host.at(_NODES) or {}).get("nodes", ())
    nodes = [node["taints"] for node in every if in_pool(node["labels"], args["node_pool"])]
    if closed := closed_pool(args.get("tolerations", ()), nodes, path):
        pulumi.log.warn(f"nodes of team {team}: {closed[0]}; {closed[1]}")


def closed_pool(
    tolerations: Iterable[Any], nodes: Sequence[Iterable[Mapping[str, str]]], path: str
) -> tuple[str, str] | None:
    """Cause and fix, written at `path`, if no node of a team's pool takes its pods.

    `nodes` are the taints of each node. Taints of `node.kubernetes.io/` are temporary: ignored.
    """
    specs: list[Any] = [toleration_spec(each) for each in tolerations]
    closing = [
        [
            taint
            for taint in taints
            if taint.get("effect") in ("NoSchedule", "NoExecute")
            and not taint["key"].startswith("node.kubernetes.io/")
            and not any(tolerates(spec, taint) for spec in specs)
        ]
        for taints in nodes
    ]
    if not closing or not all(closing):
        return None
    taint, keys = closing[0][0], ("key", "value", "effect")
    written = ", ".join(f"{key}: {json.dumps(taint[key])}" for key in keys if taint.get(key))
    return (
        f"each of its {len(nodes)} nodes has a taint ({taint['key']}) that the team does not"
        " tolerate: only pods that tolerate it themselves run there, its DNS not among them",
        f"write tolerations: [{{{written}}}] at {path}",
    )
