"""`kai-fleet:workloads`: manifests in files, declared in a team's vCluster, judged by the rules."""

import pytest
import yaml

from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.plan.recorder import SECRET, record
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_stack import validation
from kai_fleet_stack.settings.loading import load

QUEUES = {"default": {"children": {name: {"gpu": 1} for name in ("test", "ml-team", "serve")}}}
SCHEDULER = {"mode": "virtual", "version": "v0.16.8"}
TEAM = {"scheduler": SCHEDULER, "nodePool": {"pool": "ml"}, "gpus": 4, "queues": QUEUES}
DEFAULT = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "dev"}, "gpus": 1}
TEAMS = {"ml": TEAM, "dev": DEFAULT}
FILES = sorted((ROOT / "examples" / "workloads").glob("*.yaml"))
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"kai.scheduler/queue": "test"}},
    "spec": {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "image": "ubuntu"}]},
}


# 100,000 values in each document.
MANY = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{last}'] * 10)}]\n" for last, name in ("ab", "bc", "cd", "de")
)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project's folder, and what writes a file of these documents into it."""
    monkeypatch.setattr("kai_fleet_stack.settings.files.yaml_file.ROOT", tmp_path)

    def write(name, *documents):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        text = "---\n".join(
            document if isinstance(document, str) else yaml.safe_dump(document)
            for document in documents
        )
        file.write_text(text)
        return name

    return write


def raw(**workloads):
    return {"cluster": {"name": "lab", "context": "lab"}, "teams": TEAMS, "workloads": workloads}


def of_workloads(**workloads):
    problems = validation.validate(raw(**workloads)).problems
    return [str(p) for p in problems if p.path.startswith("kai-fleet:workloads")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_rule_has_anything_against_an_example(file):
    team = "dev" if file.name in ("web.yaml", "without-kai.yaml") else "ml"
    assert of_workloads(**{team: [str(file.relative_to(ROOT))]}) == []


def test_every_example_is_named_by_a_stack_file():
    stacks = "".join(path.read_text() for path in (ROOT / "examples").rglob("Pulumi.*.yaml"))
    assert [file.name for file in FILES if f"workloads/{file.name}" not in stacks] == []


def test_each_object_is_declared_in_its_teams_vcluster():
    found = plan("guide-004", ROOT / "examples" / "guides" / "Pulumi.guide-004.yaml")
    inside = {
        (resource.type, resource.name): resource
        for resource in found.resources
        if resource.name.startswith("ai/")
    }
    assert all(
        item.provider.endswith("pulumi:providers:kubernetes::ai") for item in inside.values()
    )
    assert ("kubernetes:core/v1:Namespace", "ai/ai-workloads") in inside
    assert ("kubernetes:core/v1:Service", "ai/ai-workloads/vllm-test-07") in inside
    deployment = inside["kubernetes:apps/v1:Deployment", "ai/ai-workloads/vllm-test-07"].inputs
    assert deployment["apiVersion"] == "apps/v1"
    assert deployment["spec"]["template"]["metadata"]["annotations"] == {"gpu-fraction": "0.7"}


def test_the_content_of_a_secret_is_hidden(project):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    file = project("secret.yaml", {**secret, "stringData": {"token": "hf_of-mine"}})
    (declared,) = (item for item in record("lab", raw(ml=[file])) if item.name == "ml/s")
    assert declared.inputs["stringData"] == SECRET


@pytest.mark.parametrize(
    ("change", "rule", "says"),
    [
        ({"labels": {"kai.scheduler/queue": "nosuch"}}, "workload-leaf-queue", "write"),
        ({"labels": {}}, "workload-leaf-queue", "kai.scheduler/queue"),
        ({"namespace": "kai-scheduler"}, "namespace-reserved", "reserved"),
        ({"annotations": {"gpu-fraction": "2"}}, "workload-gpu-request", "nvidia.com/gpu"),
        (
            {"annotations": {"gpu-fraction": 0.5}},
            "workload-known-keys",
            'write gpu-fraction: "0.5"',
        ),
    ],
)
def test_a_rule_refuses_by_team_and_file(project, change, rule, says):
    files = [project("good.yaml", {**POD, "metadata": {**POD["metadata"], "name": "good"}})]
    files.append(project("bad.yaml", {**POD, "metadata": {**POD["metadata"], **change}}))
    found = [line for line in of_workloads(ml=files) if f"[{rule}]" in line]
    assert found and says in found[0]
    assert found[0].startswith("kai-fleet:workloads.ml[1]: Pod p in namespace")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("kind: Pod\n", "is no Kubernetes object; write apiVersion, kind and metadata.name"),
        ({"apiVersion": "v1", "kind": "PodList", "items": []}, "is no Kubernetes object"),
        ("a: &x [1]\nb: *y\n", "line 2 column 4: has *y, no value above it"),
        ("a:\n\tb: 1\n", "line 2 column 1: is no YAML: found character"),
        ("a: 010\n", "line 1 column 4: has '010', which is another value"),
        ("---\n".join([MANY] * 20), "stands for more than 1,000,000 values"),
    ],
)
def test_a_file_that_cannot_be_applied_is_refused_with_what_to_write(project, content, says):
    (mistake,) = load(raw(ml=[project("bad.yaml", content)])).mistakes
    assert mistake.path.startswith("kai-fleet:workloads.ml.bad.yaml")
    assert says in mistake.message


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (["../outside.yaml"], "no YAML file below this project's folder"),
        (["/etc/passwd"], "no YAML file below this project's folder"),
        (["nosuch.yaml"], "nosuch.yaml, which is not there"),
        ("a.yaml", "write [workloads/train.yaml]"),
        ({"a.yaml": [POD]}, "write [workloads/train.yaml]"),
    ],
)
def test_only_files_of_the_project_are_read(project, files, says):
    assert says in load(raw(ml=files)).mistakes[0].message


def test_manifests_are_for_a_team_of_the_stack(project):
    (mistake,) = load(raw(nosuch=[project("pod.yaml", POD)])).mistakes
    assert mistake.path == "kai-fleet:workloads.nosuch"
    assert mistake.message.endswith("the teams: ml, dev")
