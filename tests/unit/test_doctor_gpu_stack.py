"""The GPU stack: DaemonSets whose pods do not come up, two plugins on a node, GPUs shared twice."""

from dataclasses import replace

import pytest
import yaml
from kai_fleet_cli.doctor.examine import examine
from kai_fleet_cli.waiting.finding import meaning

from tests.unit.doctor_samples import Lab, event, meta, node, pod, reservation
from tests.unit.doctor_spoils import in_host_mode

VIOLATES = (
    'Error creating: pods "toolkit-x" is forbidden: violates PodSecurity "baseline:latest":'
    ' hostPath volumes (volume "host-root"), privileged (container "ctr" must not set'
    " securityContext.privileged=true)"
)
SCOPES = (
    "Error creating: insufficient quota to match these scopes: [{PriorityClass In"
    " [system-node-critical system-cluster-critical]}]"
)
NO_RUNTIME = (
    "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime:"
    ' no runtime for "nvidia" is configured'
)


def daemon_set(name="nvidia-device-plugin", namespace="nvidia-device-plugin", wanted=7, ready=0):
    containers = [{"name": "nvidia-device-plugin-ctr", "image": "r.io/k8s-device-plugin:v0.20.0"}]
    return {
        "metadata": meta(name, namespace),
        "spec": {"template": {"spec": {"containers": containers}}},
        "status": {
            "desiredNumberScheduled": wanted,
            "currentNumberScheduled": ready,
            "numberReady": ready,
        },
    }


def pod_of(owner, node="ml-0", **status):
    made = pod(owner["metadata"]["name"] + "-x", None, node, status=status)
    made["metadata"] |= {
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [{"kind": "DaemonSet", "name": owner["metadata"]["name"]}],
    }
    made["spec"] |= owner["spec"]["template"]["spec"] | {"schedulerName": "default-scheduler"}
    return made


def with_plugins(*sets):
    lab = Lab()
    enforces = daemon_set("calico-node", "kube-system", 1, 1)
    enforces["spec"]["template"]["spec"]["containers"] = [{"name": "calico-node"}]
    lab.host["daemonsets"] = [*sets, enforces]
    return lab


def of(lab, check):
    return [it for it in lab.ill() if it.check == check]


@pytest.mark.parametrize("namespace", ["gpu-operator", "nvidia-device-plugin"])
@pytest.mark.parametrize(
    ("text", "cause", "fix"),
    [
        (
            VIOLATES,
            "Pod Security baseline:latest",
            "pod-security.kubernetes.io/enforce: privileged",
        ),
        (SCOPES, "only in namespaces with a ResourceQuota", "scopeName: PriorityClass"),
    ],
)
def test_a_daemon_set_whose_pods_are_refused_is_told_with_its_remedy(namespace, text, cause, fix):
    item = daemon_set(namespace=namespace)
    lab = with_plugins(item)
    lab.host["events"] = [event(item, text, "FailedCreate", "DaemonSet")]
    (found,) = lab.ill()
    assert (found.check, found.health, found.cluster) == ("gpu-stack", "broken", "host")
    assert found.subject == f"DaemonSet nvidia-device-plugin in namespace {namespace}"
    assert found.cause.startswith("0 of 7 pods are Ready: ")
    assert cause in found.cause
    assert fix in found.fix
    assert "gpu.provider" not in found.fix


def test_the_quota_that_a_finding_asks_for_is_yaml_of_a_resource_quota():
    fix = meaning(SCOPES).fix.replace("{{", "{").replace("}}", "}")
    expressions = fix.partition("matchExpressions: ")[2].partition("; ")[0]
    assert yaml.safe_load(expressions) == [
        {
            "scopeName": "PriorityClass",
            "operator": "In",
            "values": ["system-node-critical", "system-cluster-critical"],
        }
    ]


def test_a_daemon_set_that_nothing_is_known_of_is_a_warning_and_one_that_is_well_is_none():
    lab = with_plugins(daemon_set(ready=6), daemon_set("toolkit", "gpu-operator", ready=7))
    (found,) = lab.ill()
    assert (found.health, "6 of 7 pods are Ready" in found.cause) == ("warning", True)
    young = daemon_set()
    young["metadata"]["creationTimestamp"] = "2026-11-01T11:59:30Z"
    assert with_plugins(young, daemon_set("other", "default", wanted=0)).ill() == []


def test_pods_of_the_stack_on_a_node_without_the_runtime_are_told():
    item = daemon_set()
    waits = pod_of(item, phase="Pending")
    lab = with_plugins(item)
    lab.host["pods"] = [waits]
    lab.host["events"] = [event(waits, NO_RUNTIME, "FailedCreatePodSandBox")]
    (found,) = of(lab, "gpu-stack")
    assert "has no handler nvidia" in found.cause
    assert "NVIDIA's container toolkit" in found.fix


@pytest.mark.parametrize(
    "text",
    [
        NO_RUNTIME,
        'Failed to create pod sandbox: RuntimeHandler "nvidia" not supported',
        "failed to find runtime handler nvidia from runtime list map[runc:0x1]",
    ],
)
def test_a_node_without_the_runtime_is_told_of_a_users_pod(text):
    lab = Lab()
    half = pod("half", node="ml-0", status={"phase": "Pending"})
    lab.ml["pods"].append(half)
    lab.ml["podgroups"].append({"metadata": meta("pg-half", "default")})
    lab.ml["events"] = [event(half, text, "FailedCreatePodSandBox")]
    (found,) = lab.ill()
    assert (found.check, found.subject) == ("pending", "pod half in namespace default")
    assert "its node has no handler nvidia:" in found.cause


def test_a_reservation_pod_on_a_node_without_the_runtime_needs_the_runtime_first():
    lab = Lab()
    lab.drop("pods", "gpu-reservation-ml-0-x7")
    waits = reservation(index=None, phase="Pending")
    lab.ml["pods"].append(waits)
    lab.ml["events"] = [event(waits, NO_RUNTIME, "FailedCreatePodSandBox")]
    (found,) = of(lab, "reservation")
    assert "has no handler nvidia" in found.cause
    assert found.fix.startswith("set up NVIDIA's container toolkit on that node")


def test_two_device_plugins_on_a_node_are_told_and_one_on_each_is_well():
    ours = daemon_set(wanted=1, ready=1)
    theirs = daemon_set("nvidia-device-plugin-daemonset", "gpu-operator", 1, 1)
    lab = with_plugins(ours, theirs)
    lab.host["pods"] = [pod_of(ours, "ml-0"), pod_of(theirs, "ml-1")]
    assert lab.ill() == []
    lab.host["pods"] = [pod_of(ours), pod_of(theirs)]
    (found,) = lab.ill()
    assert (found.check, found.subject) == ("gpu-stack", "node ml-0")
    assert "gpu-operator/nvidia-device-plugin-daemonset, nvidia-device-plugin/" in found.cause
    assert "write none at kai-fleet:gpu.provider" in found.fix


@pytest.mark.parametrize(
    ("labels", "shared"),
    [
        ({"nvidia.com/gpu.replicas": "4"}, True),
        ({"nvidia.com/gpu.sharing-strategy": "mps", "nvidia.com/gpu.replicas": "1"}, True),
        ({"nvidia.com/gpu.sharing-strategy": "time-slicing"}, True),
        ({"nvidia.com/gpu.product": "NVIDIA-A10-SHARED"}, True),
        ({"nvidia.com/gpu.replicas": "1", "nvidia.com/gpu.sharing-strategy": "none"}, False),
        ({"nvidia.com/gpu.product": "NVIDIA-A10", "nvidia.com/gpu.replicas": "0"}, False),
    ],
)
def test_gpus_that_the_plugin_shares_behind_kais_back_are_told(labels, shared):
    lab = Lab()
    for nodes in (lab.host["nodes"], lab.ml["nodes"]):
        nodes[0]["metadata"]["labels"] |= labels
    assert [it.subject for it in of(lab, "gpu-one-sharer")] == ["node ml-0"] * shared
    lab.settings["teams"]["ml"]["scheduler"]["gpuSharing"] = False
    assert of(lab, "gpu-one-sharer") == [], "KAI shares none"


def test_no_advice_adds_a_second_plugin():
    lab = with_plugins(daemon_set("nvidia-gpu-device-plugin", "kube-system", 1, 1))
    lab.host["nodes"] = [node("ml-0", gpus="0")]
    lab.host["runtimeclasses"] = lab.ml["runtimeclasses"] = []
    fixes = [it.fix for it in lab.ill()]
    assert any("make the class with handler nvidia" in fix for fix in fixes)
    assert any("look at the pods of DaemonSet kube-system/nvidia-gpu" in fix for fix in fixes)
    assert not any("to operator or device-plugin" in fix for fix in fixes)


def test_a_class_that_was_removed_from_the_stacks_own_plugin_is_made_by_an_update():
    lab = with_plugins(daemon_set(wanted=1, ready=1))
    lab.host["runtimeclasses"] = []
    (found,) = [it for it in of(lab, "runtime-class") if it.cluster == "host"]
    assert found.fix.startswith("if this stack installed nvidia-device-plugin/nvidia-device-plugin")
    assert "`make up STACK=lab`" in found.fix


def test_a_kai_that_names_no_class_needs_none():
    lab = Lab()
    lab.host["runtimeclasses"] = lab.ml["runtimeclasses"] = []
    lab.settings["teams"]["ml"]["scheduler"]["values"] = {"binder": {"runtimeClassName": ""}}
    assert of(lab, "runtime-class") == []


def enforcing(mode, version="v0.18.0"):
    """A host KAI in a mode that bounds memory, as it runs."""
    lab = in_host_mode()
    lab.settings["kai"] = {"version": version, "gpuSharing": {"mode": mode}}
    lab.settings["gpu"] = {"provider": "none"}
    config = lab.named("configs", "kai-config", "host")
    config["spec"] = {"global": {"gpuSharingMode": mode}}
    lab.host["daemonsets"] = []
    return lab


def memory(lab):
    return [it for it in of(lab, "gpu-sharing") if it.subject.startswith("GPU memory")]


def test_hamicore_without_its_isolator_bounds_nothing():
    lab = enforcing("HamiCore")
    (told,) = memory(lab)
    assert "no DaemonSet of kai-resource-isolator is on the host" in told.cause
    assert "write mode: NonMemoryEnforced at kai-fleet:kai.gpuSharing" in told.fix
    lab.host["daemonsets"] = [daemon_set("kai-resource-isolator", "kai-resource-isolator", 1, 1)]
    assert memory(lab) == []
    del lab.host["nodes"][0]["metadata"]["labels"]["nvidia.com/gpu.memory"]
    (told,) = memory(lab)
    assert told.subject == "GPU memory of node ml-0"
    assert "it has no label nvidia.com/gpu.memory" in told.cause


@pytest.mark.parametrize("kind", ["gpu-fractioning", "gpu-sharing"])
def test_nvfractions_tells_a_node_that_is_not_ready_for_it(kind):
    lab = enforcing("NvFractions")
    (told,) = memory(lab)
    assert "(nothing says why): no pod that shares a GPU goes there" in told.cause
    assert "GPU operator v26.7.1" in told.fix and "driver 615" in told.fix
    conditions = lab.host["nodes"][0]["status"]["conditions"]
    condition = {"type": f"{kind}.nvidia.com/Ready", "status": "False"}
    conditions.append(condition | {"reason": "DriverTooOld", "message": "r580"})
    assert "(DriverTooOld: r580)" in memory(lab)[0].cause
    conditions[-1]["status"] = "True"
    assert memory(lab) == []


def test_sharing_by_agreement_needs_nothing_on_the_nodes():
    assert memory(enforcing("NonMemoryEnforced")) == []


@pytest.mark.parametrize("at", ["event", "status"])
def test_a_reservation_on_a_node_without_the_runtime_wants_the_runtime(at):
    lab = Lab()
    held = lab.named("pods", reservation()["metadata"]["name"])
    held["status"] = {"phase": "Pending"}
    if at == "event":
        lab.ml["events"] = [event(held, NO_RUNTIME, "FailedCreatePodSandBox")]
    else:
        held["status"]["message"] = NO_RUNTIME
    (told,) = of(lab, "reservation")
    assert "has no handler nvidia" in told.cause
    assert told.fix.startswith("set up NVIDIA's container toolkit on that node")


def test_an_edit_of_the_file_needs_no_refresh():
    lab = Lab()
    lab.host["nodes"][0]["spec"]["taints"] = [{"key": "a", "effect": "NoSchedule"}]
    snapshot = lab.look()
    host = replace(snapshot.host, update="`.venv/bin/fleet up --refresh --stack lab`")
    told = [it for it in examine(replace(snapshot, host=host)) if it.subject.startswith("taints")]
    assert [it.fix.rpartition("then ")[2] for it in told] == ["`.venv/bin/fleet up --stack lab`"]
