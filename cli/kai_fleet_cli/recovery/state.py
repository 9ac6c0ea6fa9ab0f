"""A stack's state as `pulumi stack export` shows it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulumi import automation

from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, rebuild
from kai_fleet.deployed import NAMESPACE_PATCH, RELEASE, STACK
from kai_fleet.provider.values import SECRET_MARK, SIGNATURE
from kai_fleet.values import get
from kai_fleet_cli.recovery.clusters import NoAnswerError

OF_VCLUSTER: Final = ":VirtualCluster$"  # in the URN of a vCluster's parts
_OBJECT: Final = "kubernetes:"  # what the types of a cluster's objects begin with


@dataclass(frozen=True)
class ExportedState:
    """An exported deployment; nothing here writes one. `steps` are resources that a run could not
    make, by URN.
    """

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
        """The resources that the state has."""
        return set(self.parents())

    def parents(self) -> dict[str, str]:
        """The URN of what each resource is a part of."""
        return {str(item["urn"]): str(item.get("parent") or "") for item in self.resources}

    def pending(self) -> list[str]:
        """What a run had begun and not ended, in words."""
        return [
            f"{operation['resource']['type'].rpartition(':')[2]}"
            f" {operation['resource']['urn'].rpartition('::')[2]} ({operation['type']})"
            for operation in self.deployment.get("pending_operations") or []
        ]

    def pending_objects(self) -> list[Mapping[str, Any]]:
        """The objects of clusters that a run had begun to make: whether they are there, it did not
        learn. A Helm release tells that by itself, and a patch is applied anew.
        """
        return [
            operation["resource"]
            for operation in self.deployment.get("pending_operations") or []
            if operation["type"] == "creating"
            and str(operation["resource"]["type"]).startswith(_OBJECT)
            and operation["resource"]["type"] not in (RELEASE, NAMESPACE_PATCH)
            and operation["resource"]["urn"] not in self.urns()
        ]

    def kubeconfig(self, team: str) -> str:
        """A vCluster's kubeconfig as the last update exported it, built anew: the state of a team
        stack is the team's to write. Raises NoAnswerError where there is none to use.
        """
        stack = next((item for item in self.resources if item["type"] == STACK), {"outputs": None})
        try:
            return rebuild(str(get(opened(stack.get("outputs")), "kubeconfigs", team) or ""))[0]
        except TenantKubeconfigError as why:
            raise NoAnswerError(f"its kubeconfig in the state {why}") from None


def exported(stack: automation.Stack) -> ExportedState:
    """The stack's state with its secrets encrypted, by `pulumi stack export`. Raises CommandError.

    The Automation API's own export has them in clear, and takes twice as long.
    """
    workspace = stack.workspace
    command = ["stack", "export", "--stack", stack.name]
    done = workspace.pulumi_command.run(command, workspace.work_dir, dict(workspace.env_vars))
    return ExportedState(json.loads(done.stdout).get("deployment") or {})


def read(
    stack: automation.Stack, steps: Mapping[str, Mapping[str, Any]] | None = None
) -> ExportedState:
    """The stack's state, secrets in clear: for this process only. Raises CommandError."""
    return ExportedState(stack.export_stack().deployment or {}, steps)


def provider_of(resource: Mapping[str, Any]) -> str:
    """The URN of a resource's provider; "" where it has none."""
    return str(resource.get("provider", "")).rpartition("::")[0]


def object_id(resource: Mapping[str, Any]) -> str:
    """What the Kubernetes provider calls an object: `namespace/name`, or its name."""
    metadata = (resource.get("inputs") or {}).get("metadata") or {}
    parts = (metadata.get("namespace"), metadata.get("name"))
    return "/".join(str(part) for part in parts if part)


def is_secret(value: Any) -> bool:
    """Whether a value of a state is a secret, encrypted or in clear."""
    return isinstance(value, Mapping) and value.get(SIGNATURE) == SECRET_MARK


def opened(value: Any) -> Any:
    """A value with its secrets opened at any depth; None for one that is still encrypted."""
    if is_secret(value):
        text = value.get("plaintext")
        return opened(json.loads(text)) if isinstance(text, str) else None
    if isinstance(value, Mapping):
        return {key: opened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [opened(item) for item in value]
    return value
