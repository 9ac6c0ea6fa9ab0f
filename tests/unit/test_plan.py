"""`python -m fleet plan`, as a shell and a CI job see it."""

import json
import os
import subprocess
import sys
import time

import pytest

from fleet.stack_file import ROOT

STACKS = ["sandbox", "sandbox-host", "sandbox-vision", "dev", "prod"]
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


def plan(*arguments, env=None):
    return subprocess.run(
        [sys.executable, "-m", "fleet", "plan", *arguments],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def as_json(*arguments, env=None):
    ran = plan(*arguments, "--format", "json", env=env)
    return ran.returncode, json.loads(ran.stdout), ran.stderr


@pytest.fixture
def stack_file(tmp_path):
    def write(text):
        path = tmp_path / "Pulumi.lab.yaml"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize("stack", STACKS)
def test_every_stack_of_this_repository_is_fine(stack):
    code, found, errors = as_json("--stack", stack)
    assert (code, found["ok"], errors) == (0, True, "")
    assert found["stack"] == stack
    assert found["resources"]
    for resource in found["resources"]:
        assert set(resource) == {"urn", "type", "name", "parent", "provider", "inputs"}
    for problem in found["problems"]:
        assert set(problem) == {"rule", "level", "subject", "path", "message"}
        assert problem["level"] == "advisory"


def test_a_plan_costs_little_more_than_starting_pulumi():
    """3 s on two cores, of which the SDK's imports are 1 s: compared, as machines differ."""

    def seconds(*command):
        start = time.monotonic()
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        return time.monotonic() - start

    python = sys.executable
    imports = seconds(python, "-c", "import pulumi_kubernetes")
    planned = min(seconds(python, "-m", "fleet", "plan", "--stack", "prod") for _ in range(2))
    assert planned < 8 * imports


def test_the_same_file_gives_the_same_bytes():
    first, second = (plan("--stack", "prod", "--format", "json").stdout for _ in range(2))
    assert first == second


def test_a_file_from_anywhere_is_planned_and_its_secrets_are_not_shown(stack_file):
    code, found, _ = as_json("--stack", "lab", "--config", stack_file(GOOD))
    assert code == 0
    assert "TOP-SECRET" not in json.dumps(found)
    provider = next(r for r in found["resources"] if r["urn"].endswith("kubernetes::host"))
    assert provider["inputs"]["kubeconfig"] == "[secret]"


def test_a_refused_file_exits_1_with_rule_path_and_remedy(stack_file):
    bad = GOOD.replace("v0.16.8", "v0.20.1").replace("quota: 2", "quota: 3")
    code, found, errors = as_json("--stack", "lab", "--config", stack_file(bad))
    assert (code, found["ok"], errors) == (1, False, "")
    refused = {(p["rule"], p["path"]) for p in found["problems"] if p["level"] == "mandatory"}
    assert ("kai-version-known", "kai-fleet:teams.ml.scheduler.version") in refused
    assert ("queue-quota", "kai-fleet:teams.ml.queues") in refused
    assert "v0.16.8" in str(found["problems"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("config: {a: b", "line 1"),
        ("- a\n- b\n", "not a stack file"),
        ("config:\n  kai-fleet:teams: {a: 1}\n  kai-fleet:teams: {b: 1}\n", "line 3"),
        ("config: 3\n", "not a stack file"),
        ("\x00", "not YAML"),
    ],
)
def test_what_cannot_be_read_exits_2_with_one_sentence(stack_file, text, says):
    code, found, errors = as_json("--stack", "lab", "--config", stack_file(text))
    assert (code, found["ok"], errors) == (2, False, "")
    assert says in found["problems"][0]["message"]


def test_an_unknown_stack_names_those_that_there_are():
    ran = plan("--stack", "nosuch")
    assert ran.returncode == 2
    assert "dev, prod, sandbox, sandbox-host" in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr


def test_the_tree_for_people_names_versions_and_quotas():
    ran = plan("--stack", "prod", env={"COLUMNS": "160"})
    assert ran.returncode == 0
    assert "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler v0.16.8" in ran.stdout
    assert "Queue ml-queues-train gpu quota 12, limit unlimited" in ran.stdout
    assert "stack prod: fine" in ran.stdout
    assert "\x1b[" not in ran.stdout, "no colours where this is no terminal"
