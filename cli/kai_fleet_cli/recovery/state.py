"""A stack's state as `pulumi stack` prints it. Nothing here writes a state."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pulumi import automation

from kai_fleet.cluster.tenant_kubeconfig import rebuild
from kai_fleet.names import IDENTITY, STACK, VIRTUAL_CLUSTER
from kai_fleet.urns import provider_urn, read_urn
from kai_fleet.values import get

# A resource in a state: JSON of the engine.
Resource = Mapping[str, Any]
# Resources by URN.
Resources = Mapping[str, Resource]
# Errors by the URN of their resource.
Errors = Mapping[str, str]


@dataclass(frozen=True)
class KnownVcluster:
    """A vCluster as the last update saw it.

    Attributes:
        urn: The URN of its component.
        uid: The UID of its namespace `kube-system`.
        namespace: Its namespace on the host.
        server: The URL of its API server.
    """

    urn: str
    uid: str
    namespace: str
    server: str


class PendingOperation(NamedTuple):
    """An operation such as `creating` that a run began and did not finish, and its resource."""

    operation: str
    resource: Resource


@dataclass(frozen=True)
class State:
    """A stack's state.

    Attributes:
        resources: The resources by URN, each after those on which it depends. Of several with one
            URN, such as a new one and an old one that is still to be deleted, it has the last.
        pending: The operations that a run began and did not finish.
    """

    resources: Resources = field(default_factory=dict)
    pending: Sequence[PendingOperation] = ()

    @property
    def outputs(self) -> Mapping[str, Any]:
        """The stack's outputs after the last update, secrets encrypted; empty before the first."""
        for resource in self.resources.values():
            if resource["type"] == STACK:
                return resource.get("outputs") or {}
        return {}

    @property
    def parents(self) -> dict[str, str]:
        """The URN of each resource's parent, by URN; "" for no parent."""
        return {urn: parent_of(resource) for urn, resource in self.resources.items()}

    def urns_of(self, kind: str, names: Collection[str]) -> list[str]:
        """The URNs of the resources of a type that have one of these names."""
        of_kind = [urn for urn in self.resources if read_urn(urn).type == kind]
        return [urn for urn in of_kind if read_urn(urn).name in names]

    @property
    def vclusters(self) -> dict[str, KnownVcluster]:
        """The vClusters for whose API an update waited, by name.

        Not those whose last update was one of kai-fleet before 0.5, which kept no environment, nor
        old ones that are still to be deleted after their replacement.

        Raises one of MALFORMED for a wait that kai-fleet did not write.
        """
        vclusters: dict[str, KnownVcluster] = {}
        for urn, resource in self.resources.items():
            name = read_urn(urn).name
            parent = parent_of(resource)
            if resource.get("delete") or not name.endswith(IDENTITY):
                continue
            if read_urn(parent).type != VIRTUAL_CLUSTER:
                continue
            environment = resource["inputs"].get("environment")
            if environment is None:
                continue
            (uid,) = resource["inputs"]["triggers"]
            vclusters[name.removesuffix(IDENTITY)] = KnownVcluster(
                urn=parent,
                uid=uid,
                namespace=environment["VCLUSTER_NAMESPACE"],
                server=environment["VCLUSTER_SERVER"],
            )
        return vclusters


def exported(
    workspace: automation.Workspace,
    stack: str,
) -> State:
    """Read a stack's state with its secrets encrypted.

    The Automation API's own export decrypts them, and takes twice as long. Raises CommandError if
    the state cannot be read, and as `of_export` for an answer of another form.
    """
    return of_export(_stack_json(workspace, stack, "export"))


def of_export(document: Mapping[str, Any]) -> State:
    """The state in the JSON of `pulumi stack export`; an empty one before the first update.

    Raises KeyError, TypeError or AttributeError for JSON of another form.
    """
    deployment = document.get("deployment") or {}
    resources = deployment.get("resources") or []
    pending = deployment.get("pending_operations") or []
    return State(
        resources={str(resource["urn"]): resource for resource in resources},
        pending=[PendingOperation(item["type"], item["resource"]) for item in pending],
    )


def kubeconfig(stack: automation.Stack, team: str) -> str:
    """The kubeconfig of a team's vCluster that the last update exported, with its private key.

    It is built anew, because a team may write the state of its own stack.

    Raises:
        TenantKubeconfigError: There is none, or vCluster did not write it.
        CommandError: The state cannot be read.
    """
    arguments = ("output", "kubeconfigs", "--json", "--show-secrets")
    return rebuild(str(get(_stack_json(stack.workspace, stack.name, *arguments), team) or ""))


def _stack_json(
    workspace: automation.Workspace,
    stack: str,
    *arguments: str,
) -> Any:
    """The parsed JSON of a `pulumi stack` command; `arguments` are those behind `stack`.

    Raises CommandError if the command fails, ValueError if it prints no JSON.
    """
    command = ["stack", *arguments, "--stack", stack]
    result = workspace.pulumi_command.run(command, workspace.work_dir, dict(workspace.env_vars))
    return json.loads(result.stdout)


def clusters_of(resource: Resource) -> set[str]:
    """The vClusters that a resource is in or is deleted with.

    Each is the URN of a resource that stands for it: a provider, or one in a `VirtualCluster`.
    Empty for a resource on the host. What `of_step` returns does not say what it is deleted with.
    """
    urns = [
        provider_of(resource),
        str(resource.get("deletedWith") or ""),
    ]
    return {urn for urn in urns if VIRTUAL_CLUSTER in read_urn(urn).above}


def urns_within(clusters: set[str], resources: Resources) -> list[str]:
    """The URNs of resources in these vClusters or deleted with them, in the order of `resources`.

    `clusters` are as `clusters_of` has them.
    """
    return [urn for urn, resource in resources.items() if clusters & clusters_of(resource)]


def parent_of(resource: Resource) -> str:
    """The URN of a resource's parent; "" for none."""
    return str(resource.get("parent") or "")


def provider_of(resource: Resource) -> str:
    """The URN of a resource's provider, without the provider's ID; "" for none."""
    return provider_urn(str(resource.get("provider", "")))


def of_step(state: automation.StepEventStateMetadata) -> Resource:
    """A resource as an event of the engine has it, like one in a state, but without its outputs,
    its ID and what it is deleted with.
    """
    return {
        "urn": state.urn,
        "type": state.type,
        "parent": state.parent,
        "provider": state.provider,
        "inputs": state.inputs,
    }
