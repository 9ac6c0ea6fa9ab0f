"""Workloads from a stack file: what is declared for each kind, and which mistakes are named."""

import io

import pytest
from pulumi import RunError
from rich.console import Console

from kai_fleet.settings import load
from kai_fleet.settings.sections.gpu_share import GpuShare
from kai_fleet.workloads import PodArgs, VllmServerArgs
from kai_fleet_cli.engine import summary
from kai_fleet_cli.engine.runs import Outcome
from kai_fleet_cli.plan.recorder import SECRET, UNKNOWN, record

CLUSTER = {"name": "lab", "context": "lab"}
QUEUES = {"train": {"gpu": {"quota": 2}}, "serve": {"gpu": {"quota": 2}}}
VIRTUAL = {"mode": "virtual", "version": "v0.16.8"}
UNLIMITED = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")}
TEAMS = {
    "ml": {"scheduler": VIRTUAL, "nodePool": {"pool": "ml"}, "gpus": 4, "queues": QUEUES},
    "one": {
        "scheduler": VIRTUAL,
        "nodePool": {"pool": "one"},
        "gpus": 2,
        "queues": {"only": {"gpu": {"quota": 2}}},
    },
    "dev": {"scheduler": {"mode": "default"}, "nodePool": {"pool": "dev"}, "gpus": 1},
}
POD = {"team": "one", "kind": "pod", "image": "ubuntu:24.04"}
VLLM = {"team": "one", "kind": "vllm", "model": "Qwen/Qwen2.5-1.5B-Instruct"}
HALF = {"gpu": {"fraction": 0.5}}


def declared(workloads, **settings):
    given = {"cluster": CLUSTER, "gpu": {"provider": "operator"}, "teams": TEAMS, **settings}
    found = record("lab", {**given, "workloads": workloads})
    return {(item.type.rsplit(":", 1)[-1], item.name): item for item in found}


def pod_of(found, name):
    return found[("Pod", f"{name}-pod")].inputs


def deployment_of(found, name):
    return found[("Deployment", f"{name}-deployment")].inputs


def mistakes(workload, teams=TEAMS, **settings):
    raw = {"cluster": CLUSTER, "teams": teams, "workloads": {"w": workload}, **settings}
    return {m.path.removeprefix("kai-fleet:"): m.message for m in load(raw).mistakes}


def test_a_fraction_pod_has_all_that_kai_reads_and_as_strings():
    pod = pod_of(declared({"half": {**POD, **HALF, "args": ["sleep", "infinity"]}}), "half")
    assert pod["metadata"]["labels"] == {"app": "half", "kai.scheduler/queue": "only"}
    assert pod["metadata"]["annotations"]["gpu-fraction"] == "0.5"
    assert pod["spec"]["schedulerName"] == "kai-scheduler"
    assert pod["spec"]["runtimeClassName"] == "nvidia"
    assert pod["spec"]["containers"] == [
        {"args": ["sleep", "infinity"], "image": "ubuntu:24.04", "name": "half"}
    ]


@pytest.mark.parametrize(
    ("share", "annotations"),
    [
        ({"fraction": 0.25}, {"gpu-fraction": "0.25"}),
        ({"fraction": "0.70"}, {"gpu-fraction": "0.7"}),
        ({"memory": "2000Mi"}, {"gpu-memory": "2000"}),
        ({"memory": "3G"}, {"gpu-memory": "2862"}),
        (
            {"fraction": 0.5, "onDevices": 2},
            {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"},
        ),
    ],
)
def test_each_way_to_ask_for_a_part_of_a_gpu(share, annotations):
    found = pod_of(declared({"w": {**POD, "gpu": share}}), "w")["metadata"]["annotations"]
    assert {k: v for k, v in found.items() if k.startswith("gpu-")} == annotations


def test_whole_gpus_are_requested_and_limited_under_the_nodes_name_for_them():
    amd = {"gpu": {"resource": "amd.com/gpu"}}
    spec = pod_of(declared({"w": {**POD, "gpu": {"devices": 2}}}, **amd), "w")["spec"]
    resources = spec["containers"][0]["resources"]
    assert resources == {"limits": {"amd.com/gpu": "2"}, "requests": {"amd.com/gpu": "2"}}
    assert "runtimeClassName" not in spec, "nobody here makes the class nvidia"


def test_two_namespaces_that_would_be_one_resource_are_named():
    teams = {**TEAMS, "dev-a": {**TEAMS["dev"], "nodePool": {"pool": "a"}}}
    pod = {"kind": "pod", "image": "ubuntu:24.04"}
    both = {
        "one": {**pod, "team": "dev", "namespace": "a-b"},
        "two": {**pod, "team": "dev-a", "namespace": "b"},
    }
    with pytest.raises(RunError, match=r"workloads.two.namespace: b of team dev-a and a-b of team"):
        declared(both, teams=teams)
    both["two"]["namespace"] = "c"
    assert ("Namespace", "dev-a-c") in declared(both, teams=teams)


def test_a_cpu_pod_asks_for_no_gpu():
    cpu = {"cpu": {"request": "100m"}, "memory": {"request": "250M", "limit": 1e9}}
    pod = pod_of(declared({"w": {**POD, **cpu}}), "w")
    assert pod["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "100m", "memory": "250M"},
        "limits": {"memory": "1000000000"},
    }
    assert "runtimeClassName" not in pod["spec"]
    assert pod["spec"]["schedulerName"] == "kai-scheduler"


def test_a_deployment_never_surges_above_its_gpus_and_its_pods_carry_the_queue():
    api = {**POD, "kind": "deployment", "replicas": 4, "gpu": {"fraction": 0.25}}
    spec = deployment_of(declared({"api": api}), "api")["spec"]
    assert (spec["replicas"], spec["strategy"]["rollingUpdate"]["maxSurge"]) == (4, 0)
    assert spec["template"]["metadata"]["labels"]["kai.scheduler/queue"] == "only"
    assert spec["selector"]["matchLabels"] == {"app": "api"}


def test_a_vllm_server_keeps_to_its_fraction():
    found = declared({"qwen": {**VLLM, "gpu": {"fraction": 0.7}, "args": ["--max-model-len=4096"]}})
    template = deployment_of(found, "qwen")["spec"]["template"]
    container = template["spec"]["containers"][0]
    assert template["metadata"]["annotations"] == {"gpu-fraction": "0.7"}
    assert (container["command"], container["args"]) == (
        ["vllm", "serve"],
        [
            "Qwen/Qwen2.5-1.5B-Instruct",
            "--port=8000",
            "--gpu-memory-utilization=0.7",
            "--max-model-len=4096",
        ],
    )
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": 8000}
    service = found[("Service", "qwen-service")].inputs
    assert service["spec"]["selector"] == {"app": "qwen"}
    assert service["spec"]["ports"] == [{"name": "http", "port": 80, "targetPort": 8000}]


@pytest.mark.parametrize("share", [{"devices": 2}, {"fraction": 0.5, "onDevices": 2}])
def test_a_model_on_two_gpus_runs_in_parallel_on_both(share):
    spec = deployment_of(declared({"big": {**VLLM, "gpu": share}}), "big")["spec"]["template"]
    container = spec["spec"]["containers"][0]
    assert "--tensor-parallel-size=2" in container["args"]
    assert container["volumeMounts"] == [{"mountPath": "/dev/shm", "name": "shm"}]


def test_a_token_is_in_a_secret_and_nowhere_else(monkeypatch):
    # As the engine says that the key is encrypted in the file.
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", '["kai-fleet:workloads"]')
    token = {"huggingFaceToken": "hf_TOP"}
    found = declared({"qwen": {**VLLM, **HALF, **token}})
    secret = found[("Secret", "qwen-hugging-face")].inputs
    assert secret["stringData"] == {"token": SECRET} or secret["stringData"] == SECRET
    (variable,) = deployment_of(found, "qwen")["spec"]["template"]["spec"]["containers"][0]["env"]
    source = {"secretKeyRef": {"key": "token", "name": UNKNOWN}}
    assert variable == {"name": "HF_TOKEN", "valueFrom": source}
    assert "hf_TOP" not in str(found)


def test_a_team_in_default_mode_gets_plain_pods():
    pod = pod_of(declared({"w": {**POD, "team": "dev", "gpu": {"devices": 1}}}), "w")
    assert "schedulerName" not in pod["spec"]
    assert pod["metadata"]["labels"] == {"app": "w"}


def test_a_team_in_host_mode_names_its_own_queue():
    host = {
        "kai": {"version": "v0.16.8"},
        "queues": {"top": {**UNLIMITED, "children": {"leaf": UNLIMITED}}},
        "teams": {"nlp": {"scheduler": {"mode": "host"}, "queue": "leaf", "gpus": 1}},
    }
    found = declared({"w": {**POD, **HALF, "team": "nlp"}}, **host)
    assert pod_of(found, "w")["metadata"]["labels"]["kai.scheduler/queue"] == "leaf"
    assert found[("Pod", "w-pod")].provider.endswith("kubernetes::nlp"), "inside its vCluster"


NODE_POOL = "kai.scheduler/node-pool"


@pytest.mark.parametrize(("queue", "label"), [("leaf", "gold"), ("plain", None), ("named", None)])
@pytest.mark.parametrize("mode", ["virtual", "host"])
def test_pods_carry_the_label_of_their_queues_shard(mode, queue, label):
    shards = {"shards": {"gold": {}}}
    one = {r: {"quota": 1} for r in ("cpu", "gpu")}
    queues = {
        "top": {**one, "shard": "gold", "children": {"leaf": one}},
        "plain": one,
        "named": {**one, "shard": "default"},
    }
    if mode == "host":
        team = {"scheduler": {"mode": "host"}, "queue": queue}
        lab = {"kai": {"version": "v0.16.8", **shards}, "queues": queues}
    else:
        team = {"scheduler": {**VIRTUAL, **shards}, "queues": queues}
        lab = {}
    teams = {"ml": {"nodePool": {"pool": "ml"}, "gpus": 4, **team}}
    workload = {**POD, **HALF, "team": "ml", "queue": queue}
    found = declared({"p": workload, "d": {**workload, "kind": "deployment"}}, teams=teams, **lab)
    deployment = deployment_of(found, "d")
    template = deployment["spec"]["template"]
    for labelled in (pod_of(found, "p"), deployment, template):
        assert labelled["metadata"]["labels"].get(NODE_POOL) == label


def test_a_namespace_is_made_once_per_team_and_default_is_there():
    there = {"namespace": "ai-workloads"}
    found = declared({"a": {**POD, **there}, "b": {**POD, **there}, "c": POD})
    namespaces = [name for kind, name in found if kind == "Namespace" and "kai" not in name]
    assert namespaces.count("one-ai-workloads") == 1
    assert "one-default" not in namespaces
    assert pod_of(found, "a")["metadata"]["namespace"] == "ai-workloads"


def test_topology_becomes_annotations_where_the_version_has_them():
    topology = {"topology": {"name": "racks", "required": "cloud/rack"}}
    annotations = pod_of(declared({"w": {**POD, **topology}}), "w")["metadata"]["annotations"]
    assert annotations["kai.scheduler/topology"] == "racks"
    assert annotations["kai.scheduler/topology-required-placement"] == "cloud/rack"
    deployment = declared({"w": {**POD, "kind": "deployment", **topology}})
    owner = deployment[("Deployment", "w-deployment")].inputs["metadata"]
    assert owner["annotations"]["kai.scheduler/topology"] == "racks", "KAI asks the top owner"
    old = {"one": {**TEAMS["one"], "scheduler": {"mode": "virtual", "version": "v0.9.3"}}}
    assert "v0.12 and newer" in mistakes({**POD, **topology}, old)["workloads.w.topology"]


def test_waiting_can_be_bounded_and_left_out():
    long, none = ({**POD, "readySeconds": seconds} for seconds in (1200, 0))
    found = declared({"long": long, "none": none})
    assert pod_of(found, "long")["metadata"]["annotations"] == {"pulumi.com/timeoutSeconds": "1200"}
    assert pod_of(found, "none")["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}


@pytest.mark.parametrize(
    ("workload", "key", "says"),
    [
        ({**POD, "team": "mll"}, "team", "no such team; the teams: ml, one, dev"),
        ({**POD, "team": "ml"}, "queue", "write one of train, serve"),
        ({**POD, "team": "dev", "queue": "a"}, "queue", "mode default: drop it"),
        ({**POD, "team": "dev", **HALF}, "gpu", "only KAI gives; write devices"),
        ({**POD, "gpu": {}}, "gpu", "write devices, fraction or memory"),
        ({**POD, "gpu": {"devices": None}}, "gpu", "write devices, fraction or memory"),
        ({**POD, "gpu": {"devices": 1, "fraction": 0.5}}, "gpu", "write one of them"),
        ({**POD, "gpu": {"devices": 2, "onDevices": 2}}, "gpu.onDevices", "write devices alone"),
        ({**POD, "gpu": {"fraction": 1}}, "gpu.fraction", "write devices: 1"),
        ({**POD, "gpu": {"fraction": 1.5}}, "gpu.fraction", "devices with whole GPUs"),
        ({**POD, "gpu": {"fraction": "50%"}}, "gpu.fraction", "write 0.5"),
        ({**POD, "gpu": {"fraction": 0}}, "gpu.fraction", "or drop gpu"),
        ({**POD, "gpu": {"fraction": "half"}}, "gpu.fraction", "write a part of one GPU"),
        ({**POD, "gpu": {"memory": 2000}}, "gpu.memory", "write 2000Mi or 2000Gi"),
        ({**POD, "gpu": {"memory": "512k"}}, "gpu.memory", "write 512Mi or 512Gi"),
        ({**POD, "gpu": {"memory": 0}}, "gpu.memory", "write 2000Mi, or drop gpu"),
        ({**POD, "gpu": {"devices": "1"}}, "gpu.devices", "write a whole number"),
        ({**POD, "cpu": {"request": "much"}}, "cpu.request", "is no Kubernetes quantity; write 6"),
        ({**POD, "model": "m"}, "model", "is for kind vllm"),
        ({**POD, "replicas": 2}, "replicas", "is for kind deployment"),
        ({**POD, "topology": {"name": "t"}}, "topology", "write required or preferred"),
        ({"team": "one", "kind": "pod"}, "image", "write ubuntu:24.04"),
        ({"team": "one", "kind": "vllm", **HALF}, "model", "is missing"),
        (VLLM, "gpu", "write fraction: 0.5 or devices: 1"),
        ({**VLLM, "gpu": {"memory": "2Gi"}}, "gpu.memory", "write fraction"),
        (
            {**VLLM, **HALF, "args": ["--gpu_memory_utilization=0.9"]},
            "args",
            "comes from gpu; drop it",
        ),
        ({**VLLM, **HALF, "command": ["sh"]}, "command", "write flags in args"),
        ({**VLLM, **HALF, "env": {"HF_TOKEN": "x"}}, "env.HF_TOKEN", "write huggingFaceToken"),
        ({**POD, "kind": "job"}, "kind", "write one of 'pod', 'deployment' or 'vllm'"),
    ],
)
def test_each_mistake_names_its_key_and_what_to_write(workload, key, says):
    found = mistakes(workload)
    assert list(found) == [f"workloads.w.{key}"]
    assert says in found[f"workloads.w.{key}"]


@pytest.mark.parametrize(
    ("share", "words"),
    [
        ({"devices": 2}, "2 whole"),
        ({"fraction": 0.7}, "0.7 of one"),
        ({"memory": "2000Mi", "on_devices": 2}, "2000 MiB of each of 2"),
    ],
)
def test_the_table_at_the_end_of_an_update_says_what_each_has(share, words):
    about = {"team": "ml", "kind": "vllm", "namespace": "ai", "queue": "serve", "url": "http://q"}
    console = Console(width=120, record=True, file=io.StringIO())
    workloads = {"qwen": {**about, "gpu": GpuShare(**share).in_words()}}
    summary.show("lab", Outcome({}, {"workloads": workloads}), (), console)
    text = console.export_text()
    for shown in ("qwen", "ml", "serve", words, "http://q"):
        assert shown in text


def test_a_team_that_is_itself_wrong_is_not_called_absent():
    found = mistakes(POD, {"one": {"scheduler": {"mode": "virtul"}}})
    assert list(found) == ["teams.one.scheduler.mode"]


TEAM_ONE = {**TEAMS["one"], "gpus": 1}
TEAM_HOST = {"scheduler": {"mode": "host"}, "queue": "leaf", "gpus": 1}


@pytest.mark.parametrize(
    ("team", "shares", "needed"),
    [
        (TEAM_ONE, [{"fraction": 0.7}, {"fraction": 0.2}], 0),
        (TEAM_ONE, [{"fraction": 0.7}, {"fraction": 0.4}], 2),
        (TEAM_ONE, [{"fraction": 0.1}] * 10, 0),
        (TEAM_ONE, [{"devices": 1}, {"memory": "1Gi"}], 2),
        (TEAM_ONE, [{"fraction": 0.5, "onDevices": 2}, {"fraction": 0.1}], 2),
        (TEAM_HOST, [{"devices": 1}, {"fraction": 0.7}], 0),
        (TEAM_HOST, [{"devices": 2}], 2),
        ({**TEAM_ONE, "gpus": 0}, [{"fraction": 0.5}], 1),
    ],
)
def test_a_bound_that_keeps_workloads_waiting_for_good_is_refused(team, shares, needed):
    host = {"kai": {"version": "v0.16.8"}, "queues": {"leaf": UNLIMITED}}
    work = {f"w{n}": {**POD, "gpu": share} for n, share in enumerate(shares)}
    raw = {"cluster": CLUSTER, "teams": {"one": team}, "workloads": work, **host}
    found = {m.path: m.message for m in load(raw).mistakes}
    assert list(found) == (["kai-fleet:teams.one.gpus"] if needed else [])
    assert not needed or f"write gpus: {needed}," in found["kai-fleet:teams.one.gpus"]


def test_replicas_count_and_those_that_may_wait_do_not():
    api = {**POD, "kind": "deployment", "replicas": 3, "gpu": {"devices": 1}}
    assert "write gpus: 3," in mistakes(api)["teams.one.gpus"]
    assert mistakes({**api, "readySeconds": 0}) == {}


@pytest.mark.parametrize(
    "build",
    [
        lambda: PodArgs("ubuntu", gpu=GpuShare(fraction=0.5)),
        lambda: PodArgs("ubuntu", queue="a", gpu=GpuShare()),
        lambda: VllmServerArgs(PodArgs("vllm", queue="a", gpu=GpuShare(memory="2Gi")), "m"),
    ],
)
def test_the_components_refuse_what_nobody_could_give(build):
    with pytest.raises(ValueError, match="write"):
        build()


def test_the_program_stops_with_the_key_when_a_rule_refuses_a_workload():
    with pytest.raises(RunError, match=r"kai-fleet:workloads\.w: .*names queue nosuch"):
        declared({"w": {**POD, "queue": "nosuch"}})
