"""The rules about workloads, asked of a stack file: each refusal names the workload's key."""

import pytest

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet_policies import validation
from kai_fleet_policies.adapters import from_resources
from kai_fleet_policies.problem import Level
from tests.unit.test_workloads import CLUSTER, HALF, POD, TEAMS, UNLIMITED, VLLM

HOST = {
    "kai": {"version": "v0.16.8"},
    "queues": {"top": {**UNLIMITED, "children": {"leaf": UNLIMITED, "other": UNLIMITED}}},
    "teams": {"one": {"scheduler": {"mode": "host"}, "queue": "leaf", "gpus": 1}},
}

OFF = {"mode": "virtual", "version": "v0.16.8", "gpuSharing": False}
NOT_SHARED = {"teams": {"one": {**TEAMS["one"], "scheduler": OFF}}}


def problems(workload, **settings):
    raw = {"cluster": CLUSTER, "teams": TEAMS, "workloads": {"w": workload}, **settings}
    return {
        p.rule: (p.level, p.path, p.message)
        for p in validation.validate(raw).problems
        if p.path.startswith("kai-fleet:workloads")
    }


@pytest.mark.parametrize("workload", [POD, {**POD, **HALF}, {**VLLM, **HALF}])
@pytest.mark.parametrize("settings", [{}, HOST])
def test_nothing_is_said_of_what_the_components_write(workload, settings):
    assert problems(workload, **settings) == {}


@pytest.mark.parametrize(
    ("workload", "settings", "rule", "says"),
    [
        ({**POD, "queue": "onyl"}, {}, "workload-leaf-queue", "write only"),
        ({**POD, "queue": "other"}, HOST, "workload-leaf-queue", "queue of team one is leaf"),
        ({**POD, "namespace": "kai-scheduler"}, {}, "namespace-reserved", "reserved"),
        ({**POD, **HALF}, NOT_SHARED, "workload-gpu-sharing", "gpuSharing: true"),
    ],
)
def test_a_rule_refuses_by_key(workload, settings, rule, says):
    level, path, message = problems(workload, **settings)[rule]
    assert (level, path) == (Level.MANDATORY, "kai-fleet:workloads.w")
    assert says in message


def test_the_plan_sees_the_same_workloads_in_the_declared_resources():
    from kai_fleet_cli.plan.picture import as_declared
    from kai_fleet_cli.plan.recorder import record

    work = {"half": {**POD, **HALF}, "qwen": {**VLLM, **HALF}}
    raw = {"cluster": CLUSTER, "teams": TEAMS, "workloads": work}
    settings = validation.validate(raw).settings
    assert settings is not None

    def seen(clusters):
        return {
            (c.name, w.kind, w.name, w.queue, str(w.containers), str(sorted(w.annotations.items())))
            for c in clusters
            for w in c.workloads
        }

    found = seen(validation.judged_clusters(fleet_of(settings)))
    assert found == seen(from_resources.clusters(as_declared(record("lab", raw))))
    assert len(found) == 2
