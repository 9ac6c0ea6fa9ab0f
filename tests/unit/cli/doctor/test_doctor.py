"""What the doctor says of each thing that goes wrong: once, with its fix, and nothing else."""

import re

import pytest

from kai_fleet_cli.doctor.required import required_objects
from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.stack_file.reading import settings_of
from kai_fleet_policies.finding import Level
from kai_fleet_stack.declared import host_of
from tests.engine.doctor_repairs import LOOK, OF_STORES, REPAIR, shape
from tests.unit.cli.doctor.doctor_cases import CASES
from tests.unit.cli.doctor.doctor_samples import Lab, by_hand, event, in_host_mode, meta, node, pod
from tests.unit.cli.doctor.doctor_spoils import gone, waiting, without

GPU = "nvidia.com/gpu"


def only(lab):
    (found,) = lab.ill()
    return found


def of(lab, check):
    return [found for found in lab.ill() if found.check == check]


def test_a_healthy_stack_has_no_findings():
    assert Lab().ill() == []
    assert in_host_mode().ill() == []


@pytest.mark.parametrize("case", CASES)
def test_the_cause_is_named_with_its_fix(case):
    spoil, words = CASES[case]
    check, subject, cause, fix = words.split(" | ")
    lab = Lab()
    spoil(lab)
    found = lab.ill()
    assert any(
        each.check == check and subject in each.subject and cause in each.cause and fix in each.fix
        for each in found
    ), "\n".join(map(str, found))
    for finding in found:
        for command in finding.commands:
            known = REPAIR | LOOK | OF_STORES
            assert command == "make up STACK=lab" or shape(command) in known, command
        rest = finding.fix
        for command in finding.commands:
            assert f"`{command}`" in rest, finding
            rest = rest.replace(f"`{command}`", "", 1)
        assert not re.search(r"`|\b(kubectl|helm|fleet|pulumi) [a-z-]", rest), finding
        assert not re.search(r"\{[a-z_]+\}", f"{finding.cause}{finding.fix}"), finding


@pytest.mark.parametrize("case", ["an absent queue", "no queue", "a full queue", "sharing is off"])
def test_one_cause_is_one_finding(case):
    lab = Lab()
    CASES[case][0](lab)
    assert only(lab).level is not Level.ADVISORY


def test_pods_that_wait_for_one_reason_are_one_finding_with_their_names():
    lab = Lab()
    for n in range(12):
        waiting(f"w-{n}", queue="nosuch")(lab)
    waiting("x", queue="nosuch", namespace="other")(lab)
    found = only(lab)
    assert found.name.startswith("default/w-0, default/w-1, ")
    assert found.name.endswith("… (3 more)")


def test_amounts_that_differ_are_no_other_cause_and_other_reasons_are():
    lab = Lab()
    for n, gpus in enumerate(("2", "3", "4")):
        waiting(f"w-{n}", limits={GPU: gpus})(lab)
    waiting("big", limits={GPU: "3"}, spec={"nodeName": "ml-0"}, status={"phase": "Running"})(lab)
    assert only(lab).name == "default/w-0, default/w-1 and default/w-2"
    waiting("v", queue="default")(lab)
    assert len(lab.ill()) == 2


def test_a_command_that_repairs_names_everything_and_one_that_looks_names_one():
    lab = Lab()
    bound = {"conditions": [{"type": "PodBound", "status": "True"}]}
    for name, namespace in (("a", "default"), ("b", "default"), ("c", "other")):
        waiting(name, status=bound, namespace=namespace)(lab)
    assert only(lab).commands[:2] == (
        "kubectl --kubeconfig ml -n default delete pod a b",
        "kubectl --kubeconfig ml -n other delete pod c",
    )
    lab = Lab()
    for n in range(3):
        waiting(f"w-{n}")(lab)
    (looks,) = only(lab).commands
    assert looks == "kubectl --kubeconfig ml -n default describe pod w-0"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pods", "nothing bounds what its pods take"),
        ("gpus", "the team may take every GPU"),
        ("system-priority", "may preempt those of the system"),
        ("kai-fleet-pods", "nothing judges"),  # the policy and its binding, and a network policy
        ("kai-fleet-nodes-ml", "its pods may be on nodes of other teams"),
        ("kai-fleet-vcluster-ml", "the vCluster cannot read what the host has"),
    ],
)
def test_what_isolates_a_team_and_is_gone_is_named(name, words):
    lab = Lab()
    without(name)(lab)
    found = of(lab, "isolation")
    assert all(entry.level is Level.MANDATORY for entry in found)
    assert all(entry.fix == "`make up STACK=lab`" and name in entry.name for entry in found)
    assert any(words in entry.cause for entry in found)


def test_a_network_policy_that_is_gone_or_that_nobody_declared_is_named():
    lab = Lab()
    without("kai-fleet-pods")(lab)
    lab.host["networkpolicies"] = [{"metadata": meta("open", "team-ml")}]
    found = {entry.name: entry for entry in lab.ill() if entry.kind == "NetworkPolicy"}
    assert "its pods reach those of other teams" in found["team-ml/kai-fleet-pods"].cause
    assert "`kubectl -n team-ml delete networkpolicy open`" in found["team-ml/open"].fix


def on_host(name, **more):
    own = {"nodeName": "ml-0", "containers": [{"name": "a", "image": "x"}]}
    return {"metadata": meta(name, "team-ml", **more), "spec": own, "status": {"phase": "Running"}}


def test_pods_that_carry_tokens_in_annotations_are_named_without_them():
    lab = Lab()
    lab.host["pods"].append(on_host("old", annotations={"vcluster.loft.sh/token-abc": "eyJ"}))
    found = only(lab)
    assert (found.check, found.name) == ("isolation", "team-ml/old")
    assert "-n team-ml delete pod old" in found.fix
    assert "eyJ" not in str(found)


def test_pods_that_name_one_config_map_of_kai_are_named():
    lab = Lab()
    notes = {"runai/shared-gpu-configmap": "train-shared-gpu"}
    lab.host["pods"] += [on_host(name, annotations=notes) for name in ("one", "two")]
    found = only(lab)
    assert (found.check, found.name) == ("shared-gpu", "team-ml/one and team-ml/two")


def test_a_control_plane_on_a_node_of_others_is_named():
    lab = Lab()
    lab.host["pods"].append(on_host("ml-0", labels={"app": "vcluster", "release": "ml"}))
    lab.named("nodes", "ml-0", "host")["metadata"]["labels"]["kai-fleet/pool"] = "dev"
    assert any(
        "on a node without the labels kai-fleet/pool=ml" in entry.cause for entry in lab.ill()
    )


@pytest.mark.parametrize(("used", "count"), [("4k", 0), ("4001", 1)])
def test_a_quota_of_secrets_that_is_nearly_full_is_a_warning(used, count):
    lab = Lab()
    status = {"hard": {"secrets": "5k"}, "used": {"secrets": used}}
    without("objects")(lab)
    lab.host["resourcequotas"] = [{"metadata": meta("objects", "team-ml"), "status": status}]
    found = lab.ill()
    assert len(found) == count
    assert all("xargs -r kubectl -n team-ml delete secret" in entry.fix for entry in found)


@pytest.mark.parametrize(
    ("name", "argument", "enforces"),
    [
        ("kube-flannel-ds", "", False),
        ("aws-node", "--enable-network-policy=false", False),
        ("aws-node", "--enable-network-policy=true", True),
        ("rke2-canal", "", True),
    ],
)
def test_network_policies_that_nothing_enforces_are_a_warning(name, argument, enforces):
    lab = Lab()
    pods = {"spec": {"containers": [{"name": "agent", "args": [argument]}]}}
    item = {"metadata": meta(name, "kube-system"), "spec": {"template": pods}}
    lab.host["daemonsets"] = [item | {"status": {"desiredNumberScheduled": 1, "numberReady": 1}}]
    words = "no DaemonSet is of one that is known to enforce"
    assert [words in finding.cause for finding in lab.ill()] == [True] * (not enforces)
    lab.settings["isolation"] = {"network": {"enabled": False}}
    assert of(lab, "network-plugin") == []


def test_an_api_server_at_another_port_than_the_policies_allow_is_broken():
    lab = Lab()
    ports = {"spec": {"ports": [{"targetPort": 8443}]}}
    lab.host["services"].append({"metadata": meta("kubernetes", "default")} | ports)
    assert only(lab).fix == "write kai-fleet:isolation.network.apiPorts: [443, 8443]"
    lab.host["nodes"][0]["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
    assert lab.ill() == [], "no vCluster runs on the sandbox's nodes"


def test_the_place_of_a_team_with_a_stack_of_its_own_is_checked_with_its_platform():
    lab = Lab()
    lab.settings["teamStacks"] = {"nlp": {"nodePool": {"kai-fleet/pool": "nlp"}, "gpus": 2}}
    labels = {"kai-fleet/team": "nlp", "pod-security.kubernetes.io/enforce": "privileged"}
    lab.host["namespaces"].append({"metadata": meta("team-nlp", labels=labels)})
    without("gpus", "kai-fleet-nodes-nlp")(lab)
    subjects = {entry.subject for entry in of(lab, "isolation") if "nlp" in entry.subject}
    assert subjects >= {
        "ResourceQuota team-ml/gpus and team-nlp/gpus",
        "ValidatingAdmissionPolicyBinding kai-fleet-nodes-nlp",
    }


@pytest.mark.parametrize(("queue", "healthy"), [("train", True), ("default-queue", False)])
def test_a_pod_without_a_queue_has_that_of_its_pod_group(queue, healthy):
    lab = Lab()
    waiting(queue=None)(lab)
    lab.named("podgroups", "pg-w", "ml")["spec"] = {"queue": queue}
    assert any("queue" in each.cause for each in lab.ill()) != healthy


def test_a_young_pod_is_on_its_way():
    lab = Lab()
    waiting(created="2026-11-01T11:59:50Z", annotations={"pod-group-name": ""})(lab)
    assert lab.ill() == []


def test_a_webhook_that_no_request_comes_to_needs_no_answer():
    lab = Lab()
    hook = lab.named("validatingwebhookconfigurations", "validating-kai-admission")["webhooks"][0]
    hook["matchConditions"] = [{"name": "never", "expression": "false"}]
    gone("services", "admission")(lab)
    lab.ml["mutatingwebhookconfigurations"] = []
    assert lab.ill() == []


def test_a_team_without_gpus_may_have_a_pool_without_gpus():
    lab = Lab()
    lab.settings["teams"]["ml"] |= {"gpus": 0, "queues": {"cpu-only": {}}}
    lab.ml |= {"queues": [by_hand("cpu-only")], "pods": []}
    lab.host["nodes"] = [node("ml-0", gpus="0"), node("other")]
    lab.host["nodes"][1]["metadata"]["labels"] |= {"kai-fleet/pool": "other"}
    assert lab.ill() == []


def test_queues_of_a_teams_own_stack_are_its_own():
    """A fix that deletes them would take a team's queues away."""
    lab = in_host_mode()
    lab.settings["teamStacks"] = {"vision": {"gpus": 2, "parentQueue": "serve"}}
    for name, parent in (("vision", "serve"), ("vision-a", "vision"), ("mine", "vision")):
        lab.host["queues"].append(by_hand(name) | {"spec": {"parentQueue": parent}})
    assert [entry.name for entry in of(lab, "queues")] == ["mine"]


def test_queues_made_by_hand_are_deleted_children_first():
    lab = Lab()
    for name, parent in (("a", None), ("b", "a"), ("c", "b"), ("d", None)):
        lab.ml["queues"].append(by_hand(name) | {"spec": {"parentQueue": parent}})
    assert only(lab).commands == ("kubectl --kubeconfig ml delete queue c b a d",)


@pytest.mark.timeout(60)
def test_many_queues_of_a_tenant_take_no_time():
    lab = Lab()
    for n in range(3_000):
        parent = {"spec": {"parentQueue": f"q{n - 1:05}" if n else None}}
        lab.ml["queues"].append(by_hand(f"q{n:05}") | parent)
    assert any("delete queue q02999 q02998" in entry.fix for entry in lab.ill())


def test_the_limit_of_a_queue_that_nobody_declared_is_raised_by_a_command():
    lab = Lab()
    mine = {"parentQueue": "default", "resources": {"gpu": {"quota": 0, "limit": 1}}}
    lab.ml["queues"].append(by_hand("mine") | {"spec": mine})
    waiting(queue="mine", limits={GPU: "2"})(lab)
    (found,) = of(lab, "pending")
    (command,) = found.commands
    patch = '{"spec": {"resources": {"gpu": {"limit": 2}}}}'
    assert command == f"kubectl --kubeconfig ml patch queue mine --type merge -p '{patch}'"


def test_in_host_mode_the_hosts_kai_judges_a_teams_pods():
    lab = in_host_mode()
    lab.ml["pods"] = [pod("w", queue="serve")]
    found = only(lab)
    assert (found.check, found.path) == ("workload-leaf-queue", "ml")
    assert "the queue of its team is train" in found.cause
    big = pod("big", node="ml-0", namespace="team-ml", limits={GPU: 4})
    half = pod("half", node="ml-0", namespace="team-ml", annotations={"gpu-fraction": "0.5"})
    lab.host["pods"] = [big, half]
    lab.host["podgroups"] = [
        {"metadata": meta(f"pg-{entry}", "team-ml")} for entry in ("big", "half")
    ]
    lab.ml["pods"] = [pod("w", limits={GPU: "1"})]
    causes = [entry.cause for entry in lab.ill()]
    assert any("queue train holds 4.5 of at most 4" in cause for cause in causes)
    assert any("its pods hold 4.5 GPUs, and 4 are declared" in cause for cause in causes)


def test_a_pod_is_reported_in_its_vcluster_and_not_by_its_copy_on_the_host():
    lab = Lab()
    waiting(queue="serve", limits={GPU: "9"})(lab)
    copy = pod("w-x-default-x-ml", "serve", namespace="team-ml", limits={GPU: "9"})
    lab.host["pods"].append(copy)
    assert only(lab).path == "ml"


def test_a_reservation_pod_on_a_node_without_the_runtime_needs_the_runtime_first():
    lab = Lab()
    held = lab.named("pods", "gpu-reservation-ml-0-x7")
    held["status"] = {"phase": "Pending"}
    assert " delete pod gpu-reservation-ml-0-x7" in only(lab).fix
    text = 'Failed to create pod sandbox: no runtime for "nvidia" is configured'
    lab.ml["events"] = [event(held, text, "FailedCreatePodSandBox")]
    found = only(lab)
    assert found.fix.startswith("set up NVIDIA's container toolkit on that node")
    assert "; then `kubectl" in found.fix


@pytest.mark.parametrize("stack", ["sandbox", "prod", "sandbox-host"])
def test_what_the_doctor_requires_is_what_the_program_declares(stack):
    declared = set()
    for resource in plan(stack).resources:
        metadata = resource.inputs.get("metadata") or {}
        kind = resource.type.rpartition(":")[2]
        declared.add((kind, metadata.get("name"), metadata.get("namespace")))
    settings = settings_of(stack)
    host = host_of(settings)
    teams = {team.name: team for team in (*host.teams, *host.grants)}
    # Of providers of their own; the class may be of whoever installed the GPU stack.
    of_providers = ("queue", "SchedulingShard", "Topology", "RuntimeClass")
    required = [
        row for row in required_objects(settings, host, teams) if row.kind not in of_providers
    ]
    assert len(required) > 10
    assert [
        entry for entry in required if (entry.kind, entry.name, entry.namespace) not in declared
    ] == []
