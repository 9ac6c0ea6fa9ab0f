"""One finding for one cause, gone when the cause is, and the first advice one that can help."""

import pytest
from kai_fleet_cli.doctor.examine import commands

from tests.unit.doctor_samples import Lab, event, meta, pod
from tests.unit.doctor_spoils import both, by_hand, gone, in_host_mode, waiting

GPU = "nvidia.com/gpu"


def only(lab):
    (found,) = lab.ill()
    return found


def many(count, **more):
    return both(*(waiting(f"w-{n}", **more) for n in range(count)))


def test_ten_pods_that_wait_for_one_reason_are_one_finding():
    lab = Lab()
    many(10, queue="nosuch")(lab)
    found = only(lab)
    assert found.subject == "10 pods in namespace default: w-0, w-1, w-2, w-3, w-4 and 5 more"
    assert len(found.things) == 10


def test_amounts_that_differ_are_no_other_cause():
    lab = Lab()
    for n, gpus in enumerate(("2", "3", "4")):
        waiting(f"w-{n}", limits={GPU: gpus})(lab)
    waiting("big", queue="train", limits={GPU: "3"}, spec={"nodeName": "ml-0"})(lab)
    lab.named("pods", "big")["status"]["phase"] = "Running"
    assert len(only(lab).things) == 3


def test_two_reasons_are_two_findings():
    lab = Lab()
    many(3, queue="nosuch")(lab)
    both(*(waiting(f"v-{n}", queue="default") for n in range(2)))(lab)
    assert sorted(len(found.things) for found in lab.ill()) == [2, 3]


def test_pods_of_several_namespaces_are_named_with_theirs():
    lab = Lab()
    many(1, queue="nosuch")(lab)
    lab.ml["pods"].append(pod("x", "nosuch", namespace="other"))
    lab.ml["podgroups"].append({"metadata": meta("pg-x", "other")})
    assert only(lab).subject == "2 pods: default/w-0, other/x"


def test_a_command_that_mends_names_everything():
    lab = Lab()
    many(3, status={"conditions": [{"type": "PodBound", "status": "True"}]})(lab)
    mends, looks = commands(only(lab).fix)
    assert mends == "kubectl --kubeconfig ml -n default delete pod w-0 w-1 w-2"
    assert looks.endswith("logs deployment/binder")


def test_a_command_that_looks_names_one():
    lab = Lab()
    many(3)(lab)
    (looks,) = commands(only(lab).fix)
    assert looks == "kubectl --kubeconfig ml -n default describe pod w-0"


def test_a_lost_queue_is_said_of_the_queue_and_once_of_its_pods():
    lab = Lab()
    gone("queues", "train")(lab)
    many(3)(lab)
    queue, pods = lab.ill()
    assert (queue.check, queue.subject) == ("queues", "queue train")
    assert pods.cause == "its queue train is not there, and the stack declares it"
    assert queue.fix == pods.fix == "`make up STACK=lab`"


@pytest.mark.parametrize(
    ("kind", "plural", "maker", "told"),
    [
        ("ReplicaSet", "replicasets", {"spec": {"replicas": 2}, "status": {"replicas": 1}}, 1),
        ("ReplicaSet", "replicasets", {"spec": {"replicas": 2}, "status": {"replicas": 2}}, 0),
        ("ReplicaSet", "replicasets", {"spec": {"replicas": 0}, "status": {}}, 0),
        ("ReplicaSet", "replicasets", None, 0),
        ("Job", "jobs", {"spec": {}, "status": {}}, 1),
        ("Job", "jobs", {"spec": {}, "status": {"active": 1}}, 0),
        ("Job", "jobs", {"spec": {}, "status": {"succeeded": 1}}, 0),
    ],
)
def test_what_was_refused_is_gone_when_the_cause_is(kind, plural, maker, told):
    lab = Lab()
    about = {"metadata": meta("api-1", "default")}
    lab.ml[plural] = [] if maker is None else [about | maker]
    text = "pods is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1"
    lab.ml["events"] = [event(about, text, "FailedCreate", kind) for _ in range(10)]
    assert len(lab.ill()) == told


def test_what_is_asked_and_can_never_be_had_is_not_waited_for():
    lab = Lab()
    waiting(queue="serve", limits={GPU: "9"})(lab)
    found = only(lab)
    assert found.cause == "it asks for 9 GPUs, and queue serve may hold at most 2: it never runs"
    assert found.fix == (
        "ask for at most 2, or raise gpu.limit of serve at kai-fleet:teams.ml.queues"
    )


def test_a_gang_is_counted_together():
    lab = Lab()
    for n in range(3):
        waiting(f"w-{n}", limits={GPU: "2"}, annotations={"pod-group-name": "gang"})(lab)
    lab.ml["podgroups"].append({"metadata": meta("gang", "default"), "spec": {"minMember": 3}})
    found = only(lab)
    assert found.cause == (
        "its group of 3 pods asks for 6 GPUs together, and queue default may hold at most 4: it"
        " never runs"
    )
    assert found.fix == "ask for at most 4, or raise kai-fleet:teams.ml.gpus"


def test_shares_of_more_devices_than_a_node_has_never_run():
    lab = Lab()
    notes = {"gpu-fraction": "0.1", "gpu-fraction-num-devices": "5"}
    waiting(annotations=notes)(lab)
    assert "asks for 5 GPUs, and no Ready node has more than 4: it never runs" in only(lab).cause


def test_the_limit_of_a_queue_that_nobody_declared_is_raised_by_a_command():
    lab = Lab()
    mine = by_hand("mine")
    mine["spec"] = {"parentQueue": "default", "resources": {"gpu": {"quota": 0, "limit": 1}}}
    lab.ml["queues"].append(mine)
    waiting(queue="mine", limits={GPU: "2"})(lab)
    (found,) = (one for one in lab.ill() if one.check == "pending")
    (command,) = commands(found.fix)
    patch = '{"spec": {"resources": {"gpu": {"limit": 2}}}}'
    assert command == f"kubectl --kubeconfig ml patch queue mine --type merge -p '{patch}'"


def test_every_queue_made_by_hand_is_deleted_children_first():
    lab = Lab()
    for name, parent in (("a", None), ("b", "a"), ("c", "b"), ("d", None)):
        lab.ml["queues"].append(by_hand(name))
        if parent:
            lab.ml["queues"][-1]["spec"]["parentQueue"] = parent
    found = only(lab)
    assert found.subject == "queues a, b, c, d"
    assert commands(found.fix) == ["kubectl --kubeconfig ml delete queue c b a d"]


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("nvidia", "where no device plugin runs yet, set kai-fleet:gpu.provider to operator or "),
        ("gvisor", "drop runtimeClassName, or have the platform make that class on the host"),
    ],
)
def test_a_missing_runtime_class_has_its_own_advice(name, fix):
    lab = Lab()
    gone("runtimeclasses", "nvidia")(lab)
    waiting(spec={"runtimeClassName": name})(lab)
    (found,) = (one for one in lab.ill() if one.check == "pending")
    assert found.fix.startswith(fix)


def test_a_host_without_a_runtime_class_is_one_finding():
    lab = Lab()
    both(gone("runtimeclasses", "nvidia"), gone("runtimeclasses", "nvidia", "host"))(lab)
    assert only(lab).cluster == "host"


def test_a_vcluster_without_its_statefulset_is_made_again_from_its_release():
    lab = Lab()
    gone("statefulsets", "ml", "host")(lab)
    assert only(lab).fix == "`make up STACK=lab`", "nothing of it is there"
    lab.host["services"] = [{"metadata": meta("ml", "team-ml")}]
    (command,) = commands(only(lab).fix)
    assert command == "helm -n team-ml get manifest ml | kubectl -n team-ml apply -f -"


def test_a_team_with_a_kai_and_no_queue_is_a_warning():
    lab = Lab()
    lab.settings["teams"]["ml"]["queues"] = {}
    lab.ml |= {"queues": [], "pods": []}
    found = only(lab)
    assert (found.check, found.health, found.subject) == (
        "queues",
        "warning",
        "queues of team ml",
    )
    assert found.fix == "declare one at kai-fleet:teams.ml.queues, then `make up STACK=lab`"


def test_the_guard_inside_that_its_tenant_deleted_is_seen():
    lab = Lab()
    look = lab.look().teams["ml"].inside
    lab.ml["validatingadmissionpolicybindings"] = look.objects["validatingadmissionpolicybindings"][
        1:
    ]
    found = only(lab)
    assert (found.check, found.health) == ("guard", "warning")
    assert found.subject == "ValidatingAdmissionPolicyBinding kai-fleet-queues-ml"
    assert "a wrong one, are let in" in found.cause


def test_the_guard_inside_that_was_emptied_is_seen():
    lab = Lab()
    look = lab.look().teams["ml"].inside
    lab.ml["validatingadmissionpolicies"] = [*look.objects["validatingadmissionpolicies"]]
    lab.ml["validatingadmissionpolicies"][0]["spec"]["validations"] = [{"expression": "true"}]
    assert only(lab).cause.startswith("its validations is not as this version declares")


def test_in_host_mode_shares_are_counted_where_the_quota_does_not():
    lab = in_host_mode()
    pool = {"kai-fleet/pool": "ml"}
    half = {"gpu-fraction": "0.5"}
    held = [
        *(pod(f"half-{n}", node="ml-0", namespace="team-ml", annotations=half) for n in range(2)),
        pod("whole", node="ml-0", namespace="team-ml", limits={GPU: "4"}),
    ]
    for each in held:
        each["spec"]["nodeSelector"] = pool
    lab.host["pods"] = held
    found = next(one for one in lab.ill() if one.check == "gpu-quota")
    assert (found.subject, found.health) == ("GPUs of team ml", "broken")
    assert found.cause.startswith("its pods hold 5, and 4 are declared")
    assert "write gpu.limit: 4 for train at kai-fleet:queues" in found.fix


def test_a_pod_that_waits_is_told_of_its_vcluster_and_not_of_its_copy_on_the_host():
    lab = Lab()
    waiting(queue="serve", limits={GPU: "9"})(lab)
    copy = pod("w-x-default-x-ml", "serve", namespace="team-ml", limits={GPU: "9"})
    copy["spec"]["nodeSelector"] = {"kai-fleet/pool": "ml"}
    lab.host["pods"].append(copy)
    assert only(lab).cluster == "ml"


def test_the_bounds_of_a_team_with_a_stack_of_its_own_are_the_platforms_to_see():
    lab = Lab()
    lab.settings["teamStacks"] = {"nlp": {"nodePool": {"kai-fleet/pool": "nlp"}, "gpus": 2}}
    labels = {"kai-fleet/team": "nlp", "pod-security.kubernetes.io/enforce": "privileged"}
    lab.host["namespaces"].append({"metadata": meta("team-nlp", labels=labels)})
    causes = {found.subject: found.cause for found in lab.ill() if "nlp" in found.subject}
    assert "its label pod-security.kubernetes.io/enforce is" in causes["namespace team-nlp"]
    assert "ResourceQuota gpus in namespace team-nlp" in causes


def test_each_of_several_pods_is_told_all_that_is_wrong_with_it():
    lab = Lab()
    wrong = {"gpu-fraction": "0.5", "gpu-memory": "2000", "kai.scheduler/gpu-fraction": "0.5"}
    lab.ml["pods"] += [pod(name, annotations=wrong) for name in ("a", "b")]
    lab.ml["podgroups"] += [{"metadata": meta(f"pg-{name}", "default")} for name in ("a", "b")]
    told = [finding.things for finding in lab.ill()]
    assert len(told) == 2
    assert all(len(things) == 2 for things in told)
