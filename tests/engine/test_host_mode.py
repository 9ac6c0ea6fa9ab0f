"""One KAI for all on the host, the departments of guide 003, two teams in host mode.

It has fairness over time, a shard and a topology besides, which are edited and left out.
"""

import json

import pytest
from kubernetes import client

from kai_fleet_cli.doctor.diagnosis import diagnose
from kai_fleet_cli.engine import runs
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies.finding import Level
from kai_fleet_stack.settings.files import yaml_file
from tests.engine.broken_things import QUEUES, kai_pod, pods, queue
from tests.engine.guarded_pods import GROUPED, HALF, pod, sent
from tests.engine.kubectl_plugin import asked
from tests.engine.product import (
    Product,
    api,
    cluster_roles,
    deployments,
    namespaces,
    project,
    queues,
)
from tests.engine.sandbox_commands import run, until
from tests.stack_files import queue_tree

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

TEAMS = ("vision", "nlp")
URL = "http://prometheus.monitoring:9090"
SCHEDULING = {
    "fairshare": {"window": "24h", "kValue": 0.5, "prometheus": URL},
    "shards": {
        "default": {"minRuntime": {"preempt": "2h"}},
        "gold": {"minRuntime": {"preempt": "4h"}},
    },
    "topologies": {
        "racks": ["cloud.example/rack", "kubernetes.io/hostname"],
        "zones": ["kubernetes.io/hostname"],
    },
}


@pytest.fixture(scope="module")
def product(sandbox, tmp_path_factory):
    directory = project(tmp_path_factory.mktemp("host") / "project")
    product = Product.of("sandbox-host", sandbox, directory)
    product.edit(lambda config: config["kai-fleet:kai"].update(SCHEDULING))
    return product


@pytest.fixture(scope="module")
def first(product):
    return product.up()


def test_the_hosts_kai_and_its_queues_are_there_once(first, host):
    assert "kai-scheduler-default" in deployments(host, "kai-scheduler")
    parents = {name: q["spec"].get("parentQueue") for name, q in queues(host).items()}
    assert parents == {
        "ml-department": None,
        "research-team": "ml-department",
        "project-alpha": "research-team",
        "project-beta": "research-team",
        "engineering-team": "ml-department",
    }


def test_teams_have_a_vcluster_and_no_kai_of_their_own(first):
    for team in TEAMS:
        inner = api(first.outputs["kubeconfigs"][team])
        assert "kai-scheduler" not in namespaces(inner)
    assert first.outputs["teams"]["vision"]["queues"] == ["project-alpha"]


def test_a_team_sees_its_pods_by_queue_and_who_sees_the_queues(sandbox, first, tmp_path):
    kubeconfig = tmp_path / "vision.kubeconfig"
    kubeconfig.write_text(first.outputs["kubeconfigs"]["vision"])
    core = client.CoreV1Api(api(kubeconfig.read_text()))
    bodies = [
        kai_pod("half", "project-alpha", annotations={"gpu-fraction": "0.5"}),
        kai_pod("whole", "project-alpha", gpus="1"),
        kai_pod("waits", "project-alpha", gpus="64"),
    ]
    for body in bodies[:2]:
        body["spec"].pop("nodeSelector")
    with pods(core.api_client, *bodies):
        until(lambda: core.read_namespaced_pod("half", "default").spec.node_name)
        until(lambda: core.read_namespaced_pod("whole", "default").spec.node_name)
        found = asked(sandbox, kubeconfig, "queues")
        assert found["queues"] == []
        alpha = found["withoutQuotas"]["project-alpha"]
        assert (alpha["inUse"]["gpu"], alpha["waiting"]["gpu"], alpha["pods"]) == (1.5, 64, 2)
        assert "ask the platform's engineers" in " ".join(found["notes"])
        gpus = {one["name"]: one["gpu"] for one in asked(sandbox, kubeconfig, "pods")["pods"]}
        assert gpus == {"half": 0.5, "whole": 1, "waits": 64}
        (one,) = asked(sandbox, kubeconfig, "pending")["pending"]
        assert one["name"] == "waits"
        assert "no scheduler of KAI" not in one["cause"]


def test_a_quota_change_touches_that_queue_only(first, product, host):
    def edit(config):
        department = config["kai-fleet:queues"]["ml-department"]["children"]
        department["engineering-team"]["gpu"] = {"quota": 2, "limit": 3}

    product.edit(edit)
    assert set(product.up().changed) == {"Queues host-queues"}
    assert queues(host)["engineering-team"]["spec"]["resources"]["gpu"]["limit"] == 3


def test_a_queue_of_somebody_else_is_taken_over_by_the_printed_command(
    first, product, host, sandbox
):
    """All other queues and teams are up to date meanwhile."""
    name = "engineering-team"
    objects = client.CustomObjectsApi(host)
    objects.delete_cluster_custom_object(*QUEUES, name)
    objects.create_cluster_custom_object(*QUEUES, queue(name, "ml-department"))

    def edit(config):
        department = config["kai-fleet:queues"]["ml-department"]["children"]
        department["engineering-team"]["gpu"] = {"quota": 1, "limit": 3}
        department["research-team"]["gpu"] = {"quota": 5}

    product.edit(edit)
    with pytest.raises(runs.EngineError) as why:
        runs.up(product.stack)
    lead, line = str(why.value).split("\n")
    assert lead == "the update is done, but for team nlp"
    assert f"somebody else made queue {name} on the host" in line
    assert queues(host)["research-team"]["spec"]["resources"]["gpu"]["quota"] == 5
    command = line.partition("run: ")[2].partition(", then run")[0]
    run(sandbox, *command.split())
    runs.up(product.stack)
    assert queues(host)[name]["spec"]["resources"]["gpu"]["quota"] == 1


def test_on_the_host_the_teams_namespace_is_guarded(first, host):
    core = client.CoreV1Api(host)
    # A pod without a queue is for this guard alone; a wrong one is denied by the host's too.
    message = until(lambda: sent(core, "team-nlp", pod()), 30)
    remedy = "write the label kai.scheduler/queue: engineering-team"
    assert message.endswith(remedy)
    assert remedy in sent(core, "team-nlp", pod(labels={"kai.scheduler/queue": "test"}))
    own = pod(labels={"kai.scheduler/queue": "engineering-team"}, annotations=HALF)
    assert sent(core, "team-nlp", own) == ""
    assert "names no queue on the pod itself" in sent(core, "team-nlp", GROUPED)
    assert sent(core, "default", pod()) == ""


def objects(host, plural, version="v1"):
    found = client.CustomObjectsApi(host).list_cluster_custom_object(
        "kai.scheduler", version, plural
    )
    return {item["metadata"]["name"]: item for item in found["items"]}


def test_shards_and_topologies_have_what_is_configured(first, host):
    shards = objects(host, "schedulingshards")
    assert set(shards) == {"default", "gold"}
    for shard in shards.values():
        assert shard["spec"]["kValue"] == 0.5
        assert shard["spec"]["usageDBConfig"] == {
            "clientType": "prometheus",
            "connectionString": URL,
            "usageParams": {"windowSize": "24h", "windowType": "sliding"},
        }
    assert shards["gold"]["spec"]["partitionLabelValue"] == "gold"
    assert shards["gold"]["spec"]["minRuntime"] == {"preemptMinRuntime": "4h"}
    levels = objects(host, "topologies", "v1alpha1")["racks"]["spec"]["levels"]
    assert [level["nodeLabel"] for level in levels] == SCHEDULING["topologies"]["racks"]


def test_the_doctor_misses_the_nodes_of_a_shard(first, product, host, monkeypatch):
    monkeypatch.setattr(reading, "ROOT", product.file.parent)
    core = client.CoreV1Api(host)
    node = core.list_node().items[0].metadata.name
    labels = {"kai.scheduler/node-pool": "gold", "cloud.example/rack": "r1"}

    def mark(values):
        core.patch_node(node, {"metadata": {"labels": values}})

    def found(level):
        return {f.subject for f in diagnose("sandbox-host").findings if f.level is level}

    assert found(Level.MANDATORY) == {"SchedulingShard gold"}
    assert "Topology racks" in found(Level.ADVISORY)
    mark(labels)
    try:
        assert found(Level.MANDATORY) == set()
        assert "check shards" in found(Level.OK)
    finally:
        mark(dict.fromkeys(labels))


def test_edits_keep_what_somebody_wrote_and_let_go_of_what_is_left_out(first, product, host):
    """Only what is configured is ours; the rest of a shard is its owner's."""
    before = objects(host, "topologies", "v1alpha1")["racks"]["metadata"]["uid"]
    client.CustomObjectsApi(host).patch_cluster_custom_object(
        "kai.scheduler", "v1", "schedulingshards", "default", {"spec": {"args": {"v": "3"}}}
    )

    def edit(config):
        config["kai-fleet:kai"].pop("fairshare")
        config["kai-fleet:kai"]["topologies"] = {"racks": ["cloud.example/block"]}
        config["kai-fleet:kai"]["shards"] = {"default": {"minRuntime": {"reclaim": "1h"}}}

    product.edit(edit)
    changed = product.up().changed
    topologies = {name for name in changed if name.startswith("Topology ")}
    assert topologies == {"Topology host-topologies-racks", "Topology host-topologies-zones"}
    there = objects(host, "topologies", "v1alpha1")
    assert set(there) == {"racks"}
    assert there["racks"]["metadata"]["uid"] != before
    shards = objects(host, "schedulingshards")
    assert set(shards) == {"default"}, "a shard that is no longer configured goes"
    spec = shards["default"]["spec"]
    assert (spec["args"], spec["minRuntime"]) == ({"v": "3"}, {"reclaimMinRuntime": "1h"})
    assert not {"kValue", "usageDBConfig"} & set(spec)
    assert "prometheus" not in objects(host, "configs")["kai-config"]["spec"]


@pytest.mark.slow
def test_a_tree_too_large_for_a_stack_file_is_in_one_of_its_own(first, product, host, monkeypatch):
    monkeypatch.setattr(yaml_file, "ROOT", product.file.parent)
    before = set(queues(host))
    file = product.file.with_name("queues.yaml")

    def edit(config):
        tree = {**config["kai-fleet:queues"], **queue_tree(1400)}
        file.write_text(json.dumps(tree))
        config["kai-fleet:queues"] = file.name

    product.edit(edit)
    assert file.stat().st_size > 128 * 1024, "Pulumi could run it from the stack file"
    assert set(product.up().changed) == {"Queues host-queues"}
    assert before < set(queues(host))
    assert len(queues(host)) > 1300


@pytest.mark.slow
def test_destroy_empties_the_cluster(first, product, host):
    product.stack.destroy()
    left = namespaces(host)
    assert not left & {"team-vision", "team-nlp"}
    assert "kai-scheduler" not in left
    assert queues(host) == {}, "KAI keeps its CRDs, but not our queues"
    assert cluster_roles(host, "vision", "nlp") == set()
