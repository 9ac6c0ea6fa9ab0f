"""The rules about workloads, case by case: what passes, what is refused, and what waits."""

from dataclasses import replace

import pytest

from kai_fleet.values import UNKNOWN
from kai_fleet_policies.model.cluster import ClusterModel
from kai_fleet_policies.model.installed import Kai
from kai_fleet_policies.model.pods import PodContainer
from kai_usage.keys import QUEUE_LABEL
from tests.unit.policies.samples import (
    cases,
    cluster,
    found,
    host,
    passing,
    queue,
    refusal,
    refuses,
    shared,
    team,
    waits,
    workload,
)

pytestmark = pytest.mark.texts("rules")

POD, HOST = "urn:pulumi:s::p::kubernetes:core/v1:Pod::train-a", "kai-fleet:cluster"
WHOLE = PodContainer("main", ("nvidia.com/gpu",))
SLICED = PodContainer("main", ("nvidia.com/mig-1g.10gb",))
OFF = (Kai("v0.9.3", sharing="Disabled"),)
HALF = shared(gpu_fraction="0.5")
DEVICES_ONLY = shared(gpu_fraction_num_devices="2")
BY_NAME = shared(gpu_fraction="0.5", gpu_fraction_container_name="main")
MANY_DEVICES = shared(gpu_fraction="0.5", gpu_fraction_num_devices="10000")


def with_(*containers):
    return cluster(replace(HALF, containers=containers))


def of_version(pod, version):
    return cluster(pod, version=version)


GPU_REQUEST = [
    *(
        refuses(f"fraction {value!r}", cluster(shared(gpu_fraction=value)), POD)
        for value in ("1", "2", "-0.5", "NaN", "", "50%", "0x1p-1", "0.004")
    ),
    *(
        refuses(f"memory {value!r}", cluster(shared(gpu_memory=value)), POD)
        for value in ("3Gi", "0", "-5", "1.5")
    ),
    refuses("both", cluster(shared(gpu_fraction="0.5", gpu_memory="2000")), POD),
    refuses("whole GPU beside", with_(PodContainer("side"), WHOLE), POD),
    refuses("AMD beside", with_(PodContainer("main", ("amd.com/gpu",))), POD),
    refuses("slice beside", with_(SLICED), POD),
    refuses("devices only", cluster(DEVICES_ONLY), POD),
    refuses("many devices", cluster(MANY_DEVICES), POD),
    refuses("container by name", of_version(BY_NAME, "v0.9.3"), POD),
    waits("unknown version", of_version(BY_NAME, UNKNOWN), POD),
    waits("unknown fraction", cluster(shared(gpu_fraction=UNKNOWN)), POD),
    waits("unknown scheduler", cluster(replace(DEVICES_ONLY, scheduler=UNKNOWN)), POD),
    waits("unknown limits", with_(PodContainer("main", UNKNOWN)), POD),
]

GPU_SHARING = [
    refuses("off", cluster(HALF, kai=OFF), POD),
    refuses(
        "off on the host", ClusterModel("ml", workloads=(HALF,), scheduled_by=cluster(kai=OFF)), POD
    ),
    waits("unknown KAI", cluster(HALF, workload("b"), kai=()), HOST),
]


def annotated(key, value="0.5"):
    return cluster(workload(annotations={key: value}))


LOOK_ALIKES = (
    "kai.scheduler/gpu-fraction",
    "kai.scheduler/fraction",
    "runai/queue",
    "kai.scheduler.nvidia.com/gpu-fraction",
    "nvidia.com/gpu-fraction",
    "gpu_fraction",
    "kai.scheduler/sparkle",
    QUEUE_LABEL,
)
KNOWN_KEYS = [
    *(refuses(f"annotation {key}", annotated(key), POD) for key in LOOK_ALIKES),
    refuses("label of an owner", cluster(workload(owner_labels={"runai/queue": "test"})), POD),
    refuses("label gpu-fraction", cluster(workload(labels={"gpu-fraction": "0.5"})), POD),
    refuses("number", cluster(shared(gpu_memory=2000.0)), POD),
    waits("unknown annotations", cluster(workload(annotations=UNKNOWN)), POD),
]


def names(queue_name):
    return workload(labels={QUEUE_LABEL: queue_name})


OF_HOST = ClusterModel(
    "ml",
    scheduled_by=cluster(queues=(queue("dep"), queue("ml", "dep"), queue("web", "dep"))),
    team_queue="ml",
)
GROUPED = workload(labels={}, annotations={"pod-group-name": "batch"})
NO_LABEL = cluster(workload(labels={}))
IN_NO_QUEUE = cluster(replace(GROUPED, labels={QUEUE_LABEL: "no"}), kai=(Kai("v0.16.8"),))
TEAM_IN_PARENT = cluster(teams=(team("ml", "host", queue="default"),))
TYPO = cluster(names("tset"), queues=(queue("a"), queue("test")))
LEAF_QUEUE = [
    refuses("no label", NO_LABEL, POD),
    refuses("label without a value", cluster(names("")), POD),
    refuses("misspelt", TYPO, POD),
    refuses("parent", cluster(names("default")), POD),
    refuses("another team's", replace(OF_HOST, workloads=(names("web"),)), POD),
    refuses("parent for a team", TEAM_IN_PARENT, "kai-fleet:teams.ml.queue"),
    refuses("absent, in a pod group", IN_NO_QUEUE, POD),
    waits("unknown label", cluster(names(UNKNOWN)), POD),
    waits("unknown scheduler", cluster(workload(labels={}, scheduler=UNKNOWN)), POD),
    waits("unknown queue", cluster(names("x"), queues=(queue(UNKNOWN),)), POD),
    waits("no queues", cluster(workload(), queues=()), HOST),
]

FRACTION_ONLY = workload(scheduler=None, labels={}, annotations={"gpu-fraction": "0.5"})
SCHEDULER = [
    refuses("another", cluster(workload(scheduler="default-scheduler")), POD),
    refuses("annotation only", cluster(FRACTION_ONLY), POD),
    waits("unknown", cluster(workload(scheduler=UNKNOWN)), POD),
    waits("unknown labels", cluster(workload(labels=UNKNOWN, scheduler=None)), POD),
]

CASES = {
    "workload-gpu-request": GPU_REQUEST,
    "workload-gpu-sharing": GPU_SHARING,
    "workload-known-keys": KNOWN_KEYS,
    "workload-leaf-queue": LEAF_QUEUE,
    "workload-scheduler": SCHEDULER,
}
READ_OR_NOT_KAIS = (
    *("gpu-fraction", "kai.scheduler/topology", "kai.scheduler/background", "example.com/queue"),
    *("runai/shared-gpu-configmap", "nvidia.com/gpu.memory", "nvidia.com/kai-scheduler-queue"),
)
PASSING = {
    "workload-gpu-request": [
        cluster(workload()),
        cluster(shared(gpu_fraction="0.01")),
        cluster(shared(gpu_memory="2000")),
        cluster(shared(gpu_fraction="0.5", gpu_fraction_num_devices="2", mps="true")),
        cluster(workload(scheduler=None, annotations={"mps": "true"})),
        of_version(BY_NAME, "v0.12.23"),
        cluster(replace(DEVICES_ONLY, scheduler="volcano")),
    ],
    "workload-gpu-sharing": [cluster(HALF), cluster(workload(), kai=OFF)],
    "workload-known-keys": [
        *(annotated(key, "1") for key in READ_OR_NOT_KAIS),
        cluster(workload(containers=(WHOLE, SLICED))),
    ],
    "workload-leaf-queue": [
        cluster(workload(scheduler=None, labels={})),
        # The label of a workload wins over its pods', as in KAI.
        cluster(workload(kind="Job", labels={}, owner_labels={QUEUE_LABEL: "test"})),
        replace(OF_HOST, workloads=(names("ml"),)),
        host(team("ml", "host")),
        cluster(GROUPED),
    ],
    "workload-scheduler": [
        cluster(workload()),
        cluster(workload(scheduler=None, labels={"app": "web"})),
        NO_LABEL,
    ],
}


@pytest.mark.parametrize(("rule", "seen"), passing(PASSING))
def test_workload_rule_passes(rule, seen):
    assert found(rule, seen) == []


@pytest.mark.parametrize(("rule", "case"), cases(CASES))
def test_workload_rule_reports(rule, case, texts):
    case.reported_by(rule, texts)


@pytest.mark.parametrize(
    "annotations",
    [
        {"gpu_memory": "9" * 5000},
        {"gpu_fraction": f"{'1' * 200_000}x"},
    ],
    ids=["memory", "fraction"],
)
@pytest.mark.timeout(20)
def test_workload_gpu_request_a_number_that_no_machine_has_is_refused_at_once(annotations):
    assert refusal("workload-gpu-request", cluster(shared(**annotations)))


def test_workload_gpu_request_a_known_mistake_is_refused_beside_an_unknown_value():
    pod = shared(gpu_fraction="2", gpu_fraction_num_devices=UNKNOWN)
    problems = found("workload-gpu-request", cluster(pod))
    assert [problem.undecided for problem in problems] == [False, True]
