"""Any program's resources, read as clusters."""

import pytest

from kai_fleet.names import QUEUES
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.adapters.from_resources import PROVIDER, QUEUE, clusters
from kai_fleet_policies.adapters.releases import chart_of
from kai_fleet_policies.adapters.resource import DeclaredResource
from kai_fleet_policies.rules import BY_NAME, check
from kai_usage.keys import QUEUE_LABEL
from tests.unit.policies.samples import refused_by, resource

LABELS = {QUEUE_LABEL: "test"}
POD = {"schedulerName": "kai-scheduler", "containers": [{"name": "main"}]}
HALF = {"gpu-fraction": "0.5"}
TEMPLATE = {"metadata": {"labels": LABELS, "annotations": HALF}, "spec": POD}
RELEASE = "kubernetes:helm.sh/v3:Release"


def one(*resources: DeclaredResource):
    (cluster,) = clusters(resources)
    return cluster


PODS = {"template": TEMPLATE}
GROUPS = {"headGroupSpec": PODS, "workerGroupSpecs": [{"groupName": "gpu", **PODS}]}


@pytest.mark.parametrize(
    ("kind", "spec", "parts"),
    [
        ("Deployment", PODS, [""]),
        ("CronJob", {"jobTemplate": {"spec": PODS}}, [""]),
        ("RayCluster", GROUPS, ["headGroupSpec", "gpu"]),
        ("SomebodysTrainer", {"worker": PODS}, [""]),
    ],
)
def test_clusters_finds_pod_templates_in_every_kind(kind, spec, parts):
    cluster = one(
        resource(f"kubernetes:x/v1:{kind}", "a", {"metadata": {"namespace": "t"}, "spec": spec})
    )
    assert [w.part for w in cluster.workloads] == parts
    for workload in cluster.workloads:
        assert (workload.kind, workload.name, workload.namespace) == (kind, "a", "t")
        assert (workload.queue, workload.scheduler) == ("test", "kai-scheduler")
        assert workload.annotations == {"gpu-fraction": "0.5"}
        assert [c.name for c in workload.containers] == ["main"]


def test_check_an_unknown_pod_is_an_open_question():
    problems = check(clusters([resource("kubernetes:core/v1:Pod", "a", {"spec": UNKNOWN})]))
    assert problems and all(problem.undecided for problem in problems)


@pytest.mark.parametrize(
    ("chart", "version", "found"),
    [
        ("oci://ghcr.io/x/kai-scheduler", "v0.9.3", ("kai-scheduler", "v0.9.3")),
        ("/tmp/charts/vcluster-0.36.1.tgz", None, ("vcluster", "0.36.1")),
        ("./kai-scheduler", None, ("kai-scheduler", None)),
        ("oci://r.io:5000/kai-scheduler", UNKNOWN, ("kai-scheduler", UNKNOWN)),
        (None, None, ("", None)),
    ],
)
def test_chart_of_reference_url_and_path(chart, version, found):
    assert chart_of({"chart": chart, "version": version}) == found


def kai(provider: str, version: str = "v0.9.3", **values: object) -> DeclaredResource:
    props = {
        "chart": "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler",
        "version": version,
        "namespace": "kai-scheduler",
        "values": {"global": {"gpuSharing": True}, **values},
    }
    return resource(RELEASE, f"kai-{provider}", props, provider)


def vcluster(name: str, provider: str = "host", **values: object) -> DeclaredResource:
    props = {
        "chart": "vcluster",
        "version": "0.36.1",
        "name": name,
        "namespace": f"team-{name}",
    }
    return resource(RELEASE, f"vc-{name}", props | {"values": values}, provider)


OWN = {"controlPlane": {"distro": {"k8s": {"scheduler": {"enabled": True}}}}}
NO_OWNER = {"experimental": {"syncSettings": {"setOwner": False}}}


def pool(name: object) -> dict[str, object]:
    return {"sync": {"fromHost": {"nodes": {"selector": {"labels": {"pool": name}}}}}}


def test_clusters_one_for_each_provider_with_vclusters_by_name():
    hard = {"hard": {"requests.nvidia.com/gpu": "4"}}
    props = {"metadata": {"namespace": "team-ml"}, "spec": hard}
    quota = resource("kubernetes:core/v1:ResourceQuota", "gpus", props, "host")
    host, ml = clusters([vcluster("ml", **OWN, **pool("ml")), quota, kai("ml")])
    (team,) = host.teams
    assert (host.name, ml.name) == ("host", "ml")
    assert (team.mode, team.gpus, dict(team.node_pool)) == ("virtual", 4, {"pool": "ml"})
    assert team.kai == ml.kai
    assert (ml.gpus, ml.kai[0].version, ml.kai[0].sharing) == (4, "v0.9.3", "NonMemoryEnforced")


def test_clusters_pods_without_an_owner_are_scheduled_by_the_host():
    inside = resource("kubernetes:core/v1:Pod", "p", {"spec": POD}, "a")
    host, team = clusters([kai("host"), vcluster("a", **NO_OWNER), inside])
    assert host.teams[0].mode == "host"
    assert team.scheduling is host


def test_check_team_rules_judge_declared_resources():
    two = [vcluster("a", **OWN, **pool("x")), vcluster("b", **OWN, **pool("x"))]
    assert refused_by(check(clusters(two))) == {"team-node-pools"}
    unknown = check(clusters([two[0], vcluster("b", **OWN, **pool(UNKNOWN))]))
    of_teams = [(p.check, p.undecided) for p in unknown if p.check.startswith("team-")]
    assert of_teams == [("team-node-pools", True)]
    apart = [vcluster("a", **OWN, **pool("x")), vcluster("b", **OWN, **pool("y"))]
    assert refused_by(check(clusters(apart))) == set()
    assert refused_by(check(clusters([*apart, kai("host")]))) == {"team-one-mode"}
    twice = [vcluster("a"), vcluster("a", **NO_OWNER)]
    assert refused_by(check(clusters(twice))) == {"team-unique"}


def test_clusters_default_providers_of_several_versions_are_one():
    providers = ("default_4_31_0", "default_4_32_0", "")
    pods = [resource("kubernetes:core/v1:Pod", name, {"spec": {}}, name) for name in providers]
    assert one(*pods).name == "default"


def pod(labels=LABELS, annotations=None):
    metadata = {"name": "p", "labels": labels, "annotations": annotations or {}}
    return resource("kubernetes:core/v1:Pod", "p", {"metadata": metadata, "spec": POD}, "host")


def test_clusters_the_hosts_queues_are_not_those_of_a_team_with_the_name_of_their_tree():
    """Before the update nobody knows which cluster a new one is: the tree's name has to do."""
    providers = [resource(PROVIDER, name, {}) for name in ("host", "host-queues")]
    trees = [
        resource(QUEUES, tree, {"tree": tree, "cluster": UNKNOWN, "queues": {queue: {}}})
        for tree, queue in (("host-queues", "of-host"), ("host-queues-queues", "of-team"))
    ]
    found = clusters([*providers, *trees])
    assert {cluster.name: cluster.queues[0].name for cluster in found} == {
        "host": "of-host",
        "host-queues": "of-team",
    }


def test_check_default_queues_of_newer_charts_count_as_declared():
    created = pod({QUEUE_LABEL: "default-queue"})
    assert refused_by(check(clusters([kai("host", "v0.12.23"), created]))) == set()
    off = kai("host", "v0.12.23", defaultQueue={"createDefaultQueue": False})
    assert {p.check for p in check(clusters([off, created])) if p.undecided} == {
        "workload-leaf-queue"
    }


@pytest.mark.parametrize(
    ("version", "switch", "undecided"),
    [
        ("v0.12.0", UNKNOWN, True),
        (UNKNOWN, True, True),
        (None, UNKNOWN, True),
        (UNKNOWN, False, False),
        (None, False, False),
        ("v0.12.0", False, False),
        ("v0.9.3", UNKNOWN, False),
    ],
)
def test_queue_tree_reads_the_switch_of_the_parent_that_the_chart_makes(version, switch, undecided):
    chart = kai("host", version, defaultQueue={"createDefaultQueue": switch})
    spec = {"parentQueue": "default-parent-queue"}
    below = resource(QUEUE, "q", {"metadata": {"name": "q"}, "spec": spec}, "host")
    problems = check(clusters([chart, below]), [BY_NAME["queue-tree"]])
    assert [problem.undecided for problem in problems] == [undecided]


def test_check_a_release_with_unknown_namespace_and_chart_is_an_open_question():
    props = {"chart": UNKNOWN, "namespace": UNKNOWN}
    problems = check(clusters([resource(RELEASE, "x", props)]))
    assert [(p.check, p.undecided) for p in problems] == [("namespace-reserved", True)]


def test_queue_cluster_scoped_a_provider_may_fill_in_its_namespace():
    spec = {"resources": {r: {"quota": -1, "limit": -1} for r in ("cpu", "memory", "gpu")}}
    props = {"metadata": {"name": "q", "namespace": "team-x"}, "spec": spec}
    queue = resource("kubernetes:scheduling.run.ai/v2:Queue", "q", props)
    assert refused_by(check(clusters([queue]))) == {"queue-cluster-scoped"}
    filled = DeclaredResource(queue.urn, queue.type, "q", props, default_namespace="team-x")
    assert check(clusters([filled])) == []


def test_check_values_in_files_leave_a_question_open_and_refuse_nothing():
    def by_files(release):
        files = {"valueYamlFiles": ["values.yaml"], "values": {}}
        return resource(RELEASE, release.name, {**release.props, **files}, "host")

    def undecided(*program):
        problems = check(clusters(program))
        assert refused_by(problems) == set()
        return {problem.check for problem in problems if problem.undecided}

    assert "workload-gpu-sharing" in undecided(by_files(kai("host")), pod(LABELS, HALF))
    of_teams = undecided(vcluster("a", **OWN, **pool("x")), by_files(vcluster("b")))
    assert of_teams >= {"team-node-pools", "team-one-mode", "vcluster-values"}
