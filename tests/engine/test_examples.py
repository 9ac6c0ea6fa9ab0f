"""Every example of the guides through the engine, with the rules on; each on its own."""

from collections import Counter

import pytest
from kubernetes import client

from kai_fleet.settings import load
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.reading import ROOT
from tests.engine.product import Product, api, project

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

FOLDER = ROOT / "examples" / "guides"
EXAMPLES = [
    pytest.param(path, id=path.name.split(".")[1]) for path in sorted(FOLDER.glob("Pulumi.*.yaml"))
]
GROUP = "runai-gpu-group"


class Deployed:
    """One example on the sandbox: the pods inside each of its vClusters."""

    def __init__(self, product, sandbox, path):
        self.product, self.settings = product, reading.read(path)
        self.first = product.up()
        self.host = api(sandbox.kubeconfig.read_text())
        self.inside = {t: api(text) for t, text in self.first.outputs["kubeconfigs"].items()}

    def manifests(self, team, *kinds):
        """The objects of a team's files, by name."""
        files = load(self.settings).settings.workloads[team].values()
        return {it["metadata"]["name"]: it for f in files for it in f if it["kind"] in kinds}

    def pods(self, team):
        """The team's own pods by workload."""
        found = client.CoreV1Api(self.inside[team]).list_pod_for_all_namespaces(
            label_selector="app"
        )
        names = self.manifests(team, "Pod", "Deployment")
        pods: dict = {}
        for pod in found.items:
            if pod.metadata.labels["app"] in names:
                pods.setdefault(pod.metadata.labels["app"], []).append(pod)
        return pods


@pytest.fixture(scope="module", params=EXAMPLES)
def example(request, sandbox, place, tmp_path_factory):
    place.empty()
    directory = project(tmp_path_factory.mktemp("example") / "project")
    path = request.param
    (directory / path.name).write_text(path.read_text())
    product = Product.of(path.name.split(".")[1], sandbox, directory)
    return Deployed(product, sandbox, path)


def test_every_pod_runs_and_there_are_as_many_as_asked_for(example):
    for team in example.settings["teams"]:
        objects = example.manifests(team, "Pod", "Deployment")
        wanted = {name: it["spec"].get("replicas", 1) for name, it in objects.items()}
        pods = example.pods(team)
        assert {name: len(found) for name, found in pods.items()} == wanted
        phases = Counter(pod.status.phase for found in pods.values() for pod in found)
        assert phases == {"Running": sum(wanted.values())}


def test_no_gpu_is_given_to_more_than_a_whole(example):
    taken: Counter = Counter()
    for team in example.settings["teams"]:
        for pod in (pod for found in example.pods(team).values() for pod in found):
            fraction = (pod.metadata.annotations or {}).get("gpu-fraction")
            if fraction is not None:
                taken[pod.metadata.labels[GROUP]] += float(fraction)
    assert bool(taken) == ("gpu-fraction" in str(load(example.settings).settings.workloads))
    assert all(part <= 1.0001 for part in taken.values())
    # Both servers of guide 004 are on one GPU, the six pods of guide 001 on two.
    assert len(taken) == -(-sum(taken.values()) // 1)


def test_kai_has_a_pod_group_for_each_of_its_pods(example):
    for team, settings in example.settings["teams"].items():
        mode = settings["scheduler"]["mode"]
        if mode == "default":
            continue
        where = example.inside[team] if mode == "virtual" else example.host
        groups = client.CustomObjectsApi(where).list_cluster_custom_object(
            "scheduling.run.ai", "v2alpha2", "podgroups"
        )
        queues = {item["metadata"]["name"]: item["spec"]["queue"] for item in groups["items"]}
        pods = [pod for found in example.pods(team).values() for pod in found]
        wanted = {
            pod.metadata.annotations["pod-group-name"]: pod.metadata.labels["kai.scheduler/queue"]
            for pod in pods
        }
        assert len(wanted) == len(pods)
        assert wanted.items() <= queues.items()


def test_a_served_model_has_a_service(example):
    for team in example.settings["workloads"]:
        for name, it in example.manifests(team, "Service").items():
            core = client.CoreV1Api(example.inside[team])
            service = core.read_namespaced_service(name, it["metadata"]["namespace"])
            assert service.spec.ports[0].port == 80


def test_a_second_update_changes_nothing(example):
    assert example.product.up().changed == {}
