"""Each thing that goes wrong, made on a healthy stack, and what the doctor says of it."""

import re

import pytest
from kai_fleet_cli.doctor.examine import COMMAND, commands

from tests.engine.doctor_mends import LOOK, MEND, shape
from tests.unit.doctor_cluster_cases import CLUSTERS, SHARDS
from tests.unit.doctor_pod_cases import PODS
from tests.unit.doctor_samples import (
    Lab,
    meta,
    node,
    pod,
)
from tests.unit.doctor_spoils import (
    by_hand,
    in_host_mode,
    waiting,
)

CASES = {**CLUSTERS, **SHARDS, **PODS}


def test_a_healthy_stack_has_nothing_to_say():
    assert Lab().ill() == []


@pytest.mark.parametrize("case", CASES)
def test_the_cause_is_named_with_its_fix(case):
    spoil, check, subject, cause, fix = CASES[case]
    lab = Lab()
    spoil(lab)
    found = lab.ill()
    said = [
        one
        for one in found
        if one.check == check and subject in one.subject and cause in one.cause and fix in one.fix
    ]
    assert said, "\n".join(map(str, found))


@pytest.mark.parametrize(
    "case",
    ["W1 an absent queue", "W1 a parent queue", "W1 no queue", "a full queue", "sharing is off"],
)
def test_one_cause_is_one_finding(case):
    lab = Lab()
    CASES[case][0](lab)
    assert len(lab.ill()) == 1, lab.ill()


@pytest.mark.parametrize(
    ("queue", "well"), [("train", True), ("default-queue", False), (None, False)]
)
def test_a_pod_without_a_queue_has_that_of_its_pod_group(queue, well):
    lab = Lab()
    waiting(queue=None)(lab)
    lab.named("podgroups", "pg-w", "ml")["spec"] = {"queue": queue} if queue else {}
    assert any("names no queue" in each.cause for each in lab.ill()) != well


def test_a_young_pod_is_on_its_way():
    lab = Lab()
    waiting(created="2026-11-01T11:59:50Z", annotations={"pod-group-name": ""})(lab)
    assert lab.ill() == []


def test_a_webhook_that_no_request_comes_to_needs_nobody():
    lab = Lab()
    hook = lab.named("validatingwebhookconfigurations", "validating-kai-admission")["webhooks"][0]
    hook["matchConditions"] = [{"name": "never", "expression": "false"}]
    lab.ml["services"] = [s for s in lab.ml["services"] if s["metadata"]["name"] != "admission"]
    lab.ml["mutatingwebhookconfigurations"] = []
    assert lab.ill() == []


def test_a_team_without_gpus_may_have_a_pool_without_gpus():
    lab = Lab()
    lab.settings["teams"]["ml"] |= {"gpus": 0, "queues": {"cpu-only": {}}}
    wanted = lab.look().teams["ml"].wanted.inside.queue_specs["cpu-only"]
    lab.ml["queues"] = [{"metadata": meta("cpu-only"), "spec": dict(wanted)}]
    lab.host["resourcequotas"][0]["spec"]["hard"]["requests.nvidia.com/gpu"] = "0"
    lab.host["nodes"] = [node("ml-0", gpus="0"), node("other")]
    lab.host["nodes"][1]["metadata"]["labels"] |= {"kai-fleet/pool": "other"}
    lab.ml["pods"] = []
    assert lab.ill() == []


def test_host_mode_is_healthy_too():
    assert in_host_mode().ill() == []


def _hung(name, parent):
    return by_hand(name) | {"spec": {"parentQueue": parent, "resources": {}}}


def test_queues_of_a_teams_own_stack_are_no_strangers():
    """A fix that deletes them would take a team's queues away."""
    lab = in_host_mode()
    lab.settings["teamStacks"] = {"vision": {"gpus": 2, "parentQueue": "serve"}}
    chain = (("vision", "serve"), ("vision-a", "vision"), ("vision-a-b", "vision-a"))
    lab.host["queues"] += [_hung(name, parent) for name, parent in chain]

    def of_queues():
        return [found for found in lab.ill() if found.subject.startswith("queue")]

    assert of_queues() == []
    # That account cannot make one of another name.
    lab.host["queues"] += [_hung("vision-x", "vision-a-b"), _hung("mine", "vision-a")]
    stranger, before = of_queues()
    assert (stranger.subject, before.subject) == ("queues mine", "queue vision-x")
    assert "can close a ring" in before.cause
    assert "name it vision-a-b-…" in before.fix


@pytest.mark.timeout(60)
def test_a_long_chain_of_a_tenants_queues_takes_no_time():
    lab = Lab()
    lab.ml["queues"] += [_hung(f"q{n:05}", f"q{n - 1:05}") for n in range(3_000)]
    assert any("delete queue q02999 q02998" in it.fix for it in lab.ill())


@pytest.mark.timeout(60)
def test_one_group_of_many_pods_takes_no_time():
    lab = Lab()
    group = {"pod-group-name": "all"}
    asks = {"nvidia.com/gpu": "1"}
    lab.ml["pods"] += [pod(f"p{n}", "train", limits=asks, annotations=group) for n in range(3_000)]
    spec = {"queue": "train", "minMember": 3_000}
    lab.ml["podgroups"] = [{"metadata": meta("all", "default"), "spec": spec}]
    assert any("its group of 3000 pods asks for 3000 GPUs" in it.cause for it in lab.ill())


def test_a_pod_of_a_team_in_host_mode_is_judged_by_the_hosts_kai():
    lab = in_host_mode()
    lab.ml["pods"] = [pod("w", queue="serve")]
    (found,) = lab.ill()
    assert (found.check, found.cluster) == ("workload-leaf-queue", "ml")
    assert "the queue of team ml is train" in found.cause


def test_a_queue_of_the_host_that_is_full_is_told_of_a_teams_pod():
    lab = in_host_mode()
    lab.named("queues", "train", "host")["spec"]["resources"]["gpu"]["limit"] = 2
    lab.settings["queues"]["default"]["children"]["train"]["gpu"] = {"quota": 2, "limit": 2}
    lab.named("queues", "train", "host")["spec"]["resources"]["gpu"]["quota"] = 2
    big = pod("big", node="ml-0", namespace="team-ml", limits={"nvidia.com/gpu": 2})
    big["spec"]["nodeSelector"] = {"kai-fleet/pool": "ml"}
    lab.host["pods"] = [big]
    lab.host["podgroups"] = [{"metadata": meta("pg-big", "team-ml")}]
    lab.ml["pods"] = [pod("w", limits={"nvidia.com/gpu": "1"})]
    (found,) = lab.ill()
    assert (found.check, found.cluster) == ("pending", "ml")
    assert "queue train holds 2 of at most 2" in found.cause


def test_a_vcluster_that_only_the_host_reaches_says_so():
    lab = Lab()
    lab.settings["teams"]["ml"]["vcluster"] = {"access": {"type": "ClusterIP"}}
    lab.unreached = "it cannot be connected to"
    assert "is reached from inside the host only" in lab.ill()[0].cause


@pytest.mark.parametrize("case", CASES)
def test_every_command_of_a_fix_is_one_that_was_run(case):
    lab = Lab()
    CASES[case][0](lab)
    for finding in lab.ill():
        for command in commands(finding.fix):
            if command != "make up STACK=lab":
                assert shape(command) in MEND | LOOK, command
        rest = COMMAND.sub("", finding.fix)
        assert not re.search(r"\b(kubectl|helm|fleet|pulumi) [a-z-]", rest), finding.fix
