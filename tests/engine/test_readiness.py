"""What does not come up: a clear end of the wait, and the next run goes on from there.

A program of its own with short time limits, first with what cannot work, then put right.
"""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pytest
from kubernetes import client
from pulumi import automation

from kai_fleet.cluster.connection import ClusterConnection, kubernetes_provider
from kai_fleet.isolation.team_namespace import TeamNamespace
from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.releases import KAI
from kai_fleet.vcluster.virtual_cluster import VirtualCluster
from kai_fleet_cli.stack_file.reading import PROJECT, ROOT
from tests.engine.product import cluster_roles, deployments, namespaces, project
from tests.engine.sandbox_commands import run

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

VERSION = "v0.16.8"
# More than any node of the sandbox has: its pod stays Pending.
TOO_MUCH = {"resources": {"requests": {"cpu": "1000"}}}
NO_SUCH_NODE = {"global": {"nodeSelector": {"kai-fleet/pool": "nowhere"}}}


@dataclass
class Late:
    """One vCluster and one KAI on the host, and what an update says about them."""

    stack: automation.Stack | None = None
    chart: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    seconds: int = 12

    def program(self) -> None:
        host = ClusterConnection(context="kai-fleet-sandbox")
        provider = kubernetes_provider("host", host, pulumi.ResourceOptions())
        opts = pulumi.ResourceOptions(provider=provider)
        common: Any = {"ready_timeout": self.seconds, "context": host.context}
        vcluster = {"access": {"type": "NodePort", "host": "127.0.0.1"}, "version": "v0.36.1"}
        chart = {"chart": self.chart} if self.chart else {}
        place = TeamNamespace("late", {"guards": "declared"}, opts)
        VirtualCluster("late", {"namespace": place.name, **vcluster, **chart, **common}, opts)
        KaiScheduler("late", {"version": VERSION, "values": self.values, **common}, opts)

    def up(self) -> str:
        """Everything that was said, whether or not it went well; `error:` where it did not."""
        assert self.stack is not None
        reported: list[str] = []
        try:
            self.stack.up(on_output=reported.append, continue_on_error=True)
        except automation.errors.CommandError as why:
            reported.append(f"error: {why}")
        return "\n".join(reported)


@pytest.fixture(scope="module")
def late(sandbox, tmp_path_factory):
    late = Late()
    directory = project(tmp_path_factory.mktemp("late") / "project")
    options = automation.LocalWorkspaceOptions(work_dir=str(directory), env_vars=sandbox.env())
    with pytest.MonkeyPatch.context() as patch:
        for key, value in sandbox.env().items():
            patch.setenv(key, value)
        late.stack = automation.create_or_select_stack("late", PROJECT, late.program, opts=options)
        yield late


@pytest.fixture(scope="module")
def without_control_plane(sandbox, tmp_path_factory) -> str:
    """vCluster's chart as if nothing of it came up: a Service, no StatefulSet."""
    source = tmp_path_factory.mktemp("charts") / "vcluster"
    shutil.copytree(ROOT / "sandbox" / "charts" / "vcluster", source)
    (source / "templates" / "statefulset.yaml").unlink()
    where = str(source.parent)
    run(sandbox, "helm", "package", str(source), "--version", "0.36.1", "--destination", where)
    return str(source.parent / "vcluster-0.36.1.tgz")


@pytest.fixture(scope="module")
def first(late, without_control_plane):
    late.chart, late.values = without_control_plane, {"scheduler": TOO_MUCH}
    return late.up()


def test_a_vcluster_that_cannot_come_up_is_not_waited_for(first):
    assert "error:" in first
    assert (
        "Control plane late of namespace team-late is gone, and release late stands. Make it again"
        " with: helm -n team-late get manifest late | kubectl -n team-late apply -f -" in first
    )


def test_a_kai_whose_part_stays_pending_is_named_with_the_reason_and_the_key(first):
    lead = f"KAI {VERSION} is not ready after 12 s. Missing: deployment kai-scheduler-default; pod"
    assert lead in first
    assert "has enough cpu left: add one, or ask for less at kai-fleet:kai.values." in first
    assert "kubectl -n kai-scheduler get pods,jobs" in first


def test_the_next_run_goes_on_and_ends_well(first, late, host):
    late.chart, late.values, late.seconds = None, {}, 120
    reported = late.up()
    assert "error:" not in reported
    assert "vCluster late is ready after" in reported
    assert deployments(host, "kai-scheduler") == set(KAI[VERSION].deployments)
    assert "late-namespace creat" not in reported, "what was there already stays"


def test_removal_leaves_only_what_kai_keeps(first, late, host):
    assert late.stack is not None
    late.stack.destroy()
    assert not namespaces(host) & {"team-late", "kai-scheduler"}
    assert not [name for name in cluster_roles(host) if "late" in name]
    # By design: CRDs, so that queues survive a change of version, and the namespace of the pods
    # that hold shared GPUs.
    assert "kai-resource-reservation" in namespaces(host)
    crds = client.ApiextensionsV1Api(host).list_custom_resource_definition().items
    kept = {crd.metadata.name for crd in crds if "nvidia.com" not in crd.metadata.name}
    chart = ROOT / "sandbox" / "charts" / "kai-scheduler" / "crds"
    assert kept == {_crd_name(path) for path in chart.iterdir()}
    admission = client.AdmissionregistrationV1Api(host)
    hooks = admission.list_validating_webhook_configuration().items
    hooks += admission.list_mutating_webhook_configuration().items
    assert [hook.metadata.name for hook in hooks] == []
    for plural in ("configs", "schedulingshards"):
        objects = client.CustomObjectsApi(host)
        assert objects.list_cluster_custom_object("kai.scheduler", "v1", plural)["items"] == []


def _crd_name(path: Path) -> str:
    group, _, plural = path.stem.rpartition("_")
    return f"{plural}.{group}"
