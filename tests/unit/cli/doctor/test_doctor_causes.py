"""One cause is one finding, with its remedy, and what a tenant did wrong inside is told apart."""

import pytest

from kai_fleet_cli.doctor.diagnosis import Diagnosis, ExitCode
from kai_fleet_policies.finding import Level
from kubectl_fleet.cluster import Snapshot
from kubectl_fleet.reasons import Reasons
from kubectl_fleet.tree import Usage
from tests.unit.cli.doctor.doctor_cases import PODS
from tests.unit.cli.doctor.doctor_samples import (
    NOW,
    Lab,
    by_hand,
    event,
    in_host_mode,
    pod,
    reservation,
)
from tests.unit.cli.doctor.doctor_spoils import add, both, gone, grouped, waiting, without

TREE = "kai-fleet/tree"
LABEL = {"nodeSelector": {"gpu": "a100"}}
GATES = {"schedulingGates": [{"name": "quota"}]}


def look(*spoils, lab=None):
    """The lab's findings after these."""
    lab = lab or Lab()
    both(*spoils)(lab)
    return lab.ill()


def code(found):
    return Diagnosis("lab", tuple(found)).exit_code


def without_class(lab):
    """No RuntimeClass nvidia anywhere, and what waits for it."""
    both(gone("runtimeclasses", "nvidia", "host"), gone("runtimeclasses", "nvidia"))(lab)
    gone("pods", "gpu-reservation-ml-0-x7")(lab)
    held = reservation()
    held["status"] = {"phase": "Pending"}
    text = 'Failed to create pod sandbox: RuntimeClass "nvidia" not found'
    add(pods=[held], events=[event(held, text, "FailedCreatePodSandBox")])(lab)
    for name in ("a", "b"):
        waiting(name, spec={"runtimeClassName": "nvidia"})(lab)


def test_a_runtime_class_that_is_absent_is_one_finding_with_what_fails_for_it():
    (found,) = look(without_class)
    assert (found.path, found.subject) == ("host", "RuntimeClass nvidia")
    assert "kai-fleet:gpu.provider" in found.fix
    for name in ("RuntimeClass nvidia (ml)", "pod default/a (ml)", "gpu-reservation-ml-0-x7 (ml)"):
        assert name in found.cause


def test_a_class_that_only_the_vcluster_lacks_is_one_finding_there():
    pods = waiting("a", spec={"runtimeClassName": "nvidia"})
    (found,) = look(gone("runtimeclasses", "nvidia"), pods)
    assert (found.path, found.check) == ("ml", "runtime-class")
    assert "sync.fromHost.runtimeClasses" in found.fix and "pod default/a (ml)" in found.cause


def test_a_class_that_the_platform_names_is_the_platforms_fault_alone():
    lab = Lab()
    lab.settings["isolation"] = {"runtimeClasses": ["wasm"]}
    (found,) = look(waiting("a", spec={"runtimeClassName": "wasm"}), lab=lab)
    assert (found.path, found.check, found.level) == ("host", "classes", Level.ADVISORY)
    assert "pod default/a (ml)" in found.cause


@pytest.mark.parametrize(
    "wrong",
    [
        waiting(queue="nosuch"),
        waiting(queue=None),
        waiting(queue="default"),
        waiting(spec={"runtimeClassName": "nvidai"}),
        waiting(spec={"schedulerName": "default-scheduler"}),
        waiting(limits={"nvidia.com/gpu": "64"}),
        waiting(spec=LABEL),
        waiting(spec=GATES),
        grouped(pod("w", node="ml-0", annotations={"kai.scheduler/gpu-fraction": "0.5"})),
        waiting(text="0/1 nodes are available: 1 Insufficient cpu."),
    ],
)
def test_what_a_tenant_did_wrong_inside_does_not_make_the_stack_broken(wrong):
    found = look(wrong)
    assert {each.level for each in found} == {Level.INFO}
    assert code(found) is ExitCode.HEALTHY
    beside = look(wrong, without("gpus"))
    assert code(beside) is ExitCode.BROKEN


@pytest.mark.parametrize(
    "wrong", [both(gone("queues", "train"), waiting()), gone("podgroups", "pg-infer-a")]
)
def test_what_a_tenant_cannot_mend_is_broken(wrong):
    assert code(look(wrong)) is ExitCode.BROKEN


def test_pods_of_the_host_itself_are_no_tenants():
    lab = in_host_mode()
    lab.host["pods"] = [pod("w", "nosuch", namespace="default")]
    assert code(lab.ill()) is ExitCode.BROKEN


@pytest.mark.parametrize(
    ("spec", "words"), [(LABEL, "labels that it asks for: gpu=a100"), (GATES, "closed: quota")]
)
def test_a_pod_that_no_message_is_about_has_its_reason(spec, words):
    (found,) = look(waiting(spec=spec))
    assert words in found.cause


def test_a_node_that_an_autoscaler_may_make_is_not_missed():
    lab = Lab()
    lab.settings["teams"]["ml"]["autoscaled"] = True
    (found,) = look(waiting(spec=LABEL), lab=lab)
    assert "nothing known" in found.cause


def reason_of_kubectl(lab, name):
    """What `kubectl fleet pending` says of a pod."""
    objects = lab.look().teams["ml"].inside.objects
    served = {kind: [{"spec": {}, **each} for each in items] for kind, items in objects.items()}
    usage = Usage(Snapshot(served, set(), "default", None, False, "kubectl", NOW))
    (found,) = (each for each in usage.pods if each.name == name)
    return Reasons(usage).first_reason(found)


MORE = {"a label of a node": waiting(spec=LABEL), "gates": waiting(spec=GATES)}


@pytest.mark.parametrize("case", [*PODS, *MORE])
def test_the_doctor_and_kubectl_know_the_reasons_of_the_same_pods(case):
    lab = Lab()
    (MORE.get(case) or PODS[case][0])(lab)
    if not any(each["metadata"]["name"] == "w" for each in lab.ml["pods"]):
        return  # nothing waits
    if (why := reason_of_kubectl(lab, "w")) is None or "nothing that may be read" in why.cause:
        return
    found = [each for each in lab.ill() if "default/w" in each.name]
    assert found, why
    assert not any("nothing known gives a reason" in each.cause for each in found), why


def queue(name, *finalizers, going=True, **labels):
    item = by_hand(name)
    item["metadata"] |= {"labels": labels, "finalizers": [*finalizers]}
    if going:
        item["metadata"]["deletionTimestamp"] = "2026-11-01T11:00:00Z"
    return item


def test_a_declared_queue_that_does_not_go_is_named_with_its_finalizer():
    lab = Lab()
    lab.named("queues", "train")["metadata"] |= queue("train", "acme.io/keep")["metadata"]
    (found,) = lab.ill()
    assert (found.check, found.subject) == ("queues", "queue train")
    assert "is being deleted, and stays until its finalizers are gone: acme.io/keep" in found.cause
    assert found.commands[0] == "kubectl --kubeconfig ml get queues train -o yaml"
    assert found.fix.endswith("`make up STACK=lab`, which makes it again")


def test_any_required_object_that_does_not_go_is_named():
    lab = Lab()
    read = lab.look()
    (binding,) = (
        each
        for each in read.host.objects["validatingadmissionpolicybindings"]
        if each["metadata"]["name"] == "kai-fleet-nodes-ml"
    )
    lab.gone.add("kai-fleet-nodes-ml")
    binding["metadata"] |= queue("x", "acme.io/keep")["metadata"] | {"name": "kai-fleet-nodes-ml"}
    lab.host["validatingadmissionpolicybindings"] = [binding]
    (found,) = lab.ill()
    assert (found.check, found.level) == ("isolation", Level.MANDATORY)
    assert "finalizers are gone: acme.io/keep" in found.cause


@pytest.mark.parametrize("finalizers", [(), ("acme.io/keep",)])
def test_an_undeclared_queue_that_goes_was_made_by_nobody_by_hand(finalizers):
    (found,) = look(add(queues=[queue("old", *finalizers)]))
    assert "is being deleted" in found.cause and found.level is Level.ADVISORY
    assert "by hand" not in found.cause and "delete queue" not in found.fix
    assert all(name in found.cause for name in finalizers)


def test_a_queue_that_the_file_had_is_left_over_and_an_update_deletes_it():
    (found,) = look(add(queues=[queue("old", going=False, **{TREE: "ml-queues"})]))
    assert "left over from this stack" in found.cause
    assert found.fix.startswith("`make up STACK=lab`, which deletes it")
    (found,) = look(add(queues=[queue("old", going=False, **{TREE: "theirs"})]))
    assert "another program made it" in found.cause
