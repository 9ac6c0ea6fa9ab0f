"""A stack's state as a document: what an interrupted run left in it, and how it is edited.

Secrets stay encrypted in what is read and written here, so none gets near a file in clear.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pulumi import automation

from fleet.recovery import file_backend
from fleet.state_secrets import has_secrets, in_clear, opened

RELEASE: Final = "kubernetes:helm.sh/v3:Release"
NAMESPACE: Final = "kubernetes:core/v1:Namespace"
_KUBERNETES: Final = "kubernetes:"


@dataclass(frozen=True)
class Operation:
    """What a run had begun on a resource when it ended; `kind`: creating, updating, deleting…"""

    kind: str
    resource: Mapping[str, Any]

    @property
    def urn(self) -> str:
        """The resource's URN."""
        return str(self.resource["urn"])

    @property
    def type(self) -> str:
        """The resource's type token."""
        return str(self.resource["type"])

    @property
    def on_cluster(self) -> bool:
        """Whether it is an object or a release on some cluster."""
        return self.type.startswith(_KUBERNETES)

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


class State:
    """An exported deployment. Edits are written back by `save`.

    `unchanged` tells whether it is certain that nobody has written the state since it was read.
    """

    def __init__(
        self, document: dict[str, Any], unchanged: Callable[[], bool] = lambda: False
    ) -> None:
        self._document = document
        self.unchanged = unchanged

    @property
    def deployment(self) -> dict[str, Any]:
        """The part that holds resources; empty before the first update."""
        found = self._document.get("deployment")
        return found if isinstance(found, dict) else {}

    @property
    def resources(self) -> list[dict[str, Any]]:
        """Every resource, in the order in which they depend on one another."""
        found = self.deployment.get("resources")
        return found if isinstance(found, list) else []

    def urns(self) -> set[str]:
        """The resources that the state has."""
        return {str(resource["urn"]) for resource in self.resources}

    def operations(self) -> list[Operation]:
        """What was begun and not ended, and releases whose last change did not end well."""
        pending = self.deployment.get("pending_operations") or []
        found = [Operation(str(each["type"]), each["resource"]) for each in pending]
        known = {operation.urn for operation in found}
        return found + [
            Operation("updating", resource)
            for resource in self.resources
            if resource["type"] == RELEASE
            and resource.get("initErrors")
            and resource["urn"] not in known
        ]

    def adopt(self, operation: Operation) -> None:
        """Take up what a create made, with the inputs that it had."""
        resource = {**operation.resource, "id": operation.id, "custom": True}
        inputs = resource.get("inputs") or {}
        if operation.type == RELEASE and not has_secrets(inputs):
            # The provider keeps a release's inputs as one secret beside its outputs; without
            # them it would take a release for an import, and upgrade it for nothing.
            resource["outputs"] = {**inputs, "__inputs": in_clear(inputs)}
        self.resources.append(resource)

    def drop(self, gone: Collection[str]) -> None:
        """Forget resources that are gone, by URN, and that others depended on them."""
        self.deployment["resources"] = [
            _without(gone, it) for it in self.resources if it["urn"] not in gone
        ]

    def save(self, stack: automation.Stack) -> None:
        """Write it back, without what was pending: the engine drops that from what it takes in.

        Raises CommandError where the engine does not take it, or another run has the lock.
        """
        with tempfile.TemporaryDirectory(prefix="kai-fleet-state-") as directory:
            file = Path(directory) / "state.json"
            file.write_text(json.dumps(self._document))
            _pulumi(stack, ["stack", "import", "--file", str(file), "--stack", stack.name])


def read(stack: automation.Stack) -> State:
    """The stack's state. Raises CommandError where it cannot be read."""
    return State(json.loads(_pulumi(stack, ["stack", "export", "--stack", stack.name])))


def at_hand(stack: automation.Stack) -> State:
    """The stack's state, out of its file where there is one: a look that takes no engine.

    Raises CommandError where it cannot be read.
    """
    return _in_file(stack) or read(stack)


def is_settled(stack: automation.Stack) -> bool:
    """Whether the state's file says that no run was interrupted: a look that takes no engine.

    False where it is not in a file of this machine, or cannot be read.
    """
    found = _in_file(stack)
    return found is not None and not found.operations()


def _in_file(stack: automation.Stack) -> State | None:
    """The state in its file; None where it is not in one of this machine, or cannot be read."""
    file = file_backend.state_file(stack.name, stack.workspace.env_vars)
    if file is None:
        return None
    before = file_backend.stamp(file)
    latest = file_backend.read(file)
    if latest is None:
        return None
    return State({"deployment": latest}, lambda: before == file_backend.stamp(file) != ())


def provider_of(resource: Mapping[str, Any]) -> str:
    """The URN of a resource's provider; "" where it has none."""
    return str(resource.get("provider", "")).rpartition("::")[0]


def provider_inputs(stack: automation.Stack) -> dict[str, dict[str, Any]]:
    """The inputs of the stack's providers by URN, secrets in clear: for this process only."""
    text = _pulumi(stack, ["stack", "export", "--show-secrets", "--stack", stack.name])
    return {
        resource["urn"]: opened(resource.get("inputs") or {})
        for resource in State(json.loads(text)).resources
        if str(resource["type"]).startswith("pulumi:providers:")
    }


def _without(gone: Collection[str], resource: dict[str, Any]) -> dict[str, Any]:
    kept = {**resource}
    if kept.get("deletedWith") in gone:
        del kept["deletedWith"]
    kept["dependencies"] = [urn for urn in kept.get("dependencies") or [] if urn not in gone]
    kept["propertyDependencies"] = {
        name: [urn for urn in urns or [] if urn not in gone]
        for name, urns in (kept.get("propertyDependencies") or {}).items()
    }
    return kept


def _pulumi(stack: automation.Stack, arguments: list[str]) -> str:
    workspace = stack.workspace
    run: Callable[..., automation.CommandResult] = workspace.pulumi_command.run
    environment = {
        **({"PULUMI_HOME": workspace.pulumi_home} if workspace.pulumi_home else {}),
        **workspace.env_vars,
    }
    return run(arguments, workspace.work_dir, environment).stdout
