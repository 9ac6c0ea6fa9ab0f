"""A stack's state as `pulumi stack` shows it; nothing here writes one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulumi import automation

from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, rebuild
from kai_fleet.names import NAMESPACE_PATCH, RELEASE
from kai_fleet.values import get
from kai_fleet_cli.recovery.clusters import NoAnswerError

OF_VCLUSTER: Final = ":VirtualCluster$"  # in the URN of a vCluster's parts


@dataclass(frozen=True)
class ExportedState:
    """An exported deployment. `steps` are resources that a run could not create, by URN."""

    deployment: Mapping[str, Any]
    steps: Mapping[str, Mapping[str, Any]] | None = None

    @property
    def resources(self) -> list[dict[str, Any]]:
        """Every resource, in the order in which they depend on one another."""
        resources = self.deployment.get("resources")
        return resources if isinstance(resources, list) else []

    def resource(self, urn: str) -> Mapping[str, Any]:
        """The resource of that URN; empty where there is none."""
        step = (self.steps or {}).get(urn, {})
        return next((item for item in self.resources if item["urn"] == urn), step)

    def urns(self) -> set[str]:
        """The URNs of the resources in the state."""
        return set(self.parents())

    def parents(self) -> dict[str, str]:
        """The URN of what each resource is a part of."""
        return {str(item["urn"]): str(item.get("parent") or "") for item in self.resources}

    @property
    def pending(self) -> list[tuple[str, dict[str, Any]]]:
        """Operations that a run began and did not finish, each with its resource."""
        operations = self.deployment.get("pending_operations") or []
        return [(operation["type"], operation["resource"]) for operation in operations]

    def pending_objects(self) -> list[Mapping[str, Any]]:
        """The Kubernetes objects that a run began to create, without learning whether they exist.
        Helm itself knows that of a release, and a patch is applied again.
        """
        return [
            resource
            for operation, resource in self.pending
            if operation == "creating"
            and resource["type"].startswith("kubernetes:")
            and resource["type"] not in (RELEASE, NAMESPACE_PATCH)
            and resource["urn"] not in self.urns()
        ]


def exported(
    stack: automation.Stack, steps: Mapping[str, Mapping[str, Any]] | None = None
) -> ExportedState:
    """The stack's state with its secrets encrypted. Raises CommandError.

    The Automation API's own export has them in clear, and takes twice as long.
    """
    return ExportedState(_ask(stack, "export").get("deployment") or {}, steps)


def kubeconfig(stack: automation.Stack, team: str) -> str:
    """A vCluster's kubeconfig as the last update exported it, built anew: the state of a team
    stack is the team's to write. Raises NoAnswerError where there is none to use.
    """
    try:
        kubeconfigs = _ask(stack, "output", "kubeconfigs", "--json", "--show-secrets")
        return rebuild(str(get(kubeconfigs, team) or ""))
    except (TenantKubeconfigError, automation.errors.CommandError) as why:
        raise NoAnswerError(f"its kubeconfig in the state {why}") from None


def _ask(stack: automation.Stack, *arguments: str) -> Any:
    """The JSON that `pulumi stack …` prints, parsed."""
    workspace = stack.workspace
    command = ["stack", *arguments, "--stack", stack.name]
    done = workspace.pulumi_command.run(command, workspace.work_dir, dict(workspace.env_vars))
    return json.loads(done.stdout)


def provider_of(resource: Mapping[str, Any]) -> str:
    """The URN of a resource's provider; "" where it has none."""
    return str(resource.get("provider", "")).rpartition("::")[0]
