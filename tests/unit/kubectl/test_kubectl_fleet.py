"""`kubectl fleet queues` and `pods`, and what is said to whoever may not see all of it."""

import pytest

from kubectl_fleet.__main__ import main
from tests.unit.kubectl.team_cluster import GPU, PODS, SAMPLES
from tests.unit.usage.usage_samples import GROUP_A, kai, node, pod, queue, served


def gpu_of(found, name):
    return next(one for one in found["queues"] if one["name"] == name)["gpu"]


def test_queues_as_a_tree_with_bars(team):
    lines = team.lines("queues")
    assert max(map(len, team.run("queues").splitlines())) <= 80
    assert lines[0] == "queue in use quota limit borrowed, lent waiting"
    assert "└ train GPU ████████▓▓ 5.02 4 8 1.02 borrowed 9" in lines
    assert "├ serve GPU ▒▒▒░░░░░░░ 0 4 ∞ 1.02 lent" in lines
    assert "mem █░░░░░░░░░ 1.07G 64G 64G" in lines
    assert lines[-1] == "4 pods have a node, 1 waits: kubectl fleet pending"


@pytest.mark.parametrize("command", ["queues", "pods", "pending"])
def test_no_name_is_broken(team, command, monkeypatch):
    """In a pipe, and on a terminal of 80 columns: what is copied from it is in one piece."""
    monkeypatch.setenv("COLUMNS", "80")
    name, other = (
        "a-queue-of-some-forty-characters-which-is",
        "llama-3-pretraining-on-four-nodes-w0",
    )
    tree = [queue("default", gpu=8), queue(name, "default", gpu=(4, 8), memory=(64000, 64000))]
    team.has("queues", tree)
    waits = pod("w-" + other, name, asks={GPU: "9"}, namespace="a-namespace-of-a-long-name")
    team.has("pods", [pod(other, name, "ml-0", asks={GPU: "4"}), waits])
    text = team.run(command)
    named = {"queues": [name], "pods": [other, name], "pending": [f"w-{other}", name, name]}
    for each in set(named[command]):
        assert text.count(each) == named[command].count(each)
    assert max(map(len, text.splitlines())) <= 160
    assert "…" not in text


def test_queues_for_machines(team):
    found = team.json("queues")
    assert (found["kai"], found["countedFrom"], found["notes"]) == ("v0.16.8", "pods", [])
    train = found["queues"][2]
    assert list(train["gpu"].items()) == [
        *(("quota", 4), ("limit", 8), ("overQuotaWeight", 1)),
        *(("inUse", 5.02), ("waiting", 9), ("borrowed", 1.02), ("lent", 0)),
    ]
    assert (train["cpu"]["inUse"], train["memory"]["quota"]) == (2500, 64000)
    assert (train["pods"], train["waitingPods"], train["parent"]) == (3, 1, "default")
    assert gpu_of(found, "default")["inUse"] == 5.02


def test_what_is_lent_is_lent_on_by_those_below(team):
    tree = [queue("a", gpu=4), queue("a1", "a", gpu=3), queue("a2", "a", gpu=1), queue("b", gpu=2)]
    team.has("queues", tree)
    team.has("pods", [pod("x", "b", "ml-0", asks={GPU: "4"})])
    found = team.json("queues")
    lent = {name: gpu_of(found, name)["lent"] for name in ("a", "a1", "a2", "b")}
    assert lent == {"a": 2, "a1": 1.5, "a2": 0.5, "b": 0}


@pytest.mark.parametrize(
    ("version", "annotations", "part"),
    [
        ("v0.16.8", {"gpu_memory": "20480"}, 0.26),
        ("v0.7.11", {"gpu_memory": "20480"}, 0.24),  # of 85800: MiB against megabytes
        ("v0.16.8", {"gpu_memory": "no number"}, 0),
        ("v0.16.8", {"gpu_fraction": "0.5", "gpu_fraction_num_devices": "2"}, 1),
        ("v0.16.8", {"gpu_fraction": "1.5"}, 0),
        ("v0.18.0", {"nvidia.com/container.main.gpu_memory.request": "8Gi"}, 0.11),
    ],
)
def test_shares_count_as_that_version_of_kai_counts_them(team, version, annotations, part):
    team.has("deployments", [served(kai(version))])
    team.has("pods", [pod("x", "train", "ml-0", (GROUP_A,), **annotations)])
    (one,) = team.json("pods")["pods"]
    assert one["gpu"] == part


def test_requests_add_up_as_kubernetes_adds_them(team):
    def container(cpu, **more):
        return {"name": "x", "resources": {"limits": {"cpu": cpu}}, **more}

    x = pod("x", "train", "ml-0", asks={"cpu": "1", "memory": "1Gi"})
    x["spec"]["initContainers"] = [container("1", restartPolicy="Always"), container("4")]
    x["spec"]["overhead"] = {"cpu": "250m"}
    slices = pod("s", "train", "ml-0", asks={"nvidia.com/mig-3g.20gb": "2"})
    team.has("pods", [x, slices])
    x, slices = team.json("pods")["pods"]
    assert (x["cpu"], x["memory"], slices["gpu"]) == (5250, 1073.741824, 6)


def test_pods_by_gpu(team):
    lines = team.lines("pods")
    assert max(map(len, team.run("pods").splitlines())) <= 80
    assert lines[0] == "ml-0: 8 GPUs (81920 MiB each), 2 free"
    assert [line.rpartition(" ")[0] for line in lines[2:6]] == [
        "whole 4 a train",
        "GPU-0a ████████░░ 0.76 0.5 b train",
        "0.26 c train",
        "GPU-1b ███░░░░░░░ 0.26 0.26 c train",
    ]
    assert lines[6:] == ["1 pod without a GPU", "1 pod waits for a node: kubectl fleet pending"]


def test_an_entire_gpu_beside_a_share_counts_once(team):
    team.has("pods", [pod("mixed", "train", "ml-0", asks={GPU: "1"}, gpu_fraction="0.5")])
    rows = [line.rpartition(" ")[0] for line in team.lines("pods")[2:4]]
    assert rows == ["whole 1 mixed train", "not known 0.5 mixed train"]


def test_memory_that_a_label_has_in_bytes_is_shown_in_mib(team):
    team.has("nodes", [node("ml-0", memory="42949672960")])
    assert team.lines("pods")[0] == "ml-0: 8 GPUs (40960 MiB each), 2 free"


def test_a_pod_that_is_deleted_before_it_has_a_node_does_not_wait(team):
    gone = pod("gone", "train", asks={GPU: "1"})
    gone["metadata"]["deletionTimestamp"] = "2026-11-01T11:59:50Z"
    team.has("pods", [pod("a", "train", "ml-0", asks={GPU: "4"}), gone])
    assert "wait" not in team.run("pods")
    assert team.lines("queues")[-1] == "1 pod has a node"
    assert team.json("pending")["pending"] == []


def test_pods_on_slices_are_shown_where_a_node_has_no_whole_gpu(team):
    team.has("nodes", [node("cut", 0, None)])
    team.has("pods", [pod("s", "train", "cut", asks={"nvidia.com/mig-1g.10gb": "1"})])
    lines = team.lines("pods")
    assert lines[0] == "cut" and lines[2].startswith("MIG 1 s train")


def test_the_queue_of_a_pod_is_the_one_of_its_pod_group(team):
    x = pod("x", "train", "ml-0", asks={GPU: "1"}, pod_group_name="gang")
    place = {"name": "gang", "namespace": "default"}
    team.has("podgroups", [{"metadata": place, "spec": {"queue": "serve"}}])
    team.has("pods", [x])
    assert team.json("pods")["pods"][0]["queue"] == "serve"


def test_a_namespace_narrows_what_is_shown_and_not_what_queues_hold(team):
    found = team.json("pods", "--namespace", "web")
    assert [one["name"] for one in found["pods"]] == ["web"]
    assert "train" not in team.run("pods", "-n", "web")
    assert team.run("pods", "-n", "") == team.run("pods")
    assert team.run("queues", "-n", "web") == team.run("queues")
    assert team.reported("pods", "-n", "nowhere") == "no pod holds a GPU in namespace nowhere"


def test_who_may_not_list_nodes_gets_the_rest_and_a_sentence(team):
    team.refuses("nodes")
    text = team.reported("pods")
    assert "note: you may not list nodes: how many GPUs there are is not known" in text
    assert "whole 4 a train" in text
    assert team.json("pods")["nodes"][0]["free"] is None


def test_who_may_not_list_queues_sees_the_pods_by_queue(team):
    team.refuses("queues")
    lines = team.lines("queues")
    assert "note: you may not list queues: quotas and limits are not known" in lines
    assert "train GPU 5.02 ? ? 9" in lines


def test_who_may_see_one_namespace_only_gets_what_kai_says_of_queues(team):
    team.refuses("pods", "podgroups", "nodes")
    team.has("pods", PODS[:2], "default")
    train = queue("train", "default", gpu=4)
    amounts = {"cpu": "1500m", "memory": "1Gi"}
    allocated, requested = {**amounts, GPU: "4500m"}, {**amounts, GPU: "5500m"}
    train["status"] = {"allocated": allocated, "requested": requested}
    team.has("queues", [SAMPLES["queues"][0], train])
    found = team.json("queues")
    assert found["countedFrom"] == "status"
    gpu = gpu_of(found, "train")
    assert (gpu["inUse"], gpu["waiting"], gpu["borrowed"]) == (4.5, 1, 0.5)
    assert "pods of namespace default only; what queues hold is what KAI says" in str(found)
    assert [one["name"] for one in team.json("pods")["pods"]] == ["a", "b"]
    team.has("pods", [pod("other", "train", "ml-0", namespace="web")], "web")
    assert [one["name"] for one in team.json("pods", "-n", "web")["pods"]] == ["other"]


def test_who_may_list_nothing_gets_sentences(team):
    team.refuses(*SAMPLES, "podgroups", "events")
    team.handler.otherwise = (403, {"code": 403})
    for command in ("queues", "pods", "pending"):
        text = team.reported(command)
        assert "note: you may not list pods" in text
        assert "no pod" not in text


def test_in_mode_host_pods_are_shown_by_queue(team):
    team.refuses("queues", "podgroups", "deployments", status=404)
    text = team.reported("queues")
    assert "train GPU 5.02 ? ? 9" in text
    assert "KAI runs on the host and not here, and so do its queues" in text
    (one,) = team.json("pending")["pending"]
    assert "scheduler of KAI" not in one["cause"]
    assert "free" not in team.run("pods").splitlines()[0]
    assert team.json("pods")["nodes"][0]["free"] is None


def test_without_kai_that_is_said(team):
    team.refuses("queues", "podgroups", "deployments", status=404)
    team.has("pods", [pod("x", None, "ml-0", asks={GPU: "1"}, scheduler="default-scheduler")])
    assert team.reported("queues") == "note: no KAI runs here: there are no queues"
    assert "x" in team.run("pods")


def test_one_request_for_each_kind(team):
    for command, kinds in (("queues", 5), ("pods", 5), ("pending", 11)):
        team.handler.asked.clear()
        team.run(command)
        assert len(team.handler.asked) == len(set(team.handler.asked)) == kinds


def test_a_cluster_that_refuses_the_credentials_or_does_not_answer_is_one_sentence(team):
    team.refuses("pods", status=401)
    text = team.run("pods")
    assert text.startswith("error: the cluster at http://127.0.0.1")
    assert text.endswith("can't be read: it does not accept the credentials (401)")
    team.refuses("pods", status=500)
    assert "it answers 500" in team.run("pods")
    team.handler.answers["/api/v1/pods"] = (200, ["no list"])
    assert "no Kubernetes API" in team.run("pods")


def test_alone_it_gives_help(capsys):
    main([])
    assert "why each pod waits, and what to do" in capsys.readouterr().out
