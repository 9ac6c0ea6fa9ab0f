"""A host that others use too: what they made is used and stays, what was made for them stays.

Each time it is looked at what the stack declares: the plugin of the sandbox takes over what is
there, and later releases refuse it.
"""

from dataclasses import dataclass
from typing import Any

import pulumi
import pytest
from pulumi import automation

from kai_fleet.cluster.connection import ClusterConnection, kubernetes_provider
from kai_fleet.declaring.options import depending_on
from kai_fleet.gpu_stack import GpuStack
from kai_fleet.isolation.team_namespace import TeamNamespace
from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.names import PACKAGE
from kai_fleet.ownership import deployed
from kai_fleet_cli.stack_file.reading import PROJECT
from kai_fleet_stack import existing
from kai_fleet_stack.arguments import Arguments
from kai_fleet_stack.settings.loading import load
from tests.engine.product import project
from tests.engine.sandbox_commands import kubectl

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterpolicies.nvidia.com}
spec:
  group: nvidia.com
  names:
    {kind: ClusterPolicy, listKind: ClusterPolicyList, plural: clusterpolicies,
     singular: clusterpolicy}
  scope: Cluster
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
POLICY = "{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: theirs}}"
# As k3s makes the class, and as an administrator makes namespaces beforehand.
BEFORE = f"""{CRD}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata:
  name: nvidia
  annotations: {{objectset.rio.cattle.io/owner-name: runtimes}}
handler: nvidia
---
apiVersion: v1
kind: Namespace
metadata: {{name: nvidia-device-plugin, labels: {{pod-security.kubernetes.io/enforce: privileged}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: kai-scheduler, labels: {{cost-centre: "7"}}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: team-ml, labels: {{cost-centre: "8"}}, annotations: {{owner: them}}}}
"""
THEIRS = (
    ("crd", "clusterpolicies.nvidia.com"),
    ("clusterpolicy", "theirs"),
    ("runtimeclass", "nvidia"),
    ("namespace", "nvidia-device-plugin"),
    ("namespace", "kai-scheduler"),
)


@dataclass
class Host:
    """A stack of the host's parts, as the product's program declares them."""

    sandbox: Any
    stack: automation.Stack | None = None
    provider: Any = "none"
    with_team: bool = False

    def program(self) -> None:
        team = {"ml": {"scheduler": {"mode": "default"}, "nodePool": {"pool": "ml"}, "gpus": 4}}
        host = ClusterConnection(context="kai-fleet-sandbox")
        settings = load(
            {
                "cluster": {"name": "shared", "context": host.context},
                "gpu": {"provider": self.provider},
                "kai": {"version": "v0.9.20"},
                "teams": team if self.with_team else {},
            }
        ).settings
        own = pulumi.ProviderResource(PACKAGE, PACKAGE, {})
        found = existing.find(settings, host, deployed.read(), own)
        args: Any = Arguments(settings, {"context": host.context}, found)
        provider = kubernetes_provider("host", host, pulumi.ResourceOptions())
        opts = pulumi.ResourceOptions(providers=[own, provider])
        gpu = GpuStack(existing.GPU_STACK, args.gpu_stack(), opts)
        for name in settings.teams:
            TeamNamespace(name, args.namespace(name), opts)
        KaiScheduler(existing.KAI, args.host_kai(), depending_on(opts, gpu))

    def up(self) -> dict[str, int]:
        result = self.stack.up()
        return dict(result.summary.resource_changes or {})

    def owned(self) -> set[str]:
        """The kinds of which the stack holds objects."""
        resources = self.stack.export_stack().deployment["resources"]
        return {resource["type"].rpartition(":")[2] for resource in resources}

    def version(self, kind: str, name: str) -> str:
        """What differs once somebody has written it, or made it anew; "" where it is not there."""
        path = (
            "jsonpath={.metadata.uid}/{.metadata.generation}/{.metadata.managedFields[*].manager}"
        )
        return kubectl(self.sandbox, "get", kind, name, "--ignore-not-found", "-o", path)

    def plant(self, text: str) -> None:
        kubectl(self.sandbox, "apply", "-f", "-", stdin=text)


@pytest.fixture(scope="module")
def host(sandbox, tmp_path_factory):
    created = Host(sandbox)
    directory = project(tmp_path_factory.mktemp("existing") / "project")
    options = automation.LocalWorkspaceOptions(work_dir=str(directory), env_vars=sandbox.env())
    with pytest.MonkeyPatch.context() as patch:
        for key, value in sandbox.env().items():
            patch.setenv(key, value)
        created.stack = automation.create_or_select_stack(
            "existing", PROJECT, created.program, opts=options
        )
        yield created


def test_from_none_to_an_operator_nothing_of_the_operators_goes(host):
    """The CRD is the stack's at first; the operator's chart then finds it, and leaves it."""
    host.up()
    assert "CustomResourceDefinition" in host.owned()
    host.plant(POLICY)
    before = {of: host.version(*of) for of in THEIRS[:2]}
    assert all(before.values())
    host.provider = "operator"
    host.up()  # it leaves the state, and stays in the cluster
    assert {of: host.version(*of) for of in before} == before
    host.stack.destroy()
    assert {of: host.version(*of) for of in before} == before


def test_what_others_made_is_used_and_is_theirs_afterwards(host, sandbox):
    kubectl(sandbox, "delete", "crd", "clusterpolicies.nvidia.com", "--ignore-not-found")
    kubectl(sandbox, "delete", "runtimeclass", "nvidia", "--ignore-not-found")
    host.plant(BEFORE)
    kubectl(sandbox, "wait", "--for=condition=Established", "crd/clusterpolicies.nvidia.com")
    host.plant(POLICY)
    before = {of: host.version(*of) for of in THEIRS}
    assert all(before.values())
    host.provider, host.with_team = "device-plugin", True
    host.up()
    theirs = {"CustomResourceDefinition", "RuntimeClass", "Namespace"}
    assert not host.owned() & theirs
    assert {of: host.version(*of) for of in THEIRS} == before
    space = _space(sandbox)
    assert space["labels"].items() >= {"cost-centre": "8", "kai-fleet/team": "ml"}.items()
    assert space["annotations"]["owner"] == "them"
    assert "gpus" in kubectl(sandbox, "get", "resourcequota", "-n", "team-ml", "-o", "name")
    assert set(host.up()) == {"same"}
    host.stack.destroy()
    assert {of: host.version(*of) for of in THEIRS} == before
    left = _space(sandbox)
    assert left["uid"] == space["uid"]
    assert "deletionTimestamp" not in left, "it does not end either"
    assert left["labels"]["cost-centre"] == "8"
    assert (
        kubectl(sandbox, "get", "resourcequota,networkpolicy", "-n", "team-ml", "-o", "name") == ""
    )


def test_what_does_not_fit_is_named_and_nothing_is_made(host, sandbox):
    kubectl(sandbox, "delete", "runtimeclass", "nvidia")
    host.with_team = False
    host.plant(
        "{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: nvidia}, handler: other}"
    )
    for look in (host.stack.preview, host.up):
        with pytest.raises(automation.CommandError, match="handler other"):
            look()
    assert not host.owned() & {"Release", "NamespacePatch"}


def _space(sandbox: Any) -> dict[str, Any]:
    return kubectl(sandbox, "get", "namespace", "team-ml", "-o", "json")["metadata"]
