"""Who holds what: counted from objects, in the amounts that KAI counts."""

import pytest

from kai_usage.cluster_usage import count
from kai_usage.pods import read_pods
from kai_usage.queues import count_pods
from kai_usage.requests import read_resources, requests_of
from tests.unit.usage.usage_samples import (
    GROUP_A,
    GROUP_B,
    answers,
    kai,
    node,
    pod,
    queue,
    reservation,
)

GPU = "nvidia.com/gpu"
NV = "nvidia.com/container.main.gpu-memory"


def gpus(item, *nodes, version="v0.16.8"):
    """What a single pod counts for."""
    found = count(
        answers(pods=[item], nodes=list(nodes or [node("ml-0")]), deployments=[kai(version)])
    )
    return found.pods[0].gpu_amount


@pytest.mark.parametrize(
    ("item", "desired"),
    [
        (pod("cpu", node="ml-0", asks={"cpu": "1"}), 0),
        (pod("whole", node="ml-0", asks={GPU: "2"}), 2),
        (pod("amd", node="ml-0", asks={"amd.com/gpu": "1"}), 1),
        (pod("half", node="ml-0", gpu_fraction="0.5"), 0.5),
        (pod("halves", node="ml-0", gpu_fraction="0.5", gpu_fraction_num_devices="3"), 1.5),
        # 20480 of 81900, which is what KAI makes of 81920, rounded up to a hundredth.
        (pod("memory", node="ml-0", gpu_memory="20480"), 0.26),
        (pod("memories", node="ml-0", gpu_memory="20480", gpu_fraction_num_devices="2"), 0.52),
        (pod("mig", node="ml-0", asks={"nvidia.com/mig-3g.20gb": "2"}), 6),
        (pod("odd-mig", node="ml-0", asks={"nvidia.com/mig-1g.5gb.me": "1"}), 0),
        # A KAI in mode NvFractions: 20 GiB of 80, by its own key.
        (pod("own", node="ml-0", **{f"{NV}.request": "20Gi", f"{NV}.limit": "40Gi"}), 0.26),
        (pod("limit", node="ml-0", **{f"{NV}.limit": "20Gi"}), 0.26),
        (pod("nonsense", node="ml-0", gpu_fraction="half"), 0),
        (pod("nan", node="ml-0", gpu_fraction="NaN"), 0),
        # Who makes a pod may write anything: it takes nothing off the GPUs that it holds.
        (
            pod(
                "off",
                node="ml-0",
                asks={GPU: "4"},
                gpu_fraction="0.5",
                gpu_fraction_num_devices="-8",
            ),
            4,
        ),
        (pod("off", node="ml-0", asks={GPU: "4"}, gpu_memory="-400000"), 4),
        (pod("much", node="ml-0", gpu_memory="9" * 400), 0),
        (pod("many", node="ml-0", gpu_fraction="0.5", gpu_fraction_num_devices="9" * 400), 0),
    ],
    ids=lambda entry: entry["metadata"]["name"] if isinstance(entry, dict) else str(entry),
)
def test_a_pod_counts_for_what_kai_counts(item, desired):
    assert gpus(item) == pytest.approx(desired)


def test_a_share_of_memory_is_of_the_nodes_gpus_and_of_the_smallest_while_it_waits():
    nodes = [node("big", memory="81920"), node("small", memory="23034"), node("unknown", 8, None)]
    assert gpus(pod("a", node="small", gpu_memory="11500"), *nodes) == 0.5
    assert gpus(pod("a", node="big", gpu_memory="11500"), *nodes) == 0.15
    assert gpus(pod("a", gpu_memory="11500"), *nodes) == 0.5
    # Nobody can say which part it is: nobody may say less than all of it.
    assert gpus(pod("a", node="unknown", gpu_memory="11500"), *nodes) == 1


def test_v0_7_takes_the_nodes_memory_in_millions_of_bytes():
    # 81920 MiB are 85899 times 10^6 bytes, rounded down to 85800.
    assert gpus(pod("a", node="ml-0", gpu_memory="20480"), version="v0.7.11") == 0.24
    assert gpus(pod("a", node="ml-0", gpu_memory="20480"), version="v0.8.5") == 0.26


def test_containers_that_start_first_count_where_they_need_more():
    def container(cpu, **more):
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "containers": [container("1"), container("500m")],
        "initContainers": [container("250m", restartPolicy="Always"), container("4")],
    }
    assert requests_of(spec)["cpu"] == 4250
    spec["initContainers"].pop()
    assert requests_of(spec)["cpu"] == 1750
    assert requests_of({"containers": [{"resources": {"limits": {"cpu": "2"}}}]})["cpu"] == 2000


TREE = [
    queue("default", gpu=8),
    queue("train", "default", gpu=(4, 8), cpu=(8000, 16000), memory=64000),
    queue("serve", "default", gpu=4),
    queue("lab", gpu=4),
]


def test_a_tree_with_borrowing_fractions_memory_and_several_gpus():
    gone = pod("gone", "serve", asks={GPU: "1"})
    gone["metadata"]["deletionTimestamp"] = "2026-11-01T11:59:50Z"
    found = count(
        answers(
            queues=TREE,
            pods=[
                pod("a", "train", "ml-0", asks={GPU: "4", "cpu": "2500m", "memory": "1Gi"}),
                pod("b", "train", "ml-0", (GROUP_A,), gpu_fraction="0.5"),
                pod("c", "train", "ml-0", (GROUP_A, GROUP_B), None, gpu_memory="20480"),
                pod("d", "serve", "ml-0", asks={GPU: "1"}, phase="Pending"),
                pod("e", "serve", asks={GPU: "2"}),
                pod("too-large", "serve", asks={GPU: "99"}),
                gone,
                pod("done", "serve", "ml-0", asks={GPU: "4"}, phase="Succeeded"),
                pod("other", None, "ml-0", asks={GPU: "1"}, scheduler="default-scheduler"),
                reservation(GROUP_A, "ml-0"),
                reservation(GROUP_B, "ml-0", "GPU-1"),
            ],
        )
    )
    queues = found.queues
    assert list(queues) == ["default", "serve", "train", "lab"]
    assert (queues["default"].level, queues["train"].level) == (1, 2)
    assert queues["train"].parent == "default"
    assert queues["default"].children == ["serve", "train"]
    assert queues["train"].children == queues["lab"].children == []
    train, serve, default, lab = (
        queues[name].shares["gpu"] for name in ("train", "serve", "default", "lab")
    )
    assert (train.quota, train.limit) == (4, 8)
    assert train.in_use == 4.76  # c takes 0.26 of one device: it names no number
    assert (train.borrowed, default.borrowed, lab.borrowed) == (0.76, 0, 0)
    assert (serve.in_use, serve.waiting) == (1, 101)
    assert (default.in_use, default.waiting) == (5.76, 101)
    assert (queues["default"].pods_with_node, queues["default"].waiting_pods) == (4, 2)


@pytest.mark.parametrize("amount", ["nan", "Infinity", 1e308])
def test_amounts_that_nobody_could_have_are_finite(amount):
    """A tenant's API server may answer any, and a team's own stack writes numbers on the host."""
    queues = [queue("top", gpu=amount), queue("a", "top", gpu=(amount, amount))]
    found = count(answers(queues=queues, pods=[pod("p", "a", "ml-0", asks={GPU: "1"})])).queues
    shares = [each.shares["gpu"] for each in found.values()]
    assert shares[0].in_use == 1
    amounts = [x for share in shares for x in (share.quota, share.limit, share.borrowed)]
    assert max(map(abs, amounts)) < 1e31


@pytest.mark.parametrize("amounts", [(1, True, 0), (True, 1, 0), (1.0, True, False)])
def test_an_amount_is_read_as_what_it_is_and_not_as_what_equals_it(amounts):
    """Of a tenant's node or pod: what was read before says nothing about it."""
    read = [read_resources({"cpu": amount})["cpu"] for amount in amounts]
    assert read == [0 if isinstance(amount, bool) else 1000 * amount for amount in amounts]


@pytest.mark.parametrize(
    ("quota", "borrowed"), [(-1, 0), (-2, 3), (-0.5, 3), (-1e308, 3), (0, 3), (2, 1), (4, 0)]
)
def test_no_more_is_borrowed_than_is_in_use(quota, borrowed):
    """Only -1 is unlimited; a Queue may have any other negative quota."""
    holds = pod("p", "a", "ml-0", asks={GPU: "3", "cpu": "3m"})
    tree = [queue("a", gpu=quota, cpu=quota)]
    shares = count(answers(queues=tree, pods=[holds])).queues["a"].shares
    assert (shares["gpu"].borrowed, shares["cpu"].borrowed) == (borrowed, borrowed)


def test_queues_that_kai_drops_are_not_in_the_tree_and_their_pods_are_named():
    found = count(
        answers(
            queues=[queue("a", "nowhere"), queue("b", "c"), queue("c", "b"), queue("d")],
            pods=[pod("x", "a"), pod("y", None), pod("z", "d")],
        )
    )
    assert list(found.queues) == ["d"]
    assert [entry.name for entry in found.pods if entry.queue not in found.queues] == ["x", "y"]


def test_the_podgroup_names_the_queue_before_the_pods_label_does():
    item = pod("a", "wrong", "ml-0", pod_group_name="pg-a")
    group = {"metadata": {"name": "pg-a", "namespace": "default"}, "spec": {"queue": "right"}}
    found = count(answers(pods=[item], podgroups=[group]))
    assert found.pods[0].queue == "right"
    group["metadata"]["namespace"] = "elsewhere"
    assert count(answers(pods=[item], podgroups=[group])).pods[0].queue == "wrong"


def test_a_label_without_a_value_names_no_queue():
    unlabelled = pod("a", None)
    empty = pod("b", None)
    empty["metadata"]["labels"] = {"kai.scheduler/queue": ""}
    found = read_pods([unlabelled, empty])
    assert [each.queue for each in found] == [None, None]
    assert count_pods(found) == {}


def test_the_version_is_the_running_one():
    assert count(answers(deployments=[kai("v0.9.3")])).version == "v0.9.3"
    assert count(answers(deployments=[kai("latest")])).version == "latest"
    assert count(answers(deployments=[])).version is None


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("kai", None),
        ("kai:v0.9.3", "v0.9.3"),
        ("registry:5000/kai", None),
        ("registry:5000/kai:v0.9.3", "v0.9.3"),
        ("registry:5000/kai:v0.9.3@sha256:0a", "v0.9.3"),
        ("kai@sha256:0a", None),
        ("", None),
    ],
)
def test_the_version_is_the_tag_of_the_image(image, version):
    operator = kai()
    operator["spec"]["template"]["spec"]["containers"][0]["image"] = image
    assert count(answers(deployments=[operator])).version == version


def test_a_reservation_pod_without_a_node_holds_no_gpu():
    waits = reservation(GROUP_A, "ml-0")
    del waits["spec"]["nodeName"]
    found = count(answers(pods=[waits]))
    assert list(found.nodes) == ["ml-0"]
    assert found.nodes["ml-0"].shared == []


def test_a_label_in_bytes_is_read_in_mib():
    (found,) = count(answers(nodes=[node("ml-0", memory="42949672960")])).nodes.values()
    assert (found.memory_mib, found.kai_memory) == (40960, 40900)


def test_what_is_free_on_a_node_that_is_not_listed_is_not_known():
    found = count(answers(nodes=[], pods=[pod("a", node="ml-0", asks={GPU: "1"})]))
    assert found.nodes["ml-0"].free is None


def test_a_version_that_is_no_number_counts_as_the_newest():
    share = pod("a", node="ml-0", gpu_memory="20480")
    assert gpus(share, version="main-0a7") == gpus(share, version="latest") == 0.26
