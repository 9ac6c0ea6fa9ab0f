"""A stack's state as `pulumi stack export` shows it: what an interrupted run left in it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulumi import automation

from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, rebuild
from kai_fleet.fleet.deployed_state import PROVIDERS, RELEASE
from kai_fleet.provider.values import SECRET_MARK, SIGNATURE

OF_VCLUSTER: Final = ":VirtualCluster$"  # in the URN of a vCluster's parts
REFUSED: Final = "kubeconfigRefused"


@dataclass(frozen=True)
class Operation:
    """What a run had begun on a resource when it ended.

    `kind`: creating, updating, deleting; replacing is a release whose old one is gone. `failed`:
    the run went on to its end, and the state has what came of it.
    """

    kind: str
    resource: Mapping[str, Any]
    failed: bool = False

    @property
    def urn(self) -> str:
        """The resource's URN."""
        return str(self.resource["urn"])

    @property
    def type(self) -> str:
        """The resource's type token."""
        return str(self.resource["type"])

    @property
    def of_vcluster(self) -> bool:
        """Whether it is the release of a vCluster."""
        return f"{OF_VCLUSTER}{RELEASE}::" in self.urn

    @property
    def inside(self) -> bool:
        """Whether its cluster is a vCluster of the stack: its provider is a part of one."""
        return OF_VCLUSTER in provider_of(self.resource)

    @property
    def address(self) -> tuple[str, str]:
        """The object's namespace, "" where it has none, and its name."""
        inputs = self.resource.get("inputs") or {}
        if self.type == RELEASE:
            return str(inputs.get("namespace", "")), str(inputs.get("name", ""))
        metadata = inputs.get("metadata") or {}
        return str(metadata.get("namespace") or ""), str(metadata.get("name", ""))

    @property
    def id(self) -> str:
        """What the provider calls it."""
        namespace, name = self.address
        return f"{namespace}/{name}" if namespace else name

    def __str__(self) -> str:
        """Its kind and its name in the program."""
        kind = self.type.rsplit(":", 1)[-1]
        return f"{kind} {self.urn.rpartition('::')[2]}"


class ExportedState:
    """An exported deployment; nothing here writes one."""

    def __init__(self, deployment: Mapping[str, Any]) -> None:
        self._deployment = deployment

    @property
    def resources(self) -> list[dict[str, Any]]:
        """Every resource, in the order in which they depend on one another."""
        resources = self._deployment.get("resources")
        return resources if isinstance(resources, list) else []

    def urns(self) -> set[str]:
        """The resources that the state has."""
        return {str(resource["urn"]) for resource in self.resources}

    def operations(self) -> list[Operation]:
        """What was begun and not ended, and releases that are not there as a whole."""
        entries = self._deployment.get("pending_operations") or []
        pending = [Operation(str(entry["type"]), entry["resource"]) for entry in entries]
        known = {operation.urn for operation in pending}
        return pending + [
            Operation(kind, resource, failed=True)
            for resource in self.resources
            if resource["type"] == RELEASE and resource["urn"] not in known
            if (kind := _unfinished(resource))
        ]

    def providers(self) -> dict[str, dict[str, Any]]:
        """The inputs of the stack's providers by URN.

        Of a vCluster's, the kubeconfig is built anew: a team stack's state is the team's to write.
        One that is refused has the reason at `REFUSED`, and no way to a cluster.
        """
        providers = {
            str(resource["urn"]): opened(resource.get("inputs") or {})
            for resource in self.resources
            if str(resource["type"]).startswith(PROVIDERS)
        }
        for urn, inputs in providers.items():
            if OF_VCLUSTER in urn:
                try:
                    inputs["kubeconfig"] = rebuild(str(inputs.get("kubeconfig") or ""))[0]
                except TenantKubeconfigError as why:
                    providers[urn] = {REFUSED: f"its kubeconfig in the state {why}"}
        return providers


def _unfinished(release: Mapping[str, Any]) -> str:
    """What an earlier run was doing with a release that it did not end; "" for nothing."""
    if release.get("pendingReplacement"):
        return "replacing"
    status = ((release.get("outputs") or {}).get("status") or {}).get("status")
    if release.get("initErrors") or status not in (None, "deployed", "failed"):
        return "updating"
    return ""


def exported(stack: automation.Stack) -> ExportedState:
    """The stack's state with its secrets encrypted, by `pulumi stack export`. Raises CommandError.

    The Automation API's own export has them in clear, and takes twice as long.
    """
    workspace = stack.workspace
    command = ["stack", "export", "--stack", stack.name]
    done = workspace.pulumi_command.run(command, workspace.work_dir, dict(workspace.env_vars))
    return ExportedState(json.loads(done.stdout).get("deployment") or {})


def read(stack: automation.Stack) -> ExportedState:
    """The stack's state, secrets in clear: for this process only. Raises CommandError."""
    return ExportedState(stack.export_stack().deployment or {})


def needed_by(resource: Mapping[str, Any]) -> set[str]:
    """The URNs without which a resource cannot be: those it depends on, is in, or goes with."""
    one = (resource.get("parent"), resource.get("deletedWith"), provider_of(resource))
    return {str(urn) for urn in (*one, *(resource.get("dependencies") or ())) if urn}


def provider_of(resource: Mapping[str, Any]) -> str:
    """The URN of a resource's provider; "" where it has none."""
    return str(resource.get("provider", "")).rpartition("::")[0]


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
