"""The program under the real engine: a copy of the project whose stack files a test may edit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from pulumi import automation
from ruamel.yaml import YAML

from kai_fleet_cli.engine import operation, workspace
from kai_fleet_cli.engine.environment import program
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_stack import validation
from tests.engine.sandbox_commands import until


def project(directory: Path) -> Path:
    """Everything of the checkout by links, and as copies its stack files and what they name."""
    directory.mkdir()
    shutil.copytree(ROOT / "examples", directory / "examples")
    for entry in ROOT.iterdir():
        if entry.name.startswith("Pulumi."):
            (directory / entry.name).write_text(entry.read_text())
        elif entry.name not in (".git", ".sandbox", "examples"):
            (directory / entry.name).symlink_to(entry)
    return directory


def copied(folder: Path) -> Path:
    """A copy of the project without stack files: a command edits those beside its own code."""
    unwanted = shutil.ignore_patterns(".*", "__pycache__", "tests", "docs", "Pulumi.*.yaml")
    shutil.copytree(ROOT, folder, ignore=unwanted)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    return folder


def project_with(folder: Path, stack: str, content: str) -> Path:
    """A copy of the project in a folder, with one stack file."""
    project = copied(folder / "project")
    (project / f"Pulumi.{stack}.yaml").write_text(content)
    return project


@dataclass
class Run:
    """What an update did: operation by resource name, each step's end in order, what it printed."""

    operations: dict[str, str] = field(default_factory=dict)
    steps: list[tuple[str, str]] = field(default_factory=list)
    printed: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)

    @property
    def changed(self) -> dict[str, str]:
        """The resources that were not left as they are."""
        return {
            name: op
            for name, op in self.operations.items()
            if op not in ("same", "read", "refresh")
        }


def name_the_removed(config: Any, before: set[str]) -> None:
    """Say in the file that the teams may go that are not in it any more."""
    teams = set(config.get("kai-fleet:teams") or ())
    gone = (before | set(config.get("kai-fleet:removed") or ())) - teams
    if gone or "kai-fleet:removed" in config:
        config["kai-fleet:removed"] = sorted(gone)


@dataclass
class Product:
    """One stack of the project on a sandbox."""

    stack: automation.Stack
    file: Path

    @classmethod
    def of(cls, name: str, sandbox: Any, directory: Path) -> Product:
        os.environ.update(sandbox.env())  # for the program, which runs in this process
        validation.ROOT = directory
        stack = workspace.open_stack(name, sandbox.env(), directory)
        stack.workspace = automation.LocalWorkspace(  # ours leaves kubeconfigs masked
            work_dir=str(directory), env_vars=sandbox.env(), program=program
        )
        return cls(stack, directory / f"Pulumi.{name}.yaml")

    def edit(self, change: Callable[[Any], None], *, named: bool = True) -> None:
        """Change the stack file's `config`, as a person does with an editor.

        A team that is taken out is named as one that may go, unless it is not to be.
        """
        yaml_file = YAML()
        document = yaml_file.load(self.file.read_text())
        before = set(document["config"].get("kai-fleet:teams") or ())
        change(document["config"])
        if named:
            name_the_removed(document["config"], before)
        with self.file.open("w") as out:
            yaml_file.dump(document, out)

    def up(self) -> Run:
        run, lines = Run(), []

        def note(event: Any) -> None:
            step = event.res_outputs_event or event.res_op_failed_event or event.resource_pre_event
            if step is None:
                return
            name = step.metadata.urn.rsplit("::", 1)[1]
            kind = step.metadata.type.rsplit(":", 1)[-1]
            op = getattr(step.metadata.op, "value", step.metadata.op)
            if event.resource_pre_event is not None or f"{kind} {name}" not in run.operations:
                run.operations[f"{kind} {name}"] = str(op)
            if event.res_outputs_event is not None:
                run.steps.append((str(op), f"{kind} {name}"))

        result = self.stack.up(
            on_event=note, on_output=lines.append, policy_packs=[operation.POLICY_PACK]
        )
        run.printed = "\n".join(lines)
        run.outputs = {key: value.value for key, value in result.outputs.items()}
        return run


def api(kubeconfig: str) -> client.ApiClient:
    """A client from a kubeconfig's content."""
    return config.new_client_from_config_dict(yaml.safe_load(kubeconfig))


def queues(cluster: client.ApiClient) -> dict[str, Any]:
    """The Queue objects of a cluster by name."""
    found = client.CustomObjectsApi(cluster).list_cluster_custom_object(
        "scheduling.run.ai", "v2", "queues"
    )
    return {item["metadata"]["name"]: item for item in found["items"]}


def take_queues(cluster: client.ApiClient, crd: Path) -> None:
    """Have a cluster take queues without a KAI in it, and wait until it does."""
    try:
        client.ApiextensionsV1Api(cluster).create_custom_resource_definition(
            yaml.safe_load(crd.read_text())
        )
    except ApiException as why:
        assert why.status == 409

    def served() -> bool:
        try:
            return queues(cluster) is not None
        except ApiException:
            return False

    until(served)


def deployments(cluster: client.ApiClient, namespace: str) -> set[str]:
    """The names of the deployments in a namespace."""
    found = client.AppsV1Api(cluster).list_namespaced_deployment(namespace).items
    return {item.metadata.name for item in found}


def namespaces(cluster: client.ApiClient) -> set[str]:
    """The names of the namespaces."""
    return {item.metadata.name for item in client.CoreV1Api(cluster).list_namespace().items}


def cluster_roles(cluster: client.ApiClient, *teams: str) -> set[str]:
    """The names of the cluster roles and bindings of vClusters: of these teams, or of all."""
    rbac = client.RbacAuthorizationV1Api(cluster)
    roles = [*rbac.list_cluster_role().items, *rbac.list_cluster_role_binding().items]
    found = {item.metadata.name for item in roles if item.metadata.name.startswith("vc-")}
    return found & {f"vc-{team}-v-team-{team}" for team in teams} if teams else found
