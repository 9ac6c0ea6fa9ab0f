"""`fleet init`: the file for a cluster passes the rules, and says what the cluster has."""

import re

import pytest
from rich.prompt import PromptBase

from kai_fleet.names import FLEET
from kai_fleet_cli.display import terminal
from kai_fleet_cli.doctor.read import READS
from kai_fleet_cli.init.stack_file import _KNOWN as KNOWN
from kai_fleet_cli.stack_file.reading import parse
from kai_fleet_stack import validation
from tests.unit.cli.teams.team_project import Project
from tests.unit.components.cluster.canned_api import kubeconfig, serving

PATHS = {kind: path.format("") for kind, path in {**READS, **KNOWN["paths"]}.items()}
GKE = "cloud.google.com/gke-nodepool"
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def item(name, labels=None, **rest):
    return {"metadata": {"name": name, "labels": labels or {}, **rest.pop("metadata", {})}, **rest}


def node(name, labels=None, taints=(), cloud="", **gpus):
    names = {"gpu": "nvidia.com/gpu", "amd": "amd.com/gpu", "mig": "nvidia.com/mig-1g.10gb"}
    allocatable = {names[kind]: str(count) for kind, count in gpus.items()}
    addresses = [{"type": "InternalIP", "address": "10.0.0.7"}]
    status = {"allocatable": allocatable, "addresses": addresses}
    return item(name, labels, spec={"taints": [*taints], "providerID": cloud}, status=status)


def plugin(name):
    containers = [{"name": "nvidia-device-plugin-ctr", "image": "x:1"}]
    return item(name, spec={"template": {"spec": {"containers": containers}}})


KAI = item("kai-operator", metadata={"namespace": "kai-scheduler"}) | {
    "spec": {
        "template": {"spec": {"containers": [{"name": "o", "image": "r/kai-operator:v0.9.3"}]}}
    }
}
DEFAULT = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
CLUSTERS = {
    "gke": {
        "nodes": [
            node("a-1", {GKE: "a100"}, [TAINT], "gce://p/a-1", gpu=8),
            node("a-2", {GKE: "a100"}, [TAINT], "gce://p/a-2", gpu=8),
            node("l-1", {GKE: "l4-pool"}, [TAINT], "gce://p/l-1", gpu=4),
            node("c-1", {GKE: "cpu"}, (), "gce://p/c-1"),
        ],
        "storageclasses": [item("premium-rwo"), item("standard-rwo", metadata=DEFAULT)],
    },
    "bare": {
        "nodes": [node(f"w-{n}", {"nvidia.com/gpu.present": "true"}) for n in (1, 2)],
        "storageclasses": [item("ceph")],
        "ingressclasses": [item("nginx")],
    },
    "k3s": {
        "nodes": [node("k-1", {"nvidia.com/gpu.count": "2"}, cloud="k3s://k-1")],
        "services": [item("traefik", status={"loadBalancer": {"ingress": [{"ip": "10.0.0.7"}]}})],
        "runtimeclasses": [item("nvidia", handler="nvidia")],
    },
    "operator": {
        "nodes": [
            node("m-1", {"kai-fleet/pool": "Host"}, gpu=4, mig=14),
            node("m-2", {"kai-fleet/pool": "7"}, gpu=4),
            node("m-3", {"kai-fleet/pool": "on"}, mig=7),
            node("m-4", gpu=4),
        ],
        "clusterpolicies": [item("cluster-policy")],
        "daemonsets": [plugin("nvidia-device-plugin-daemonset")],
        "deployments": [KAI],
        "runtimeclasses": [item("nvidia", handler="nvidia")],
    },
    "amd": {"nodes": [node("r-1", amd=8)]},
    "none": {"nodes": [node("c-1")], "namespaces": [item("team-ml", {"kai-fleet/team": "ml"})]},
}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """The commands in a project, and a function that gives its context the objects of a cluster."""
    project = Project.of(tmp_path, monkeypatch)
    with serving() as (api, url):
        file = tmp_path / "kubeconfig"
        file.write_text(kubeconfig(url))
        monkeypatch.setenv("KUBECONFIG", str(file))

        def of(name, version="v1.33.2"):
            api.answers["/version"] = (200, {"gitVersion": version})
            for kind, path in PATHS.items():
                api.answers[path] = (200, {"items": CLUSTERS[name].get(kind, [])})
            return api

        yield project, of


@pytest.mark.parametrize("name", CLUSTERS)
def test_the_file_passes_every_rule_as_it_is_and_with_each_key_that_it_shows(cluster, name):
    project, of = cluster
    of(name)
    assert project.run("init", "mine").refusal == ""
    written = project.text("mine")
    off = r"^( *)#(|  +)(?=[a-z][\w:-]*:(?: |$))"  # a key that is off, and no sentence
    on = re.sub(off, r"\1\2", written, flags=re.MULTILINE)
    on = on.replace("{username: pull}", "{username: pull, password: {secure: v1:x}}")
    assert "  kai-fleet:registries:" in on
    for text in (written, on):
        assert [str(each) for each in validation.validate(parse(text, "mine")).problems] == []


def test_what_the_cluster_has_is_in_the_file(cluster):
    project, of = cluster
    shown = {}
    for name in CLUSTERS:
        of(name)
        ran = project.run("init", name, "--context", "lab")
        shown[name] = parse(project.text(name), name), project.text(name), ran.out
    gke, bare, k3s, operator, amd, none = (raw for raw, _, _ in shown.values())
    assert {team: (t["nodePool"], t["gpus"]) for team, t in gke["teams"].items()} == {
        "a100": ({GKE: "a100"}, 16),
        "l4-pool": ({GKE: "l4-pool"}, 4),
    }
    assert gke["tolerations"] == [{"key": "nvidia.com/gpu"}]
    assert gke["teams"]["a100"]["scheduler"]["values"] == {"binder": {"runtimeClassName": ""}}
    providers = [raw["gpu"]["provider"] for raw in (gke, bare, k3s, operator, amd, none)]
    assert providers == ["none", "operator", "device-plugin", "none", "none", "none"]
    assert gke["vcluster"]["access"] == {"type": "LoadBalancer"}
    assert k3s["vcluster"]["access"] == {"type": "NodePort", "host": "10.0.0.7"}
    assert bare["vcluster"]["storageClass"] == "ceph"
    assert k3s["teams"]["ml"]["gpus"] == 2
    assert amd["gpu"]["resource"] == "amd.com/gpu"
    kinds = {"nvidia.com/gpu": 4, "nvidia.com/mig-1g.10gb": 14}
    assert operator["teams"]["host-2"]["gpus"] == kinds
    assert "teams" not in none
    for name, words in {
        "gke": "unless set: standard-rwo. All: premium-rwo, standard-rwo",
        "bare": "Ingress class nginx",
        "operator": "KAI v0.9.3 runs on this cluster already",
        "none": "A stack has teams on this cluster already (ml)",
    }.items():
        assert words.lower() in shown[name][1].lower()
    assert "no team gets them: m-4" in shown["operator"][1]
    assert "#kai-fleet:mirror: mirror.example.com" in shown["gke"][1]
    label = "kubectl --context lab label node w-1 w-2 kai-fleet/pool=ml"
    assert label in shown["bare"][1]
    commands = [line.strip() for line in shown["bare"][2].splitlines() if line.startswith("  ")]
    preview = f"{FLEET} preview --stack bare"
    assert commands == [label, "pulumi stack init bare", preview]


def test_a_terminal_is_asked_which_of_several_contexts_is_meant(cluster, tmp_path, monkeypatch):
    project, of = cluster
    of("gke")
    file = tmp_path / "kubeconfig"
    text = file.read_text()
    two = "- {context: {cluster: lab, user: me}, name: other}"
    asked = []

    def ask(question, **shown):
        asked.append((question, shown))
        return "other"

    monkeypatch.setattr(terminal, "can_ask", lambda: True)
    monkeypatch.setattr(PromptBase, "ask", ask)
    both = text.replace("contexts:", f"contexts:\n{two}")
    none = both.replace("current-context: lab", "")
    for content, stack in ((text, "one"), (both, "two"), (none, "three")):
        file.write_text(content)
        assert project.run("init", stack).refusal == ""
    choices = {"choices": ["other", "lab"]}
    assert asked == [("Context", {**choices, "default": "lab"}), ("Context", choices)]
    assert parse(project.text("one"), "one")["cluster"]["context"] == "lab"
    assert parse(project.text("two"), "two")["cluster"]["context"] == "other"


def test_a_file_that_is_there_stays_and_a_cluster_that_cannot_be_read_is_named(cluster):
    project, of = cluster
    before = project.text()
    assert "Pulumi.lab.yaml is there already" in project.run("init", "lab").refusal
    assert project.text() == before
    api = of("gke", "v1.28.1")
    missing = project.run("init", "mine", "--context", "prod").refusal
    assert "context prod: the kubeconfig cannot be used: it has no context prod" in missing
    api.answers[PATHS["nodes"]] = (403, {})
    assert "context lab may not list nodes (403 Forbidden)" in project.run("init", "mine").refusal
    assert "Pulumi.mine.yaml" not in project.files()
    of("gke", "v1.28.1")
    api.answers[PATHS["storageclasses"]] = (403, {})
    project.run("init", "mine")
    assert "the guards need Kubernetes 1.30" in project.text("mine")
    assert "storageclasses of the cluster were not read (403 Forbidden)" in project.text("mine")
