from dataclasses import replace

from kai_fleet.fleet.cluster import Cluster, Kai
from kai_fleet.values import UNKNOWN
from tests.policies.samples import cluster, found, open_question, refusal, shared, workload

RULE = "workload-gpu-sharing"
OFF = (Kai("v0.9.3", sharing="Disabled"),)


def test_shares_pass_where_sharing_is_on_and_whole_gpus_where_it_is_off():
    assert found(RULE, cluster(shared(gpu_fraction="0.5"))) == []
    assert found(RULE, cluster(workload(), kai=OFF)) == []


def test_a_share_is_refused_while_sharing_is_off():
    for key in ("gpu_fraction", "gpu_memory"):
        problem = refusal(RULE, cluster(shared(**{key: "1"}), kai=OFF))
        assert "GPU sharing is off in the KAI of host; set gpuSharing: true" in problem.message


def test_host_mode_is_judged_by_the_hosts_kai():
    inner = Cluster("ml", workloads=(shared(gpu_fraction="0.5"),), scheduled_by=cluster(kai=OFF))
    assert "off in the KAI of host" in refusal(RULE, inner).message


def test_an_unknown_or_undeclared_setting_is_one_open_question():
    pods = (shared(gpu_fraction="0.5"), replace(shared(gpu_memory="1"), name="b"))
    for kai in ((Kai("v0.9.3", sharing=UNKNOWN),), ()):
        assert "2 workload(s)" in open_question(RULE, cluster(*pods, kai=kai)).message
