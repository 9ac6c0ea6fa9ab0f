"""`Pulumi.dev.yaml` through the engine: docker and kind are stand-ins, the cluster that kind hands
over is the sandbox's."""

import json
import os

import pytest
from kubernetes import client

from sandbox import lifecycle
from sandbox.control_plane.ports import Ports
from sandbox.control_plane.processes import Processes
from sandbox.directory import read_state
from tests.engine.product import Product, api, deployments, namespaces, project, queues
from tests.temporary import temporary
from tests.unit.components.cluster.kind_standins import Machine

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


HALF = "examples/workloads/sharing.yaml"
CPU = "examples/workloads/cpu.yaml"


class Laptop:
    """The sandbox's environment, with docker and kind first on PATH and no context to go by."""

    def __init__(self, sandbox, machine):
        self.sandbox, self.machine = sandbox, machine

    def env(self):
        found = dict(self.sandbox.env())
        path = os.pathsep.join([str(self.machine.bin), found["PATH"]])
        own = {"PATH": path, "KUBECONFIG": os.devnull, "STATE": str(self.machine.state)}
        # As at home: neither the sandbox's state nor its plugins take a stack of another cluster.
        own["PULUMI_BACKEND_URL"] = f"file://{self.machine.directory}"
        home = self.machine.directory / ".pulumi-of-the-laptop"
        if not home.exists():
            home.symlink_to(found["PULUMI_HOME"])
        own["PULUMI_HOME"] = str(home)
        return {**found, **own}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    """One of its own: what is on a kind cluster goes with it, and is not deleted one by one."""
    where = tmp_path_factory.mktemp("kind") / "sandbox"
    with pytest.MonkeyPatch.context() as patch, temporary(where):
        patch.setenv("KAI_FLEET_SANDBOX", str(where))
        yield lifecycle.up(print)


@pytest.fixture(scope="module")
def machine(tmp_path_factory, sandbox):
    machine = Machine(tmp_path_factory.mktemp("laptop") / "machine", name="kai-gpu-demo")
    (machine.state / "kubeconfig").write_text(sandbox.kubeconfig.read_text())
    return machine


@pytest.fixture(scope="module")
def product(sandbox, machine, tmp_path_factory):
    state = read_state(sandbox.directory)
    first = Ports(state.base_port).node_ports[-20]
    with pytest.MonkeyPatch.context() as patch:
        # The sandbox hands out node ports of its own window.
        patch.setattr("kai_fleet_stack.settings.sections.access.FIRST_NODE_PORT", first)
        directory = project(tmp_path_factory.mktemp("dev") / "project")
        product = Product.of("dev", Laptop(sandbox, machine), directory)

        def edit(config):
            teams = config["kai-fleet:teams"]
            for name in ("research", "devops"):
                del teams[name]
            teams["ml"]["vcluster"]["access"]["port"] = first + 1
            config["kai-fleet:vcluster"]["kubernetesVersion"] = "v1.36.3"
            config["kai-fleet:workloads"] = {"ml": [HALF, CPU]}

        product.edit(edit)
        yield product


@pytest.fixture(scope="module")
def first(product):
    return product.up()


def test_the_cluster_is_made_first_and_everything_goes_on_it(first, machine, sandbox):
    calls = machine.calls()
    assert sum(call.startswith("kind create cluster --name kai-gpu-demo") for call in calls) == 1
    names = [name for _, name in first.steps]
    assert names.index("Command kai-gpu-demo-kind") < names.index("Release host-gpu-release")
    host = api(sandbox.kubeconfig.read_text())
    assert {"nvidia-device-plugin", "kai-scheduler", "team-ml"} <= namespaces(host)
    assert "binder" in deployments(host, "kai-scheduler")
    assert set(queues(host)) == {"default", "test"}


def test_a_pod_with_half_a_gpu_runs_in_the_teams_vcluster(first):
    core = client.CoreV1Api(api(first.outputs["kubeconfigs"]["ml"]))
    pod = core.read_namespaced_pod("gpu-sharing", "default")
    assert pod.status.phase == "Running"
    assert pod.spec.runtime_class_name == "nvidia"


def test_the_kubeconfig_of_kind_is_printed_nowhere(first, sandbox):
    text = sandbox.kubeconfig.read_text()
    secrets = [line.split(": ", 1)[1] for line in text.splitlines() if "-data: " in line]
    assert secrets
    assert not [secret for secret in secrets if secret in first.printed]
    assert not [secret for secret in secrets if secret in json.dumps(first.outputs["teams"])]


def test_the_stack_goes_with_its_cluster_also_when_that_is_gone(first, product, machine, sandbox):
    """As after `kind delete cluster` by hand: nothing answers at the cluster's address."""
    Processes(sandbox.directory).stop(["supervisor", "kube-apiserver"])
    machine.calls()
    product.stack.destroy()
    assert machine.calls() == ["docker info", "kind delete cluster --name kai-gpu-demo"]
    assert product.stack.export_stack().deployment.get("resources", []) == []
