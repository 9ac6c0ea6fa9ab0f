"""`fleet my …` and `kubectl fleet …` against an API server of canned answers."""

import ast
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kubectl_fleet
from kai_fleet_cli.__main__ import app
from kubectl_fleet.commands import plugin
from kubectl_fleet.errors import UserError
from kubectl_fleet.my.view import KINDS, WHY
from tests.unit.canned_api import kubeconfig, serving
from tests.unit.usage_samples import (
    GROUP_A,
    GROUP_B,
    kai,
    node,
    pod,
    queue,
    reservation,
    served,
)

GPU = "nvidia.com/gpu"
ALL = {kind: path.format("") for kind, path in {**KINDS, **WHY}.items()}
TREE = [
    queue("default", gpu=8),
    queue("train", "default", gpu=(4, 8), memory=(64000, 64000)),
    queue("serve", "default", gpu=4),
]
PODS = [
    pod("a", "train", "ml-0", asks={GPU: "4", "cpu": "2500m", "memory": "1Gi"}),
    pod("b", "train", "ml-0", (GROUP_A,), gpu_fraction="0.5"),
    pod("c", "train", "ml-0", (GROUP_A, GROUP_B), gpu_memory="20480", gpu_fraction_num_devices="2"),
    pod("web", "serve", "ml-0", asks={"cpu": "1"}, namespace="web"),
    pod("nine", "train", asks={GPU: "9"}),
    reservation(GROUP_A, "ml-0", "GPU-0a"),
    reservation(GROUP_B, "ml-0", "GPU-1b"),
]
SAMPLES = {
    "nodes": [node("ml-0")],
    "pods": PODS,
    "queues": TREE,
    "podgroups": [],
    "deployments": [served(kai(name="kai-scheduler-default"))],
    "events": [],
    "runtimeclasses": [],
    "replicasets": [],
    "statefulsets": [],
    "jobs": [],
}


@pytest.fixture
def server(tmp_path, monkeypatch):
    with serving() as (handler, url):
        for kind, path in ALL.items():
            handler.answers[path] = (200, {"items": SAMPLES[kind]})
        file = tmp_path / "team.kubeconfig"
        file.write_text(kubeconfig(url))
        monkeypatch.setenv("KUBECONFIG", str(file))
        monkeypatch.setenv("COLUMNS", "80")
        yield handler


def run(*words, app=app):
    """What is printed; a user's mistake as the sentence of `error:`."""
    found = CliRunner().invoke(app, [*words])
    if isinstance(found.exception, UserError):
        return f"error: {found.exception}"
    assert found.exit_code == 0, found.output
    return found.stdout


def row(text):
    """The words of a line."""
    return text.split()


def said(text):
    """Without line breaks and columns."""
    return " ".join(text.split())


def test_queues_as_a_tree_with_bars(server):
    lines = run("my", "queues").splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == row("queue in use quota limit borrowed, lent waiting")
    train = next(line for line in lines if "train" in line)
    assert train.split() == row("└ train GPU ████████▓▓ 5.02 4 8 1.02 borrowed")
    serve = next(line for line in lines if "serve" in line)
    assert serve.split() == row("├ serve GPU ▒▒▒░░░░░░░ 0 4 ∞ 1.02 lent")
    assert any(line.split()[:5] == row("mem █░░░░░░░░░ 1.07G 64G 64G") for line in lines)
    assert "4 pods have a node" in lines[-4]
    assert lines[-3] == "8 GPUs on 1 node, 2 free"
    assert said("\n".join(lines[-2:])) == (
        "pod nine never runs, and is not counted: it asks for 9 GPUs, and queue train may hold at"
        " most 8"
    )


def test_a_narrow_terminal_keeps_the_names_of_queues(server, monkeypatch):
    monkeypatch.setenv("COLUMNS", "56")
    lines = run("my", "queues").splitlines()
    assert {"serve", "train"} <= {line.strip() for line in lines}, "\n".join(lines)


@pytest.mark.parametrize(
    ("asks", "never"),
    [
        ({GPU: "4"}, ""),
        ({GPU: "6"}, "it asks for 6 GPUs, and no node has more than 4"),
    ],
)
def test_a_pod_that_no_node_can_take_is_not_waited_for(server, asks, never):
    away = node("ml-0", 4, ready=False)
    server.answers[ALL["nodes"]] = (200, {"items": [away, node("cpu", 0)]})
    server.answers[ALL["pods"]] = (200, {"items": [pod("w", "train", asks=asks)]})
    found = json.loads(run("my", "queues", "--json"))["queues"]
    waiting = next(one for one in found if one["name"] == "train")["gpu"]["waiting"]
    assert waiting == (0 if never else 4)
    told = f"pod w never runs, and is not counted: {never}" in said(run("my", "queues"))
    assert told is bool(never)


@pytest.mark.parametrize("command", ["queues", "pods", "pending"])
def test_a_server_that_answers_what_no_kubernetes_does_is_said_to(server, command):
    server.answers[ALL["queues"]] = (200, {"items": [queue("train", gpu={"quota": {}})]})
    server.answers[ALL["nodes"]] = (200, {"items": [{"metadata": ["ml-0"]}]})
    said_of_it = "error: the cluster cannot be read: its API server answers what no Kubernetes does"
    assert run(command, app=plugin).startswith(said_of_it)


def test_where_no_node_is_there_yet_one_may_come(server):
    server.answers[ALL["nodes"]] = (200, {"items": []})
    server.answers[ALL["pods"]] = (200, {"items": [pod("w", "train", asks={GPU: "8"})]})
    assert "never" not in run("my", "queues")


def test_pods_say_what_their_queues_may_have_and_what_others_hold(server):
    text = said(run("my", "pods"))
    assert (
        "queue serve: quota 4, no limit, over-quota weight 1; holds 0, others below default 5.02"
        in text
    )
    assert (
        "queue train: quota 4, limit 8, over-quota weight 1; holds 5.02, others below default 0"
        in text
    )
    found = json.loads(run("my", "pods", "--json"))["queues"]
    assert [(it["name"], it["gpu"]["inUse"], it["heldByOthers"]) for it in found] == [
        ("serve", 0, 5.02),
        ("train", 5.02, 0),
    ]


def test_queues_for_machines(server):
    found = json.loads(run("my", "queues", "--json"))
    assert (found["kai"], found["countedFrom"], found["notes"]) == ("v0.16.8", "pods", [])
    train = next(one for one in found["queues"] if one["name"] == "train")
    assert train["gpu"] == {
        "quota": 4,
        "limit": 8,
        "overQuotaWeight": 1,
        "inUse": 5.02,
        "waiting": 0,
        "borrowed": 1.02,
        "lent": 0,
    }
    assert (train["pods"], train["waitingPods"], train["parent"]) == (3, 0, "default")


def test_pods_by_gpu(server):
    text = run("my", "pods")
    lines = [line.split() for line in text.splitlines()]
    assert max(map(len, text.splitlines())) <= 80
    assert lines[0] == row("ml-0: 8 GPUs (81920 MiB each), 2 free")
    assert lines[2][:4] == ["whole", "4", "a", "train"]
    assert lines[3][:6] == ["GPU-0a", "████████░░", "0.76", "0.5", "b", "train"]
    assert lines[4][:3] == ["0.26", "c", "train"]
    assert lines[5][:6] == ["GPU-1b", "███░░░░░░░", "0.26", "0.26", "c", "train"]
    assert "1 pod without a GPU" in text
    assert "1 pod waits for a node: fleet my pending" in text


def test_pods_on_slices_are_told_where_a_node_has_no_whole_gpu(server):
    slices = {"nvidia.com/mig-1g.10gb": "1"}
    server.answers[ALL["nodes"]] = (200, {"items": [node("cut", 0, None)]})
    server.answers[ALL["pods"]] = (200, {"items": [pod("s", "train", "cut", asks=slices)]})
    lines = run("my", "pods").splitlines()
    assert [lines[0], row(lines[2])[:4]] == ["cut", row("MIG 1 s train")]


def test_pods_for_machines(server):
    found = json.loads(run("my", "pods", "--json"))
    c = next(one for one in found["pods"] if one["name"] == "c")
    assert (c["gpu"], c["node"], c["queue"]) == (0.52, "ml-0", "train")
    assert c["sharedGpus"] == [
        {"group": GROUP_A, "device": "GPU-0a", "part": 0.26},
        {"group": GROUP_B, "device": "GPU-1b", "part": 0.26},
    ]
    assert found["nodes"][0] | {"product": None} == {
        "name": "ml-0",
        "gpus": 8,
        "free": 2,
        "gpuMemoryMiB": 81920,
        "product": None,
    }


def test_a_namespace_narrows_what_is_shown_and_not_what_queues_hold(server):
    found = json.loads(run("my", "pods", "--namespace", "web", "--json"))
    assert [one["name"] for one in found["pods"]] == ["web"]
    assert "train" not in run("my", "pods", "-n", "web")
    assert run("my", "pods", "-n", "") == run("my", "pods")


def test_pending_in_the_doctors_words(server):
    (one,) = json.loads(run("my", "pending", "--json"))["pending"] or [None]
    assert one["name"] == "nine"
    assert "asks for 9 GPUs" in one["cause"]
    assert one["fix"]
    text = run("my", "pending")
    assert max(map(len, text.splitlines())) <= 80
    assert "nine" in text and "queue train" in text and "9 GPUs" in text


@pytest.mark.parametrize(
    ("pods", "guaranteed", "words"),
    [
        (
            [pod("a", "train", "ml-0", asks={GPU: "3"}), pod("w", "serve", asks={GPU: "2"})],
            True,
            "it asks for what is guaranteed: queue serve has 4 left of 4 GPUs. KAI stops pods that"
            " borrow",
        ),
        (
            [pod("a", "train", "ml-0", asks={GPU: "3"}), pod("w", "train", asks={GPU: "2"})],
            False,
            "it asks for more than is guaranteed: queue train has 1 left of 4 GPUs. It gets what"
            " others leave over",
        ),
        (  # the quota of the queue would do, that of its parent does not
            [pod("a", "train", "ml-0", asks={GPU: "6"}), pod("w", "serve", asks={GPU: "3"})],
            False,
            "queue default has 2 left of 8 GPUs",
        ),
        ([pod("w", "train", asks={GPU: "9"})], None, None),  # a limit keeps it out
        (
            [
                pod("a", "train", "ml-0", asks={"memory": "50G"}),
                pod("w", "train", asks={"memory": "20G"}),
            ],
            False,
            "it asks for 20G of memory, and queue train holds 50G of at most 64G of memory",
        ),
        (
            [pod("w", "train", asks={"memory": "65G"})],
            False,
            "queue train may hold 64G of memory at most: it never runs",
        ),
        ([pod("w", "nowhere", asks={GPU: "1"})], None, None),
        ([pod("w", "serve", asks={"cpu": "1"})], None, None),  # nothing bounds what it asks for
    ],
)
def test_pending_says_how_a_pod_stands_to_its_quota(server, pods, guaranteed, words):
    server.answers[ALL["pods"]] = (200, {"items": pods})
    (one,) = json.loads(run("my", "pending", "--json"))["pending"]
    assert one["guaranteed"] is guaranteed
    assert one["standing"] is None if words is None else words in one["standing"]
    if words is not None:
        assert words.split()[-1] in said(run("my", "pending"))


def test_an_absent_queue_is_named_with_those_that_there_are(server):
    server.answers[ALL["pods"]] = (200, {"items": [pod("lost", "nowhere")]})
    (one,) = json.loads(run("my", "pending", "--json"))["pending"]
    assert "queue nowhere" in one["cause"]
    assert "serve or train" in one["fix"]


def test_nothing_waits(server):
    server.answers[ALL["pods"]] = (200, {"items": PODS[:2]})
    assert said(run("my", "pending")) == "no pod waits"


def test_commands_ask_the_cluster_that_was_asked(server):
    server.answers[ALL["pods"]] = (200, {"items": [pod("w", "serve", asks={GPU: "1"})]})
    (one,) = json.loads(run("my", "pending", "--json", "--context", "lab"))["pending"]
    assert "kubectl --context lab -n kai-scheduler logs deployment/pod-grouper" in one["fix"]


def test_a_pod_that_has_a_node_waits_only_where_it_does_not_start(server):
    starting = pod("starting", "serve", "ml-0", asks={GPU: "1"}, phase="Pending")
    stuck = pod("stuck", "serve", "ml-0", asks={GPU: "1"}, phase="Pending")
    why = {"reason": "ImagePullBackOff", "message": "no such image"}
    stuck["status"]["containerStatuses"] = [{"state": {"waiting": why}}]
    server.answers[ALL["pods"]] = (200, {"items": [starting, stuck]})
    (one,) = json.loads(run("my", "pending", "--json"))["pending"]
    assert (one["name"], one["standing"]) == ("stuck", None)
    assert "no such image" in one["cause"]


GUARD = (
    "ValidatingAdmissionPolicy 'kai-fleet-queues-ml' with binding 'kai-fleet-queues-ml' denied"
    " request: names no queue; write kai.scheduler/queue: serve or train"
)


def maker(kind, name, spec, status, owner=None):
    owners = {"ownerReferences": [{**owner, "controller": True}]} if owner else {}
    place = {"namespace": "default", "name": name, "creationTimestamp": "2020-01-01T00:00:00Z"}
    return {"kind": kind, "metadata": {**place, **owners}, "spec": spec, "status": status}


def denial(kind, name, message, reason="FailedCreate", minutes=1):
    at = (datetime.now(UTC) - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {"kind": kind, "name": name, "namespace": "default"}
    metadata = {"name": f"{name}.1", "namespace": "default"}
    stamps = {"firstTimestamp": at, "lastTimestamp": at, "metadata": metadata}
    return {"involvedObject": about, "reason": reason, "message": message, **stamps}


def just_now(event):
    """The event as of this minute: the cases are made when the tests are collected."""
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**event, "firstTimestamp": at, "lastTimestamp": at}


RAY = "Failed to create worker Pod for the cluster default/ray, pods is forbidden: "
DENIED = [
    (
        "jobs",
        maker("Job", "fine-tune", {"completions": 1}, {}),
        denial("Job", "fine-tune", f"Error creating: pods is forbidden: {GUARD}"),
        ("Job", "fine-tune"),
        "the team's guard denies its pods: names no queue; write kai.scheduler/queue: serve or",
    ),
    (
        "replicasets",
        maker(
            "ReplicaSet",
            "api-5d4f",
            {"replicas": 2},
            {"replicas": 0},
            {"kind": "Deployment", "name": "api"},
        ),
        denial("ReplicaSet", "api-5d4f", 'admission webhook "v.kyverno" denied the request: no'),
        ("Deployment", "api"),
        "admission (v.kyverno) denies its pods: no",
    ),
    (
        "replicasets",
        maker(
            "ReplicaSet",
            "old",
            {"replicas": 2},
            {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": GUARD}]},
        ),
        None,  # its event is gone
        ("ReplicaSet", "old"),
        "the team's guard denies its pods",
    ),
    (
        "statefulsets",
        maker("StatefulSet", "db", {"replicas": 1}, {}),
        denial("StatefulSet", "db", 'create Pod db-0 in StatefulSet db failed error: "odd"'),
        ("StatefulSet", "db"),
        "create Pod db-0 in StatefulSet db failed",
    ),
    (
        "jobs",
        None,
        denial("RayCluster", "ray", RAY + GUARD, "FailedToCreateWorkerPod"),
        ("RayCluster", "ray"),
        "the team's guard denies its pods",
    ),
]


@pytest.mark.parametrize(("kind", "made", "event", "named", "cause"), DENIED)
def test_pods_that_admission_denies_are_told_by_what_makes_them(
    server, kind, made, event, named, cause
):
    server.answers[ALL["pods"]] = (200, {"items": []})
    server.answers[ALL[kind]] = (200, {"items": [made] if made else []})
    server.answers[ALL["events"]] = (200, {"items": [just_now(event)] if event else []})
    found = json.loads(run("my", "pending", "--json"))
    (one,) = found["denied"]
    assert found["pending"] == []
    assert (one["kind"], one["name"]) == named
    assert one["cause"].startswith(cause)
    assert one["fix"]
    text = run("my", "pending")
    assert max(map(len, text.splitlines())) <= 80
    assert named[1] in text and named[0] in text and "no pod" in text
    assert said(run("my", "pending", "-n", "web")) == "no pod waits"


def test_what_has_its_pods_since_is_not_told(server):
    server.answers[ALL["pods"]] = (200, {"items": []})
    _, made, event, *_ = DENIED[0]
    server.answers[ALL["jobs"]] = (200, {"items": [{**made, "status": {"active": 1}}]})
    server.answers[ALL["events"]] = (200, {"items": [just_now(event)]})
    assert said(run("my", "pending")) == "no pod waits"


def test_who_may_not_list_what_makes_pods_is_told_of_late_events(server):
    server.answers[ALL["pods"]] = (200, {"items": []})
    forbid(server, "jobs", "replicasets", "statefulsets")
    events = [denial("Job", "new", GUARD), denial("Job", "old", GUARD, minutes=60)]
    server.answers[ALL["events"]] = (200, {"items": events})
    found = json.loads(run("my", "pending", "--json"))
    assert [one["name"] for one in found["denied"]] == ["new"]
    assert found["notes"] == []


def test_closed_gates_and_new_pods(server):
    gated = pod("gated", "serve")
    gated["spec"]["schedulingGates"] = [{"name": "team.io/data"}]
    server.answers[ALL["pods"]] = (200, {"items": [gated]})
    (one,) = json.loads(run("my", "pending", "--json"))["pending"]
    assert one["cause"] and one["fix"]


def forbid(server, *kinds):
    for kind in kinds:
        message = f'{kind} is forbidden: User "me" cannot list resource "{kind}"'
        server.answers[ALL[kind]] = (403, {"message": message})


def test_who_may_not_list_nodes_gets_the_rest_and_a_sentence(server):
    forbid(server, "nodes")
    text = run("my", "pods")
    assert "note: you may not list nodes: how many GPUs there are is not known" in said(text)
    assert ["whole", "4", "a", "train"] in [line.split()[:4] for line in text.splitlines()]
    assert "note: you may not list nodes" in run("my", "queues")


def test_who_may_not_see_which_kai_runs_is_told_the_same(server):
    server.answers[ALL["pods"]] = (200, {"items": [pod("lost", "nowhere"), PODS[4]]})
    before = json.loads(run("my", "pending", "--json"))
    forbid(server, "deployments", "runtimeclasses")
    assert json.loads(run("my", "pending", "--json")) == before | {"kai": None}


def test_who_may_not_list_queues_is_told_so_and_sees_the_pods_by_queue(server):
    forbid(server, "queues")
    text = run("my", "queues")
    assert "note: you may not list queues: quotas and limits are not known" in said(text)
    assert "pod nine never runs" in text
    assert ["train", "GPU", "5.02", "?", "?"] in [line.split() for line in text.splitlines()]


def test_who_may_see_one_namespace_only_gets_what_kai_says_of_queues(server):
    forbid(server, "pods", "podgroups", "nodes")
    server.answers["/api/v1/namespaces/default/pods"] = (200, {"items": PODS[:2]})
    train = queue("train", "default", gpu=4)
    train["status"] = {
        "allocated": {"cpu": "1500m", "memory": "1Gi", GPU: "4500m"},
        "requested": {"cpu": "1500m", "memory": "1Gi", GPU: "5500m"},
    }
    server.answers[ALL["queues"]] = (200, {"items": [TREE[0], train]})
    found = json.loads(run("my", "queues", "--json"))
    assert found["countedFrom"] == "status"
    gpu = next(one for one in found["queues"] if one["name"] == "train")["gpu"]
    assert (gpu["inUse"], gpu["waiting"], gpu["borrowed"]) == (4.5, 1, 0.5)
    assert "pods of namespace default only; what queues hold is what KAI says" in str(found)
    assert [one["name"] for one in json.loads(run("my", "pods", "--json"))["pods"]] == ["a", "b"]


def test_who_may_see_one_namespace_only_is_told_that_others_hold_the_queue(server):
    forbid(server, "pods", "podgroups", "nodes")
    waiting = pod("w", "train", asks={GPU: "1"})
    server.answers["/api/v1/namespaces/default/pods"] = (200, {"items": [waiting]})
    train = queue("train", "default", gpu=(4, 5))
    train["status"] = {"allocated": {GPU: "4500m"}, "requested": {GPU: "5500m"}}
    server.answers[ALL["queues"]] = (200, {"items": [TREE[0], train]})
    (one,) = json.loads(run("my", "pending", "--json"))["pending"]
    assert one["cause"] == "it asks for 1 GPU, and queue train holds 4.5 of at most 5"


def test_who_may_list_nothing_gets_sentences(server):
    forbid(server, *ALL)
    server.answers["/api/v1/namespaces/default/pods"] = (403, {})
    for command in ("queues", "pods", "pending"):
        text = said(run("my", command))
        assert "note: you may not list pods" in text
        assert "no pod" not in text


def test_in_mode_host_pods_are_told_by_queue_and_the_platforms_command_is_named(server):
    for kind in ("queues", "podgroups", "deployments"):
        server.answers[ALL[kind]] = (404, {})
    text = said(run("my", "queues"))
    assert "train GPU 5.02 ? ?" in text
    assert "KAI runs on the host and not here, and so do its queues" in text
    assert "fleet usage --stack STACK --team TEAM" in text
    (one,) = json.loads(run("my", "pending", "--json"))["pending"]
    assert "no KAI schedules" not in one["cause"]
    assert "free" not in run("my", "pods").splitlines()[0]


def test_without_kai_that_is_said(server):
    for kind in ("queues", "podgroups", "deployments"):
        server.answers[ALL[kind]] = (404, {})
    plain = pod("plain", None, "ml-0", asks={GPU: "1"}, scheduler="default-scheduler")
    server.answers[ALL["pods"]] = (200, {"items": [plain]})
    assert "no KAI runs here: there are no queues" in said(run("my", "queues"))
    assert "plain" in run("my", "pods")


def test_a_cluster_that_does_not_answer_is_one_sentence(server):
    server.answers[ALL["pods"]] = (401, {})
    assert run("my", "pods").startswith("error: the cluster at http://127.0.0.1")
    assert "does not accept the credentials" in run("my", "pods")


def test_a_pause_that_no_machine_waits_is_refused(server):
    found = CliRunner().invoke(app, ["my", "queues", "--watch", "--every", "inf"])
    assert found.exit_code == 2


def test_kubeconfig_and_context_are_chosen(server, monkeypatch):
    file = os.environ["KUBECONFIG"]
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    assert "error: the kubeconfig cannot be used" in run("my", "pods")
    assert "whole" in run("my", "pods", "--kubeconfig", file)
    assert "whole" in run("my", "pods", "--kubeconfig", file, "--context", "lab")
    found = run("my", "pods", "--kubeconfig", file, "--context", "other")
    assert "error: the kubeconfig has no context other; its contexts: lab;" in found


def test_the_plugin_of_kubectl_has_the_same_commands(server, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/bin/kubectl-fleet", "queues"])
    assert "1 pod waits for a node: kubectl fleet pending" in run("pods", app=plugin)
    assert "whole" in run("my", "pods", app=plugin)


def test_colours_only_on_a_terminal(server):
    assert "\x1b" not in run("my", "queues") + run("my", "pods") + run("my", "pending")


OTHERS = {
    *("pulumi", "pulumi_kubernetes", "pulumi_policy", "pulumi_command", "grpc"),
    *("kubernetes", "kai_fleet", "kai_fleet_policies", "kai_fleet_cli"),
}


@pytest.mark.parametrize("command", ["queues", "pods", "pending"])
def test_the_plugin_imports_little(server, command):
    """An engineer's install is small: what reads a cluster needs none of the other parts."""
    script = (
        "import sys\n"
        "from kubectl_fleet.commands import plugin\n"
        f"plugin([{command!r}], standalone_mode=False)\n"
        f"found = {OTHERS} & set(sys.modules)\n"
        "sys.exit(f'imported: {found}' if found else 0)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "train" in ran.stdout


def test_every_module_of_its_distribution_is_imported_without_the_others():
    folder = Path(kubectl_fleet.__file__).parent
    files = [file.relative_to(folder).with_suffix("") for file in folder.rglob("*.py")]
    names = [".".join(("kubectl_fleet", *file.parts)) for file in files]
    script = (
        f"import importlib, sys; [importlib.import_module(it) for it in {names}]\n"
        "print(sorted({it.partition('.')[0] for it in sys.modules}))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    # Typer reads a command line with pydantic from 0.29 on; nothing here needs it.
    assert not {*OTHERS, "pydantic"} & set(ast.literal_eval(ran.stdout))


def test_a_namespace_without_pods_is_told_to_have_none(server):
    assert said(run("my", "pods", "-n", "nowhere")) == "no pod holds a GPU in namespace nowhere"
    assert "no pod holds a GPU" not in run("my", "pods")


def test_a_limit_that_is_filled_in_from_the_teams_gpus_is_raised_there(server):
    top = queue("top", gpu=(4, 4))
    leaf = queue("train", "top", gpu=4)
    server.answers[ALL["queues"]] = (200, {"items": [top, leaf]})
    server.answers[ALL["pods"]] = (200, {"items": [pod("nine", "train", asks={GPU: "9"})]})
    (one,) = json.loads(run("my", "pending", "--json"))["pending"]
    assert one["fix"].endswith("platform's stack file, and the team's gpus where they are less")
