"""The sums of a stack, and what they are held against."""

from hypothesis import given, settings

from fleet import stack_file
from policies import configured, gate
from policies.model import UNKNOWN, UNLIMITED, Cluster
from policies.quota_picture import Line, picture, read
from policies.rules.queue_quota import NAME as QUEUE_QUOTA
from tests.policies.random_trees import valid
from tests.policies.samples import cluster, found, gpu_queue, host, team


def stack(name):
    verdict = gate.judge(stack_file.read(stack_file.path_of(name)))
    return configured.clusters(verdict.settings)


def lines(clusters, kind, resource="gpu", capacity=None):
    return {
        line.subject: line
        for line in picture(clusters, capacity or {})
        if (line.kind, line.resource) == (kind, resource)
    }


def test_a_parents_children_are_added_up():
    tree = cluster(queues=(gpu_queue("a", None, 4), gpu_queue("b", "a", 1), gpu_queue("c", "a", 2)))
    line = lines([tree], "queue")["queue a in host"]
    assert (line.promised, line.available, line.over) == (3, 4, False)
    assert str(line) == "queue a in host: gpu 3 of 4"
    assert lines([tree], "queue", "cpu")["queue a in host"].promised == UNLIMITED


def test_unlimited_children_are_too_much_for_a_parent_with_a_number():
    tree = cluster(queues=(gpu_queue("a", None, 4), gpu_queue("b", "a", UNLIMITED)))
    line = lines([tree], "queue")["queue a in host"]
    assert line.over
    assert str(line) == "queue a in host: gpu unlimited of 4: too much"
    free = cluster(queues=(gpu_queue("a", None, UNLIMITED), gpu_queue("b", "a", 9)))
    assert not lines([free], "queue")["queue a in host"].over


def test_an_unknown_quota_makes_a_lower_bound():
    tree = cluster(queues=(gpu_queue("a", None, 4), gpu_queue("b", "a", UNKNOWN)))
    assert str(lines([tree], "queue")["queue a in host"]) == "queue a in host: gpu at least 0 of 4"


def test_prod_promises_what_its_teams_have():
    assert {(s, x.promised, x.available) for s, x in lines(stack("prod"), "team").items()} == {
        ("team ml", 16, 16),
        ("team research", 6, 10),
    }
    pools = lines(stack("prod"), "pool")
    assert pools["pool kai-fleet/pool=ml (ml)"].promised == 16
    assert pools["pool kai-fleet/pool=dev (dev)"].available is None


def test_nodes_that_were_read_bound_pools_and_the_host():
    clusters = [host(team("ml", gpus=16.0), team("dev", gpus=2.0))]
    node = {
        "metadata": {"labels": {"kai-fleet/pool": "ml"}},
        "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8"}},
    }
    capacity = read([node, {"metadata": {}, "status": {"allocatable": {"cpu": "500m"}}}], clusters)
    assert capacity[()]["cpu"] == 64_500
    ml = lines(clusters, "pool", capacity=capacity)["pool kai-fleet/pool=ml (ml)"]
    assert (ml.promised, ml.available, ml.over) == (16, 8, True)
    assert str(ml).endswith("gpu 16 of 8: too much")


def test_cpu_that_nobody_counts_is_not_too_much_for_nodes():
    assert not Line("pool", "pool a=b (ml)", "cpu", UNLIMITED, 64_000).over


@settings(max_examples=60, deadline=None)
@given(valid())
def test_a_queue_that_is_too_much_is_one_that_the_rule_refuses(of: Cluster) -> None:
    spoilt = [gpu_queue(str(q.name), q.parent, 1 if q.parent is None else 3) for q in of.queues]
    for tree in (of, Cluster("host", queues=tuple(spoilt))):
        over = {x.subject for x in picture([tree]) if x.over and x.kind == "queue"}
        refused = {
            p.subject for p in found(QUEUE_QUOTA, tree) if "of its children" not in p.message
        }
        assert over <= refused
