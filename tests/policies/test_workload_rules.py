"""The rules about workloads, case by case: what passes, what is refused, and what waits."""

from dataclasses import replace

import pytest

from kai_fleet.values import UNKNOWN
from kai_fleet_policies.model.cluster import Cluster
from kai_fleet_policies.model.installed import Kai
from kai_fleet_policies.model.pods import PodContainer
from kai_usage.keys import QUEUE_LABEL
from tests.policies.samples import (
    cases,
    cluster,
    found,
    host,
    judged,
    passes,
    queue,
    refusal,
    refuses,
    shared,
    team,
    waits,
    workload,
)

WHOLE = PodContainer("main", limits={"nvidia.com/gpu": "1"})
SLICED = PodContainer("main", limits={"nvidia.com/mig-1g.10gb": "1"})
OFF = (Kai("v0.9.3", sharing="Disabled"),)
HALF = shared(gpu_fraction="0.5")
DEVICES_ONLY = shared(gpu_fraction_num_devices="2")
BY_NAME = shared(gpu_fraction="0.5", gpu_fraction_container_name="main")
NO_NUMBER = "which is not a number between 0 and 1; write for example"


def with_(*containers):
    return cluster(replace(HALF, containers=containers))


def of_version(pod, version):
    return cluster(pod, version=version)


GPU_REQUEST = [
    *passes(
        cluster(workload()),
        cluster(shared(gpu_fraction="0.01")),
        cluster(shared(gpu_memory="2000")),
        cluster(shared(gpu_fraction="0.5", gpu_fraction_num_devices="2", mps="true")),
        cluster(workload(scheduler=None, annotations={"mps": "true"})),
        of_version(BY_NAME, "v0.12.23"),
    ),
    *(
        refuses(cluster(shared(gpu_fraction=value)), f'has gpu-fraction: "{value}", {NO_NUMBER}')
        for value in ("1", "-0.5", "NaN", "", "50%", "0x1p-1", "0.004")
    ),
    *(
        refuses(cluster(shared(gpu_memory=value)), "write a positive whole number of MiB")
        for value in ("3Gi", "0", "-5", "1.5")
    ),
    refuses(cluster(shared(gpu_fraction="2")), 'write limits: nvidia.com/gpu: "1"'),
    refuses(cluster(shared(gpu_fraction="0.5", gpu_memory="2000")), "write only one of them"),
    refuses(with_(PodContainer("side"), WHOLE), "in container main, for whole GPUs or slices"),
    refuses(with_(PodContainer("main", requests={"amd.com/gpu": 1})), "drop amd.com/gpu there"),
    refuses(with_(SLICED), "drop nvidia.com/mig-1g.10gb there"),
    refuses(cluster(DEVICES_ONLY), 'add gpu-fraction: "0.5"'),
    refuses(
        cluster(shared(gpu_fraction="0.5", gpu_fraction_num_devices="10000")),
        'write a positive whole number such as "2", 9999 or less',
    ),
    refuses(of_version(BY_NAME, "v0.9.3"), "KAI reads from v0.10 on, and host runs v0.9.3"),
    waits(of_version(BY_NAME, UNKNOWN), "v0.10"),
    waits(cluster(shared(gpu_fraction=UNKNOWN)), "gpu-fraction"),
    waits(cluster(replace(DEVICES_ONLY, scheduler=UNKNOWN)), "its schedulerName is known"),
    *passes(cluster(replace(DEVICES_ONLY, scheduler="volcano"))),
    waits(with_(PodContainer("main", limits=UNKNOWN)), "container main"),
]

GPU_SHARING = [
    *passes(cluster(HALF), cluster(workload(), kai=OFF)),
    refuses(cluster(HALF, kai=OFF), "off in the KAI of host; set gpuSharing: true"),
    refuses(Cluster("ml", workloads=(HALF,), scheduled_by=cluster(kai=OFF)), "in the KAI of host"),
    waits(cluster(HALF, workload("b"), kai=()), "whether GPU sharing is on in host"),
]


def annotated(key, value="0.5"):
    return cluster(workload(annotations={key: value}))


READ_OR_NOT_KAIS = (
    *("gpu-fraction", "kai.scheduler/topology", "kai.scheduler/background", "example.com/queue"),
    *("runai/shared-gpu-configmap", "nvidia.com/gpu.memory", "nvidia.com/kai-scheduler-queue"),
)
LOOK_ALIKES = {
    "kai.scheduler/gpu-fraction": "annotation gpu-fraction",
    "kai.scheduler/fraction": "annotation gpu-fraction",
    "runai/queue": "label kai.scheduler/queue",
    "kai.scheduler.nvidia.com/gpu-fraction": "annotation gpu-fraction",
    "nvidia.com/gpu-fraction": "annotation gpu-fraction",
    "gpu_fraction": "annotation gpu-fraction",
}
KNOWN_KEYS = [
    *passes(*(annotated(key, "1") for key in READ_OR_NOT_KAIS)),
    *passes(cluster(workload(containers=(WHOLE, SLICED)))),
    *(
        refuses(
            annotated(key),
            f"has the annotation {key}, which no supported KAI version reads; write the {right}",
        )
        for key, right in LOOK_ALIKES.items()
    ),
    refuses(cluster(workload(owner_labels={"runai/queue": "test"})), "write the label"),
    refuses(annotated("kai.scheduler/sparkle"), "remove it"),
    refuses(annotated(QUEUE_LABEL, "test"), "KAI reads it as label: move it there"),
    refuses(cluster(workload(labels={"gpu-fraction": "0.5"})), "KAI reads it as annotation"),
    refuses(cluster(shared(gpu_memory=2000.0)), 'not a string; write gpu-memory: "2000"'),
    waits(cluster(workload(annotations=UNKNOWN)), "annotations"),
]


def names(queue_name):
    return workload(labels={QUEUE_LABEL: queue_name})


OF_HOST = Cluster(
    "ml",
    scheduled_by=cluster(queues=(queue("dep"), queue("ml", "dep"), queue("web", "dep"))),
    team_queue="ml",
)
GROUPED = workload(labels={}, annotations={"pod-group-name": "batch"})
LEAF_QUEUE = [
    *passes(
        cluster(workload(scheduler=None, labels={})),
        # The label of a workload wins over its pods', as in KAI.
        cluster(workload(kind="Job", labels={}, owner_labels={QUEUE_LABEL: "test"})),
        replace(OF_HOST, workloads=(names("ml"),)),
        host(team("ml", "host")),
        cluster(GROUPED),
    ),
    refuses(cluster(workload(labels={})), "write the label kai.scheduler/queue: test"),
    refuses(
        cluster(names("tset"), queues=(queue("a"), queue("test"))),
        "names queue tset, which is not declared in host: its pods would stay Pending; write test",
    ),
    refuses(cluster(names("default")), "has children and so takes no pods; write test"),
    refuses(replace(OF_HOST, workloads=(names("web"),)), "the queue of team ml is ml; write ml"),
    refuses(cluster(teams=(team("ml", "host", queue="default"),)), "which has children"),
    refuses(
        cluster(replace(GROUPED, labels={QUEUE_LABEL: "no"}), kai=(Kai("v0.16.8"),)),
        "names queue no, which is not declared",
    ),
    waits(cluster(names(UNKNOWN)), "its label"),
    waits(cluster(workload(labels={}, scheduler=UNKNOWN)), "its schedulerName is known"),
    waits(cluster(names("x"), queues=(queue(UNKNOWN),)), "queue names of host are known"),
    waits(cluster(workload(), queues=()), "the queues of host are declared"),
]

SCHEDULER = [
    *passes(cluster(workload()), cluster(workload(scheduler=None, labels={"app": "web"}))),
    refuses(
        cluster(workload(scheduler="default-scheduler")),
        "but schedulerName: default-scheduler, so KAI never sees it",
    ),
    refuses(cluster(workload(labels={})), "no label kai.scheduler/queue; write the label"),
    refuses(
        cluster(workload(scheduler=None, labels={}, annotations={"gpu-fraction": "0.5"})),
        "has the annotation gpu-fraction but no schedulerName",
    ),
    waits(cluster(workload(scheduler=UNKNOWN)), "schedulerName"),
    waits(cluster(workload(labels=UNKNOWN)), "labels"),
]


CASES = {
    "workload-gpu-request": GPU_REQUEST,
    "workload-gpu-sharing": GPU_SHARING,
    "workload-known-keys": KNOWN_KEYS,
    "workload-leaf-queue": LEAF_QUEUE,
    "workload-scheduler": SCHEDULER,
}


@pytest.mark.parametrize(("rule", "seen", "level", "message"), cases(CASES))
def test_a_rule_passes_refuses_or_waits(rule, seen, level, message):
    judged(rule, seen, level, message)


def test_a_finding_names_the_workload_and_its_place():
    problem = refusal("workload-leaf-queue", cluster(workload(labels={})))
    assert problem.subject == "Pod train-a in namespace team-a of host"
    assert problem.path.endswith("Pod::train-a")


@pytest.mark.parametrize(
    "annotations",
    [
        {"gpu_memory": "9" * 5000},
        {"gpu_fraction": f"{'1' * 200_000}x"},
    ],
    ids=["memory", "fraction"],
)
@pytest.mark.timeout(20)
def test_a_number_of_a_tenant_that_no_machine_has_is_refused_at_once(annotations):
    assert refusal("workload-gpu-request", cluster(shared(**annotations)))


def test_a_known_mistake_is_refused_beside_an_unknown_value():
    pod = shared(gpu_fraction="2", gpu_fraction_num_devices=UNKNOWN)
    assert [problem.undecided for problem in found("workload-gpu-request", cluster(pod))] == [
        False,
        True,
    ]
