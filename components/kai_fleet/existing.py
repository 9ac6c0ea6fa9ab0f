"""Find objects of others on a host that a stack would declare: RuntimeClasses, CRDs, namespaces.

An object that is not in the stack's state belongs to somebody else. It is used if it fits, and not
declared, so that it is neither changed nor deleted.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi.runtime import invoke

from kai_fleet.arguments import Arguments
from kai_fleet.cluster.connection import ClusterConnection
from kai_fleet.cluster.kube.objects import closed_pool, in_pool
from kai_fleet.cluster.provider.queues import DEFAULT_QUEUES, PATH, TREE
from kai_fleet.deployed import Deployed
from kai_fleet.guards.bounds import KAI_PRIORITIES
from kai_fleet.guards.policies import policy_name
from kai_fleet.names import EXISTING, NAMESPACE, NAMESPACE_PATCH, RELEASE, TEAM_LABEL
from kai_fleet.queue_specs import every_spec
from kai_fleet.releases import GPU_PROVIDERS, kai, version_key
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.settings import Settings
from kai_fleet.team_namespace import USED, namespace_labels
from kai_fleet.urns import read_urn
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
# ClusterRole `system:discovery` lets every account that has logged in ask this, and nobody else.
_ANY_USER: Final = "/api"
_POLICIES: Final = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/"
_ENFORCED_TOLERATIONS: Final = "sync.toHost.pods.enforceTolerations"
_PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses/"
# Values in KAI's charts, which can leave the classes out from this version on.
_PRIORITIES: Final = dict(zip(KAI_PRIORITIES, (50, 75, 100, 125), strict=True))
_WITHOUT_PRIORITIES: Final = "v0.16.7"
Answer = Mapping[str, Any]
_UNREACHED: Final = (
    "kai-fleet:cluster: there is no preview and no update without the host cluster: {}. Nothing was"
    " made. Write a context of your kubeconfig that reaches it as a user (kubectl --context NAME"
    " auth whoami), or log in. Without a cluster: .venv/bin/fleet plan"
)


@dataclass
class HostObjects:
    """Objects on a host, and whether the stack's state has them.

    `read` gets a path of the API, as `read_existing` of the provider. Where this user may not look,
    an object counts as absent: who may not look may not make it either.
    """

    read: Callable[[str], Answer]
    deployed: Deployed
    warned: bool = False

    def require(self) -> None:
        """Raise pulumi.RunError where the host does not answer, or does not know this user."""
        if problem := self._answer(_ANY_USER).get("problem"):
            raise pulumi.RunError(_UNREACHED.format(problem))

    def _answer(self, path: str) -> Answer:
        """The answer about a path, asked twice where a connection broke."""
        answer = self.read(path)
        if answer.get("away"):
            answer = self.read(path)
        return answer

    def at(self, path: str) -> Answer | None:
        """The answer about the object at a path of the API; None where it is absent.

        Raises pulumi.RunError where the cluster does not say: what was not read is not absent.
        """
        answer = self._answer(path)
        problem = answer.get("problem")
        if problem and not answer.get("denied"):
            raise pulumi.RunError(_UNREACHED.format(f"{problem} to GET {path}"))
        if problem and not self.warned:
            self.warned = True
            pulumi.log.warn(
                f"what the host cluster has already is not known: {problem} to GET {path}. What"
                " others made there looks free in this run, and an update may fail. Look with:"
                " kubectl auth can-i --list"
            )
        return answer if answer.get("there") else None

    def foreign(self, kind: str, name: str, resource: str) -> Answer | None:
        """An existing object that is not this resource of the stack; else None."""
        if not name or self.deployed.has(kind, resource):
            return None
        return self.at(f"{_PATHS[kind]}{name}")


def find(
    settings: Settings,
    host: ClusterConnection,
    deployed: Deployed,
    package: pulumi.ProviderResource,
) -> dict[str, Any]:
    """Objects of others on the host that components of the stack use.

    None on a kind cluster of the stack, which may be made yet, and in a team stack, whose platform
    declares them.

    Args:
        package: the package's provider, which reads the host; in an offline plan it reads nothing.

    Returns:
        `use_existing` of the GPU stack (`gpu`) and of the host's KAI (`kai`), and the `teams` with
        an existing namespace.

    Raises:
        pulumi.RunError: an existing object does not fit, the stack's state cannot be read, or the
            host does not answer this user.
    """
    if settings.cluster.kind is not None:
        return {}
    of_team = settings.platform_facts is not None
    if not of_team and not deployed.readable:
        raise pulumi.RunError(
            "kai-fleet:cluster: the stack's state cannot be read, and without it what others made"
            " on the host looks like the stack's own. Nothing was made. Run the same again"
        )

    def read(path: str) -> Answer:
        arguments = {"path": path, **host.properties()}
        answer: Any = invoke(EXISTING, arguments, pulumi.InvokeOptions(provider=package)).value
        return answer or {}

    objects = HostObjects(read, deployed)
    objects.require()
    return {} if of_team else existing_of(settings, objects)


def existing_of(settings: Settings, host: HostObjects) -> dict[str, Any]:
    """`find` for a given reader."""
    _refuse_second_stack(host)
    args, teams = Arguments(settings), (*settings.teams, *settings.team_stacks)
    for name, team in settings.teams.items():
        if team.node_pool and not value_at(team.vcluster.values, _ENFORCED_TOLERATIONS):
            warn_of_taints(name, args.namespace(name), settings.team_path(name), host)
    return {
        "gpu": gpu_stack(args.gpu_stack(), host),
        "kai": host_kai(args.host_kai(), args.host_queues(), host) if settings.kai else [],
        "teams": [name for name in teams if is_of_others(name, args.namespace(name), host)],
    }


def _refuse_second_stack(host: HostObjects) -> None:
    """Raise pulumi.RunError where a stack without any state finds the guards of another one."""
    guard = policy_name("pods")
    types = (read_urn(urn).type for urn in host.deployed.urns)
    has_any = any(not kind.startswith("pulumi:") for kind in types)  # beside stack and providers
    if not has_any and host.at(f"{_POLICIES}{guard}"):
        raise pulumi.RunError(
            "kai-fleet:cluster: another stack has this cluster: its guards are there, and this one"
            " has made nothing. If the stack's name, or the project's in Pulumi.yaml, was edited,"
            " write the old one; else run that stack, or write another context. If nobody has that"
            f" stack any more: kubectl delete validatingadmissionpolicy {guard}"
        )


def gpu_stack(args: Mapping[str, Any], host: HostObjects) -> list[str]:
    """`use_existing` of a GpuStack. Raises pulumi.RunError beside an incompatible one."""
    kind, provider = args["provider"], GPU_PROVIDERS[args["provider"]]
    name = provider.runtime_class
    runtime_class = host.foreign(RUNTIME_CLASS, name, f"{GPU_STACK}-runtime-class")
    is_new = not host.deployed.has(RELEASE, f"{GPU_STACK}-release")
    lead = f"kai-fleet:gpu.provider: others set up GPUs in this cluster: {kind}"
    if runtime_class and runtime_class["handler"] != name:
        raise pulumi.RunError(
            f"{lead} needs RuntimeClass {name} with handler {name}, and theirs has handler"
            f" {runtime_class['handler']}. Nothing was made. Write provider: none if the nodes"
            " advertise their GPUs already, or have its owner make the class anew with that handler"
        )
    if provider.rival and is_new and host.at(provider.rival):
        raise pulumi.RunError(
            f"{lead} would install a second GPU operator beside that of ClusterPolicy"
            f" {provider.rival.rpartition('/')[2]}. Nothing was made. Write provider: none"
        )
    namespace = host.foreign(NAMESPACE, provider.chart, f"{GPU_STACK}-namespace")
    found = {"runtimeClass": runtime_class, "namespace": namespace}
    return [key for key, existing in found.items() if existing]


def host_kai(args: Mapping[str, Any], queues: Mapping[str, Any], host: HostObjects) -> list[str]:
    """`use_existing` of the host's KaiScheduler.

    Raises:
        pulumi.RunError: existing priority classes or default queues of KAI do not fit.
    """
    release = kai(args["version"], untested=bool(args.get("untested")))
    brought = "clusterPolicyCrd" in args.get("use_existing", ())
    needs_crd = release.needs_cluster_policy_crd and not brought
    crd = "clusterpolicies.nvidia.com" if needs_crd else ""
    own_classes = "defaultPriorityClasses" in args.get("values", {})
    found = {
        "namespace": host.foreign(NAMESPACE, KAI_NAMESPACE, f"{KAI}-kai-namespace"),
        "clusterPolicyCrd": host.foreign(CRD, crd, f"{KAI}-kai-cluster-policy"),
        "priorityClasses": not own_classes and _uses_priority_classes(release.version, host),
    }
    for name, spec in every_spec(queues["queues"]):
        queue = host.at(f"{PATH}/{name}") if name in DEFAULT_QUEUES else None
        if queue is not None and TREE not in queue["labels"] and queue["spec"] != spec:
            has, wants = (json.dumps(each, sort_keys=True) for each in (queue["spec"], spec))
            raise pulumi.RunError(
                f"kai-fleet:queues: queue {name} is in the cluster already, from a KAI's chart: it"
                f" has {has}, and yours {wants}. Nothing was made. Write it as it is there, or give"
                " yours another name"
            )
    return [key for key, existing in found.items() if existing]


def _uses_priority_classes(version: str, host: HostObjects) -> bool:
    """Whether KAI's priority classes are those of another release, with the same values."""
    classes = {name: host.at(f"{_PRIORITY_CLASSES}{name}") for name in _PRIORITIES}
    ours = f"{KAI_NAMESPACE}/kai-scheduler"
    if all(found.get("release") == ours for found in classes.values() if found):
        return False
    values = {name: int(found["value"]) if found else None for name, found in classes.items()}
    if values == _PRIORITIES and version_key(version) >= version_key(_WITHOUT_PRIORITIES):
        return True
    has, wants = (
        ", ".join(f"{name} {value or 'absent'}" for name, value in each.items())
        for each in (values, _PRIORITIES)
    )
    raise pulumi.RunError(
        f"kai-fleet:kai: priority classes of KAI are in this cluster, made by others: {has}."
        f" Nothing was made. KAI {_WITHOUT_PRIORITIES} or newer uses them if they are {wants};"
        " with values: {defaultPriorityClasses: {enabled: false}} it takes them as they are"
    )


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
    labels, desired = namespace["labels"], namespace_labels(team, args)
    if TEAM_LABEL in labels:
        return bool(USED.items() <= labels.items())
    differ = sorted(key for key, value in labels.items() if desired.get(key, value) != value)
    if differ:
        has, wants = (
            " ".join(f"{key}={each[key]}" for key in differ) for each in (labels, desired)
        )
        raise pulumi.RunError(
            f"namespace {name} was on the cluster before this stack and is used for team {team},"
            f" but it has {has}. Nothing was made. Agree with its owner and run: kubectl label"
            f" namespace {name} --overwrite {wants}; or give the team another name"
        )
    return True


def warn_of_taints(team: str, args: Mapping[str, Any], path: str, host: HostObjects) -> None:
    """Warn of a taint that keeps a team's pods off all of its nodes, with the fix at `path`."""
    every = (host.at(_NODES) or {}).get("nodes", ())
    nodes = [node["taints"] for node in every if in_pool(node["labels"], args["node_pool"])]
    if closed := closed_pool(args.get("tolerations", ()), nodes, path):
        pulumi.log.warn(f"nodes of team {team}: {closed[0]}; {closed[1]}")
