"""A tenant's own record of its vCluster's release: Helm would believe it, the product does not.

The tests build on one another: one vCluster, whose account writes what it likes where it may.
"""

import base64
import gzip
import json
import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pulumi
import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from pulumi import automation

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.guards.host_rules import HostRules
from kai_fleet.isolation.team_namespace import TeamNamespace, TeamNamespaceArgs
from kai_fleet.settings.sections.access import Access
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.vcluster.virtual_cluster import VirtualCluster, VirtualClusterArgs
from kai_fleet_cli.stack_file.reading import PROJECT
from tests.attacks.host import Host
from tests.engine.product import api, project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

SPACE, RELEASE = "team-prey", "prey"
TAKEN = "cluster-admin-of-the-tenant"
TAKE_OVER = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": TAKEN},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "cluster-admin",
    },
    "subjects": [{"kind": "ServiceAccount", "name": "vc-prey", "namespace": SPACE}],
}
VICTIM = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "victim"}}


@dataclass
class Prey:
    """A stack of one team, on the host with the tenant's account."""

    host: Host
    stack: automation.Stack | None = None
    environment: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    isolation: Isolation = field(default_factory=lambda: Isolation(level="off"))

    def program(self) -> None:
        host = ClusterAccess("prey", context="kai-fleet-sandbox")
        opts = pulumi.ResourceOptions(provider=host.provider("host", pulumi.ResourceOptions()))
        rules = HostRules(RELEASE, devices=["nvidia.com/gpu"])
        team = DeclaredTeam(
            RELEASE,
            version="v0.36.1",
            gpus=0,
            isolation=Isolation(),
            rules=rules,
            access=Access(type="NodePort", host="127.0.0.1"),
            kubernetes_version="v1.36.3",
            values=self.values,
        )
        place = TeamNamespace(RELEASE, TeamNamespaceArgs(host, team), opts)
        VirtualCluster(
            RELEASE,
            VirtualClusterArgs(host, replace(team, isolation=self.isolation)),
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=place.ready)),
        )

    def run(self, verb: str) -> str:
        """What `up` or `destroy` says; begins with `error:` where it does not go well."""
        assert self.stack is not None
        said: list[str] = []
        try:
            getattr(self.stack, verb)(on_output=said.append)
        except automation.errors.CommandError as why:
            return f"error: {why}\n" + "\n".join(said)
        return "\n".join(said)

    def bash(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def record(self, name: str) -> dict[str, Any]:
        secret = client.CoreV1Api(self.host.admin).read_namespaced_secret(name, SPACE)
        packed = base64.b64decode(base64.b64decode(secret.data["release"]))
        return dict(json.loads(gzip.decompress(packed)))

    def write(self, name: str, revision: int, type_: str, **forged: Any) -> None:
        """As the tenant; where the guard denies that already, as it was before there was one."""
        record = self.record("sh.helm.release.v1.prey.v1") | {"version": revision} | forged
        packed = base64.b64encode(gzip.compress(json.dumps(record).encode()))
        labels = {"owner": "helm", "name": RELEASE, "status": "deployed", "version": str(revision)}
        body = {
            "metadata": {"name": name, "labels": labels},
            "type": type_,
            "data": {"release": base64.b64encode(packed).decode()},
        }
        try:
            client.CoreV1Api(self.host.accounts["tenant"]).create_namespaced_secret(SPACE, body)
        except ApiException as why:
            assert why.status == 403, why.body
            client.CoreV1Api(self.host.admin).create_namespaced_secret(SPACE, body)

    def taken(self) -> bool:
        try:
            client.RbacAuthorizationV1Api(self.host.admin).read_cluster_role_binding(TAKEN)
        except ApiException as why:
            assert why.status == 404
            return False
        return True


@pytest.fixture(scope="module")
def prey(sandbox, tmp_path_factory):
    host = Host(api(sandbox.kubeconfig.read_text()))
    found = Prey(host, environment=sandbox.env())
    directory = project(tmp_path_factory.mktemp("prey") / "project")
    options = automation.LocalWorkspaceOptions(work_dir=str(directory), env_vars=sandbox.env())
    with pytest.MonkeyPatch.context() as patch:
        for key, value in sandbox.env().items():
            patch.setenv(key, value)
        found.stack = automation.create_or_select_stack(
            RELEASE, PROJECT, found.program, opts=options
        )
        made = found.run("up")
        assert not made.startswith("error:"), made
        host._sign_in("vc-prey", SPACE, "tenant")
        yield found
        with suppress(ApiException):
            client.CoreV1Api(host.admin).delete_namespaced_config_map("victim", "default")


def roles(prey):
    rbac = client.RbacAuthorizationV1Api(prey.host.admin)
    return {it.metadata.name for it in rbac.list_namespaced_role(SPACE).items}


def test_the_charts_roles_of_before_go_and_that_of_the_platform_works(prey):
    """Helm's record of before has the chart's cluster role, and passes."""
    assert roles(prey) == {"kai-fleet-vcluster", "vc-prey"}
    prey.isolation = Isolation()
    said = prey.run("up")
    assert not said.startswith("error:"), said
    assert roles(prey) == {"kai-fleet-vcluster"}
    pods = client.CoreV1Api(prey.host.accounts["tenant"]).list_namespaced_pod(SPACE).items
    assert [it.metadata.name for it in pods] == ["prey-0"]
    with pytest.raises(ApiException) as refused:
        client.AppsV1Api(prey.host.accounts["tenant"]).patch_namespaced_stateful_set_scale(
            RELEASE, SPACE, {"spec": {"replicas": 400}}
        )
    assert refused.value.status == 403


def test_helms_own_record_passes_through_an_upgrade(prey):
    prey.values = {"controlPlane": {"statefulSet": {"labels": {"a": "b"}}}}
    said = prey.run("up")
    assert not said.startswith("error:"), said
    record = prey.record("sh.helm.release.v1.prey.v3")
    assert record["info"]["status"] == "deployed" and not record.get("hooks")


def test_an_upgrade_deletes_nothing_that_a_forged_record_names(prey):
    """Not of Helm's type, and of another name: Helm reads by labels."""
    core = client.CoreV1Api(prey.host.admin)
    core.create_namespaced_config_map("default", VICTIM)
    victim = {**VICTIM, "metadata": {"name": "victim", "namespace": "default"}}
    manifest = prey.record("sh.helm.release.v1.prey.v3")["manifest"]
    manifest += f"---\n{json.dumps(victim)}\n"
    prey.write("innocent", 4, "Opaque", manifest=manifest)
    assert '"victim"' in prey.bash(f"helm -n {SPACE} get manifest {RELEASE}")  # it believes it
    prey.values = {"controlPlane": {"statefulSet": {"labels": {"a": "c"}}}}
    said = prey.run("up")
    assert said.startswith("error:")
    assert "Secret innocent names ConfigMap victim of namespace default" in said
    assert core.read_namespaced_config_map("victim", "default")
    prey.bash(f"kubectl -n {SPACE} delete secret innocent")
    said = prey.run("up")
    assert not said.startswith("error:"), said
    assert prey.record("sh.helm.release.v1.prey.v4")["info"]["status"] == "deployed"


def test_a_removal_runs_no_hook_of_a_forged_record(prey):
    hook = {
        "name": TAKEN,
        "kind": "ClusterRoleBinding",
        "path": "vcluster/templates/x.yaml",
        "manifest": json.dumps(TAKE_OVER),
        "events": ["pre-delete"],
        "last_run": {},
        "weight": 0,
    }
    name = "sh.helm.release.v1.prey.v5"
    prey.write(name, 5, "helm.sh/release.v1", hooks=[hook])
    assert TAKEN in prey.bash(f"helm -n {SPACE} get hooks {RELEASE}")  # it believes it
    said = prey.run("destroy")
    assert not prey.taken()
    assert said.startswith("error:")
    assert f"Secret {name} has a hook, ClusterRoleBinding {TAKEN}" in said
    assert client.AppsV1Api(prey.host.admin).read_namespaced_stateful_set(RELEASE, SPACE)
    printed = f"kubectl -n {SPACE} delete secret {name}"
    assert printed in said
    prey.bash(printed)
    said = prey.run("destroy")
    assert not said.startswith("error:"), said
    assert not prey.taken()
    spaces = client.CoreV1Api(prey.host.admin).list_namespace().items
    assert SPACE not in {it.metadata.name for it in spaces}
