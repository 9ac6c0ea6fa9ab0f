"""Every example of the guides through the engine, with the rules on; each on its own."""

from collections import Counter

import pytest
from kubernetes import client

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

    def pods(self, team):
        """The team's own pods by workload."""
        found = client.CoreV1Api(self.inside[team]).list_pod_for_all_namespaces(
            label_selector="app"
        )
        names = {n for n, w in self.settings["workloads"].items() if w["team"] == team}
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
        wanted = {
            name: workload.get("replicas", 1)
            for name, workload in example.settings["workloads"].items()
            if workload["team"] == team
        }
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
    shares = [w for w in example.settings["workloads"].values() if "fraction" in w.get("gpu", {})]
    assert bool(taken) == bool(shares)
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


def test_a_served_model_has_an_endpoint(example):
    for name, workload in example.settings["workloads"].items():
        if workload["kind"] == "vllm":
            core = client.CoreV1Api(example.inside[workload["team"]])
            service = core.read_namespaced_service(name, workload["namespace"])
            assert service.spec.ports[0].port == 80
            assert example.first.outputs["workloads"][name]["url"] == (
                f"http://{name}.{workload['namespace']}/v1"
            )


def test_a_second_update_changes_nothing(example):
    assert example.product.up().changed == {}
