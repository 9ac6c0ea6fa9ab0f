"""A stack's state as `pulumi stack` shows it; nothing here writes one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pulumi import automation

from kai_fleet.cluster.tenant_kubeconfig import rebuild
from kai_fleet.names import IDENTITY, STACK, VIRTUAL_CLUSTER
from kai_fleet.urns import provider_urn, read_urn
from kai_fleet.values import get

Resource = Mapping[str, Any]


@dataclass(frozen=True)
class KnownVcluster:
    """A vCluster as the last update saw it: the URN of its component, the UID of its namespace
    `kube-system`, its namespace on the host, and the URL of its API.
    """

    urn: str
    uid: str
    namespace: str
    server: str


@dataclass(frozen=True)
class State:
    """The resources by URN, in the order in which they depend on one another.

    `pending` are the operations that a run began and did not finish, each with its resource.
    """

    resources: Mapping[str, Resource] = field(default_factory=dict)
    pending: Sequence[tuple[str, Resource]] = ()

    @property
    def outputs(self) -> Mapping[str, Any]:
        """The outputs of the last update; secrets encrypted."""
        stacks = (item for item in self.resources.values() if item["type"] == STACK)
        return next((item.get("outputs") or {} for item in stacks), {})

    @property
    def parents(self) -> dict[str, str]:
        """The URN of what each resource is a part of."""
        return {urn: str(item.get("parent") or "") for urn, item in self.resources.items()}

    @property
    def vclusters(self) -> dict[str, KnownVcluster]:
        """The vClusters by name, those that an update waited for."""
        found = dict[str, KnownVcluster]()
        for urn, item in self.resources.items():
            name = read_urn(urn).name
            vcluster = str(item.get("parent") or "")
            if item.get("delete") or not name.endswith(IDENTITY) or not vcluster:
                continue
            if read_urn(vcluster).type != VIRTUAL_CLUSTER:
                continue
            (uid,) = item["inputs"]["triggers"]
            place = item["inputs"]["environment"]
            found[name.removesuffix(IDENTITY)] = KnownVcluster(
                urn=vcluster,
                uid=uid,
                namespace=place["VCLUSTER_NAMESPACE"],
                server=place["VCLUSTER_SERVER"],
            )
        return found


def exported(workspace: automation.Workspace, stack: str) -> State:
    """A stack's state with its secrets encrypted. Raises CommandError.

    The Automation API's own export has them in clear, and takes twice as long.
    """
    return of_export(_ask(workspace, stack, "export"))


def of_export(document: Mapping[str, Any]) -> State:
    """The state in what `pulumi stack export` prints."""
    deployment = document.get("deployment") or {}
    operations = deployment.get("pending_operations") or []
    return State(
        {str(item["urn"]): item for item in deployment.get("resources") or []},
        [(operation["type"], operation["resource"]) for operation in operations],
    )


def kubeconfig(stack: automation.Stack, team: str) -> str:
    """A vCluster's kubeconfig as the last update exported it, built anew: the state of a team
    stack is the team's to write. Raises TenantKubeconfigError, CommandError.
    """
    output = ("output", "kubeconfigs", "--json", "--show-secrets")
    kubeconfigs = _ask(stack.workspace, stack.name, *output)
    return rebuild(str(get(kubeconfigs, team) or ""))


def _ask(workspace: automation.Workspace, stack: str, *arguments: str) -> Any:
    """The JSON that `pulumi stack …` prints, parsed."""
    command = ["stack", *arguments, "--stack", stack]
    done = workspace.pulumi_command.run(command, workspace.work_dir, dict(workspace.env_vars))
    return json.loads(done.stdout)


def clusters_of(resource: Resource) -> set[str]:
    """The vClusters, by URNs of what stands for them, that a resource is in or is deleted with."""
    urns = {provider_of(resource), str(resource.get("deletedWith") or "")}
    return {urn for urn in urns if VIRTUAL_CLUSTER in read_urn(urn).above}


def provider_of(resource: Resource) -> str:
    """The URN of a resource's provider; "" where it has none."""
    return provider_urn(str(resource.get("provider", "")))
