import pytest

from kai_fleet.settings import Settings, load
from tests.unit.stack_arguments import settings_of

CLUSTER = {"name": "prod", "context": "prod"}
KAI = {"version": "v0.16.8"}
VIRTUAL = {"scheduler": {"mode": "virtual", "version": "v0.16.8"}}


def mistakes(**raw):
    return {m.path: m.message for m in load({"cluster": CLUSTER, **raw}).mistakes}


def settings(**raw) -> Settings:
    return settings_of({"cluster": CLUSTER, **raw})


def test_every_mistake_is_reported_at_once_with_its_path():
    found = mistakes(
        kai=KAI,
        gpu={"provider": "operater", "version": 1.0},
        queues={"a": {"cpu": {"quota": "12x"}, "childern": {}}, "b": {"gpu": 6, "limit": 8}},
        teams={
            "ml": {"scheduler": {"mode": "virtul"}},
            "dev": {"scheduler": {"mode": "default"}, "gpus": "4"},
            "x": [],
        },
        tems={},
    )
    assert set(found) == {
        "kai-fleet:gpu.provider",
        "kai-fleet:gpu.version",
        "kai-fleet:queues.a.cpu.quota",
        "kai-fleet:queues.a.childern",
        "kai-fleet:queues.b.limit",
        "kai-fleet:teams.ml.scheduler.mode",
        "kai-fleet:teams.dev.gpus",
        "kai-fleet:teams.x",
        "kai-fleet:tems",
    }
    assert "write one of 'operator', 'device-plugin' or 'none'" in found["kai-fleet:gpu.provider"]
    assert found["kai-fleet:queues.a.childern"] == "is an unknown key; write children"
    assert found["kai-fleet:tems"] == "is an unknown key; write teams"
    assert "is an unknown key; the keys here are " in found["kai-fleet:queues.b.limit"]
    assert "whole number" in found["kai-fleet:teams.dev.gpus"]


def test_keys_of_another_mode_are_refused():
    found = mistakes(
        kai=KAI,
        teams={
            "ml": {"scheduler": {"mode": "virtual"}, "queue": "a"},
            "nlp": {"scheduler": {"mode": "host", "version": "v0.16.8"}, "queues": {"a": {}}},
        },
    )
    assert set(found) == {
        "kai-fleet:teams.ml.scheduler.version",
        "kai-fleet:teams.ml.queue",
        "kai-fleet:teams.nlp.scheduler.version",
        "kai-fleet:teams.nlp.queues",
        "kai-fleet:teams.nlp.queue",
    }


def test_a_cluster_must_be_named_never_the_current_one():
    assert "kai-fleet:cluster.context" in {
        m.path for m in load({"cluster": {"name": "x"}}).mistakes
    }


def test_a_queue_inside_itself_is_one_sentence():
    loop: dict = {}
    loop["children"] = {"a": loop}
    found = mistakes(queues={"a": loop})
    assert found["kai-fleet:queues.a.children.a"].startswith("contains itself")


def test_a_wrong_kubeconfig_is_never_shown():
    loaded = load({"cluster": {"name": "x", "kubeconfig": {"token": "TOP-SECRET"}}})
    assert loaded.mistakes
    assert "TOP-SECRET" not in str(loaded)


def test_a_right_kubeconfig_is_masked():
    loaded = load({"cluster": {"name": "x", "kubeconfig": "TOP-SECRET"}})
    assert loaded.mistakes == ()
    assert "TOP-SECRET" not in repr(loaded.settings)


def test_a_teams_vcluster_has_the_stacks_defaults():
    stack = settings(
        vcluster={"version": "v0.34.7", "values": {"a": {"b": 1, "c": 1}}},
        teams={
            "ml": {
                **VIRTUAL,
                "vcluster": {"kubernetesVersion": "v1.34.4", "values": {"a": {"b": 2}}},
            }
        },
    )
    merged = stack.teams["ml"].vcluster
    assert merged.version == "v0.34.7"
    assert merged.kubernetes_version == "v1.34.4"
    assert merged.values == {"a": {"b": 2, "c": 1}}


def test_a_node_port_needs_a_host():
    found = mistakes(teams={"ml": {**VIRTUAL, "vcluster": {"access": {"type": "NodePort"}}}})
    assert list(found) == ["kai-fleet:teams.ml.vcluster.access.host"]


def test_amd_gpus_have_no_nvidia_operator():
    assert list(mistakes(gpu={"provider": "operator", "resource": "amd.com/gpu"})) == [
        "kai-fleet:gpu.provider"
    ]


def test_amd_gpus_are_never_shared():
    amd = {"resource": "amd.com/gpu"}
    stack = settings(gpu=amd, kai={"version": "v0.16.8"})
    assert stack.kai is not None
    assert not stack.shares_gpus(stack.kai)
    found = mistakes(
        gpu=amd,
        kai={"version": "v0.16.8", "gpuSharing": True},
        teams={"ml": {"scheduler": {**VIRTUAL["scheduler"], "gpuSharing": True}}},
    )
    assert set(found) == {"kai-fleet:kai.gpuSharing", "kai-fleet:teams.ml.scheduler.gpuSharing"}
    assert "pods with amd.com/gpu get whole GPUs" in found["kai-fleet:kai.gpuSharing"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"scheduler": "virtual"}, "'virtual'; write {mode: virtual, version: v0.16.8}"),
        ({"nodePool": "ml"}, "'ml'; write {kai-fleet/pool: ml}"),
        ({"scheduler": ...}, "is missing; write scheduler: {mode: virtual, version: v0.16.8}"),
        ({"queues": {"a": {"gpu": "6G"}}}, "6G is 6,000,000,000 GPUs; write a number such as 4"),
    ],
)
def test_a_slip_is_answered_with_what_to_write(change, says):
    team = {**VIRTUAL, "gpus": 8, **change}
    (said,) = mistakes(teams={"ml": {k: v for k, v in team.items() if v is not ...}}).values()
    assert says in said


@pytest.mark.parametrize(
    ("bound", "amount", "says"),
    [
        ("cpu", "2Ti", "2Ti is 2,199,023,255,552 cores; write a number such as 16"),
        ("memory", "64m", "64m is less than a megabyte; write 64Gi or 64M"),
        ("memory", "64k", "64k is less than a megabyte; write 64Gi or 64M"),
        ("cpu", -1, "-1 is negative; write 200, 500m"),
        ("cpu", "unlimited", "'unlimited' is no Kubernetes quantity; write 200, 500m"),
    ],
)
def test_a_bound_in_the_unit_of_another_is_refused(bound, amount, says):
    (said,) = mistakes(isolation={"bounds": {bound: amount}}).values()
    assert says in said
