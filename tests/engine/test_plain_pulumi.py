"""Each `fleet team` command leaves what its edit and plain `pulumi up --policy-pack` leave.

A command runs, and plain Pulumi takes the file back to what it was. Then the command only edits
the file (`--no-up`), and plain Pulumi runs. Both times the state has the same resources, and the
clusters the same objects. The tests build on one another.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from kai_fleet.provider.values import SECRET_MARK, SIGNATURE
from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.lifecycle import Sandbox
from tests.engine.product import api, copied, queues

pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(1200)]

STACK = "plain"
FILE = """\
config:
  kai-fleet:cluster: {name: plain, context: kai-fleet-sandbox}
  kai-fleet:vcluster:
    kubernetesVersion: v1.36.3
    access: {type: NodePort, host: 127.0.0.1}
  kai-fleet:teams:
    nlp:
      scheduler: {mode: default}
      nodePool: {kai-fleet/pool: nlp}
      gpus: 8
"""
SALT = yaml.safe_load((ROOT / "Pulumi.sandbox.yaml").read_text())["encryptionsalt"]
POOL = ("--pool", "kai-fleet/pool=vision", "--gpus", "4")
ADD = ("add", "vision", "--mode", "virtual", "--version", "v0.9.3", *POOL)
# What differs from run to run, and says nothing about what was declared.
VOLATILE = ("kube-root-ca.crt", "kubernetes")
# The address of a vCluster, which is another one for one that is made anew; and ids.
VARYING = ("server", "PROBE_SERVER", "id", "after")
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass
class Project:
    """A copy of the project on the sandbox, with `fleet` and plain `pulumi`."""

    folder: Path
    sandbox: Sandbox

    def _run(self, command: list[str], environment: dict[str, str]) -> str:
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    def fleet(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "kai_fleet_cli", *arguments, "--stack", STACK]
        return self._run(command, {**os.environ, "KAI_FLEET_SANDBOX": str(self.sandbox.directory)})

    def pulumi(self, *arguments: str) -> str:
        path = os.pathsep.join([self.sandbox.env()["PATH"], str(ROOT / ".venv" / "bin")])
        # What a person says to plain Pulumi where an edit takes a team away.
        named = {"KAI_FLEET_REMOVE_TEAM": "vision"}
        environment = {**os.environ, **self.sandbox.env(), **named, "PATH": path}
        return self._run(["pulumi", *arguments, "--non-interactive"], environment)

    def plain_up(self) -> None:
        pack = ("--policy-pack", ".venv/bin/kai-fleet-policy-pack")
        self.pulumi("up", "--yes", "--skip-preview", "--stack", STACK, *pack)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.folder.glob("Pulumi.plain*.yaml")}

    def put(self, files: dict[str, bytes]) -> None:
        for name in self.files().keys() | files.keys():
            if name in files:
                (self.folder / name).write_bytes(files[name])
            else:
                (self.folder / name).unlink()

    def state(self, stack: str = STACK) -> dict[str, Any]:
        """What a stack's state says that was declared, by URN."""
        deployment = json.loads(self.pulumi("stack", "export", "--stack", stack))["deployment"]
        return {it["urn"]: declared(it) for it in deployment.get("resources", ())}

    def left(self) -> dict[str, Any]:
        """The states of all stacks, and the objects of the host and of each vCluster."""
        names = [it["name"] for it in json.loads(self.pulumi("stack", "ls", "--json"))]
        stacks = [name for name in names if name.startswith(STACK)]
        found: dict[str, Any] = {f"stack {name}": self.state(name) for name in stacks}
        found["on the host"] = objects(api(self.sandbox.kubeconfig.read_text()))
        for name in stacks:
            said = self.pulumi("stack", "output", "--json", "--show-secrets", "--stack", name)
            for team, content in json.loads(said).get("kubeconfigs", {}).items():
                found[f"in {team}"] = objects(api(content))
        return found


def declared(resource: dict[str, Any]) -> dict[str, Any]:
    kept = ("type", "inputs", "parent", "dependencies", "deletedWith", "delete", "protect")
    found = {key: masked(resource[key]) for key in kept if key in resource}
    found["provider"] = resource.get("provider", "").rpartition("::")[0]
    if resource["type"] == "pulumi:pulumi:Stack":
        found["outputs"] = masked(resource.get("outputs"))
    return found


def masked(value: Any) -> Any:
    """Without secrets, which are encrypted anew each time, and a vCluster's address and UID."""
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET_MARK:
            return "secret"
        return {k: masked(v) for k, v in value.items() if k not in VARYING}
    if isinstance(value, str) and UID.fullmatch(value):
        return "UID"
    return sorted(map(masked, value), key=repr) if isinstance(value, list) else value


def differing(one: Any, other: Any) -> list[Any]:
    """What is in one place only, or is not the same in both."""
    if isinstance(one, set) and isinstance(other, set):
        return sorted(one ^ other)
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(one.keys() | other.keys())
        found = {name: differing(one.get(name), other.get(name)) for name in names}
        return [(name, more) for name, more in found.items() if more]
    return [] if one == other else [one, other]


def objects(cluster: client.ApiClient) -> set[tuple[str, ...]]:
    """What is in a cluster, by kind, namespace and name; of workloads and queues what they ask."""
    core, apps = client.CoreV1Api(cluster), client.AppsV1Api(cluster)
    rbac, admission = (
        client.RbacAuthorizationV1Api(cluster),
        client.AdmissionregistrationV1Api(cluster),
    )
    lists = {
        "namespace": core.list_namespace(),
        "service": core.list_service_for_all_namespaces(),
        "account": core.list_service_account_for_all_namespaces(),
        "quota": core.list_resource_quota_for_all_namespaces(),
        "claim": core.list_persistent_volume_claim_for_all_namespaces(),
        "config": core.list_config_map_for_all_namespaces(),
        "secret": core.list_secret_for_all_namespaces(),
        "role": rbac.list_role_for_all_namespaces(),
        "role binding": rbac.list_role_binding_for_all_namespaces(),
        "cluster role": rbac.list_cluster_role(),
        "cluster role binding": rbac.list_cluster_role_binding(),
        "policy": admission.list_validating_admission_policy(),
        "policy binding": admission.list_validating_admission_policy_binding(),
    }
    found = {
        (kind, it.metadata.namespace or "", it.metadata.name)
        for kind, listed in lists.items()
        for it in listed.items
        if it.metadata.name not in VOLATILE and getattr(it, "type", "") != "helm.sh/release.v1"
    }
    for kind, listed in {
        "deployment": apps.list_deployment_for_all_namespaces(),
        "stateful set": apps.list_stateful_set_for_all_namespaces(),
    }.items():
        for it in listed.items:
            images = ",".join(c.image for c in it.spec.template.spec.containers)
            found.add((kind, it.metadata.namespace, it.metadata.name, images))
    try:
        trees = queues(cluster)
    except client.ApiException:
        trees = {}
    return found | {
        ("queue", name, json.dumps(it["spec"], sort_keys=True)) for name, it in trees.items()
    }


@pytest.fixture(scope="module")
def project(sandbox, tmp_path_factory):
    folder = copied(tmp_path_factory.mktemp("plain") / "project")
    (folder / "Pulumi.plain.yaml").write_text(f"{FILE}encryptionsalt: {SALT}\n")
    found = Project(folder, sandbox)
    found.fleet("up")
    yield found
    stacks = [it["name"] for it in json.loads(found.pulumi("stack", "ls", "--json"))]
    for stack in sorted((it for it in stacks if it.startswith(STACK)), key=len, reverse=True):
        found.pulumi("destroy", "--yes", "--skip-preview", "--stack", stack)
        found.pulumi("stack", "rm", "--yes", "--preserve-config", stack)


@pytest.fixture(scope="module")
def same(project):
    """Run a command both ways, and compare; it has run when this returns."""

    def both(*command: str) -> dict[str, Any]:
        files = project.files()
        project.fleet("team", *command, "--yes")
        by_fleet, edited = project.left(), project.files()
        project.put(files)
        project.plain_up()
        project.fleet("team", *command, "--no-up")
        assert project.files() == edited
        project.plain_up()
        by_pulumi = project.left()
        assert by_fleet.keys() == by_pulumi.keys()
        for where, found in by_fleet.items():
            assert differing(found, by_pulumi[where]) == [], where
        return by_fleet

    return both


def test_add(same):
    found = same(*ADD, "--queue", "train=3", "--queue", "serve=1")
    assert ("namespace", "", "team-vision") in found["on the host"]
    assert {it[1] for it in found["in vision"] if it[0] == "queue"} == {"default", "train", "serve"}


def test_switch(same):
    found = same("switch", "vision", "v0.16.8")
    assert any(it[2] == "kai-scheduler-default" for it in found["in vision"])


def test_rollback(same):
    found = same("rollback", "vision")
    assert not any(it[2] == "kai-scheduler-default" for it in found["in vision"])


def test_remove(same):
    found = same("remove", "vision")
    assert ("namespace", "", "team-vision") not in found["on the host"]
    assert not any("vision" in urn for urn in found[f"stack {STACK}"])
