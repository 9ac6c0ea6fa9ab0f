"""`fleet plan`, as a shell and a CI job see it."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from kai_fleet.values import UNKNOWN
from kai_fleet_cli.app import app
from kai_fleet_cli.plan.offline import key_of
from kai_fleet_cli.plan.picture import of_clusters
from kai_fleet_cli.stack_file.reading import stacks
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.model.installed import Kai
from tests.stack_files import teams
from tests.unit.stack.stack_arguments import settings_of

GOOD = """\
config:
  kai-fleet:cluster: {name: lab, kubeconfig: {secure: v1:abc:TOP-SECRET}}
  kai-fleet:teams:
    ml:
      scheduler: {mode: virtual, version: v0.16.8}
      nodePool: {pool: ml}
      gpus: 2
      queues: {train: {gpu: {quota: 2}}}
"""


def plan(*arguments):
    return CliRunner().invoke(app, ["plan", *arguments], env={"COLUMNS": "80"})


def as_json(*arguments):
    ran = plan(*arguments, "--format", "json")
    return ran.exit_code, json.loads(ran.stdout), ran.stderr


@pytest.fixture
def stack_file(tmp_path):
    def write(text):
        path = tmp_path / "Pulumi.lab.yaml"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize("stack", stacks())
def test_every_stack_of_this_repository_is_fine(stack):
    code, found, errors = as_json("--stack", stack)
    assert (code, found["ok"], errors) == (0, True, "")
    assert found["stack"] == stack
    assert found["resources"]
    for each in found["resources"]:
        assert set(each) == {"urn", "type", "name", "parent", "provider", "inputs"}
        assert each["parent"].startswith(f"urn:pulumi:{stack}::"), "not of another stack's"
    for problem in found["problems"]:
        assert set(problem) == {"check", "level", "path", "kind", "name", "cause", "fix"}
        assert (problem["level"], stack == "prod") == ("advisory", False)


def test_a_file_from_anywhere_is_planned_and_its_secrets_are_not_shown(stack_file):
    code, found, _ = as_json("--config", stack_file(GOOD))
    assert (code, found["stack"]) == (0, "lab")
    assert "TOP-SECRET" not in json.dumps(found)
    provider = next(r for r in found["resources"] if r["urn"].endswith("kubernetes::host"))
    assert provider["inputs"]["kubeconfig"] == "[secret]"


def test_a_refused_file_exits_1_with_rule_path_and_remedy(stack_file):
    bad = GOOD.replace("v0.16.8", "v0.20.1").replace("quota: 2", "quota: 3")
    code, found, errors = as_json("--stack", "lab", "--config", stack_file(bad))
    assert (code, found["ok"], errors) == (1, False, "")
    refused = {(p["check"], p["path"]) for p in found["problems"] if p["level"] == "mandatory"}
    assert ("kai-version-known", "kai-fleet:teams.ml.scheduler.version") in refused
    assert ("queue-quota", "kai-fleet:teams.ml.queues") in refused
    assert "v0.16.8" in str(found["problems"])


def test_what_cannot_be_read_exits_2_with_one_sentence(stack_file):
    code, found, errors = as_json("--stack", "lab", "--config", stack_file("- a\n- b\n"))
    assert (code, found["ok"], errors) == (2, False, "")
    assert "not a stack file" in found["problems"][0]["cause"]


def test_a_plan_of_six_teams_is_a_screen(stack_file):
    """What is refused or doubtful comes first, and each name and key is in one piece."""
    long = "a-team-of-forty-letters-that-does-it-all"
    file = {**teams(6, "v0.16.8", queues=6)}
    six = file["kai-fleet:teams"]
    six[long] = six.pop(next(iter(six)))
    six[long]["scheduler"]["version"] = "v0.9.3"
    ran = plan("--config", stack_file(yaml.safe_dump({"config": file})))
    lines = ran.stdout.splitlines()
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert lines[0].startswith("stack lab: fine (")
    assert lines[1].startswith("warning [")
    assert len(lines) < 60
    first, *_ = (line for line in lines if "virtual" in line)
    assert first.startswith(f"{long} ")
    assert [line for line in lines if f"kai-fleet:teams.{long}.scheduler.version" in line]


def test_what_only_the_program_refuses_is_a_problem_of_the_plan(stack_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vcluster").mkdir()
    code, found, _ = as_json("--config", stack_file(GOOD))
    assert (code, found["ok"]) == (1, False)
    (problem,) = [item for item in found["problems"] if item["level"] == "mandatory"]
    assert "would be installed in place of the chart" in problem["cause"]


@pytest.mark.parametrize("name", ["../x", "nosuch"])
def test_what_is_no_stack_name_is_refused_with_the_stacks_that_there_are(name):
    code, found, _ = as_json("--stack", name)
    assert (code, "prod, sandbox" in found["problems"][0]["cause"]) == (2, True)


@pytest.mark.parametrize(
    ("types", "name", "key"),
    [
        ("Team$kai-fleet:index:VirtualCluster$kubernetes:x:Release", "ml-release", "teams.ml"),
        ("Team$kai-fleet:index:KaiScheduler$kubernetes:x:Release", "ml-kai-release", "teams.ml"),
        ("Team$kubernetes:core/v1:Pod", "ml-2-workloads-a", "teams.ml-2"),
        ("KaiScheduler$kubernetes:x:Release", "host-kai-release", "kai"),
        ("GpuStack$kubernetes:x:Release", "host-gpu-release", "gpu"),
        ("QueueTree$kai-fleet:index:Queues", "host-queues", "queues"),
    ],
)
def test_a_finding_about_a_resource_names_its_key(types, name, key):
    team = {"scheduler": {"mode": "default"}, "gpus": 1}
    teams = {each: {**team, "nodePool": {"pool": each}} for each in ("ml", "ml-2")}
    settings = settings_of({"cluster": {"name": "lab", "context": "lab"}, "teams": teams})
    urn = f"urn:pulumi:lab::kai-fleet::kai-fleet:index:{types}::{name}"
    assert key_of(urn, settings) == f"kai-fleet:{key}"
    assert key_of("urn:pulumi:lab::kai-fleet::a:b:C::own", settings).startswith("urn:")


@pytest.mark.parametrize(("mode", "scheduler"), [("virtual", "KAI"), ("host", "the host's KAI")])
def test_a_version_that_only_the_update_knows_is_left_out(mode, scheduler):
    kai = (Kai(UNKNOWN),)
    team = TeamModel("ml", mode=mode, version=UNKNOWN, inside=ClusterModel("ml", kai=kai))
    ((*_, shown, vcluster, _, _, _),) = of_clusters(
        [ClusterModel("host", teams=(team,), kai=kai)]
    ).teams
    assert (shown, vcluster) == (scheduler, "-")


def test_a_plan_says_what_high_availability_takes(stack_file):
    """As information, not as a warning: the exit code and the counts are those of a fine plan."""
    high = GOOD.replace("gpus: 2\n", "gpus: 2\n      vcluster: {availability: high, size: 20Gi}\n")
    ran = plan("--config", stack_file(high))
    assert ran.exit_code == 0, ran.output
    assert (
        "vCluster ml: 3 control planes that request 200m CPU and 256Mi each, and 3 etcd members"
        " that request 20m CPU and 150Mi, with a volume of 20Gi each"
    ) in " ".join(ran.output.split())
    assert "0 problems, 0 warnings" in ran.output
    assert "control planes" not in plan("--config", stack_file(GOOD)).output
