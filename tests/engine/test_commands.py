"""What a person types: `fleet up` and its neighbours, and plain `pulumi` on the same stacks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import yaml

from fleet.stack_file import ROOT
from tests.engine.product import api, project, queues

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def fleet(sandbox):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "fleet", *arguments],
            cwd=ROOT,
            env={**os.environ, "KAI_FLEET_SANDBOX": str(sandbox.directory), "COLUMNS": "120"},
            capture_output=True,
            text=True,
            check=False,
        )

    yield run
    run("destroy", "--stack", "sandbox")


@pytest.fixture(scope="module")
def first(fleet):
    before = (ROOT / "Pulumi.sandbox.yaml").read_text()
    ran = fleet("up", "--stack", "sandbox")
    assert (ROOT / "Pulumi.sandbox.yaml").read_text() == before, "the stack file stays as it was"
    return ran


def test_up_ends_with_a_table_and_what_to_try_next(first):
    assert first.returncode == 0, first.stdout + first.stderr
    table = first.stdout[first.stdout.index("Stack sandbox") :]
    assert "KAI v0.9.3" in table
    assert "KAI v0.7.11" in table
    assert "https://127.0.0.1:" in table
    assert "Stand-in: nodes, GPUs and pods are simulated by KWOK" in table
    assert "fleet kubeconfig ml --stack sandbox" in table


def test_a_second_up_changes_nothing_and_says_so(first, fleet):
    second = fleet("up", "--stack", "sandbox")
    assert second.returncode == 0, second.stdout + second.stderr
    assert "Nothing changed: " in second.stdout


def test_a_preview_of_no_change_says_so(first, fleet):
    assert "Nothing would change." in fleet("preview", "--stack", "sandbox").stdout


def test_the_kubeconfig_of_a_team_works(first, fleet):
    found = fleet("kubeconfig", "ml", "--stack", "sandbox")
    assert set(queues(api(found.stdout))) == {"default", "train", "serve"}


def test_a_team_that_is_not_there_names_those_that_are(first, fleet):
    found = fleet("kubeconfig", "nosuch", "--stack", "sandbox")
    assert found.returncode == 1
    assert "its teams: dev, ml, research" in found.stderr
    assert "Traceback" not in found.stderr


def test_the_sandbox_takes_one_stack_at_a_time(first, fleet):
    refused = fleet("up", "--stack", "sandbox-host")
    assert refused.returncode == 1
    assert "the sandbox runs stack sandbox" in refused.stderr
    assert "make down" in refused.stderr


def test_plain_pulumi_previews_prod_with_the_policy_pack(sandbox, tmp_path):
    directory = project(tmp_path / "project")
    environment = {**os.environ, **sandbox.env()}
    environment["PATH"] = os.pathsep.join([environment["PATH"], str(ROOT / ".venv" / "bin")])

    def pulumi(*arguments):
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive"],
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    assert pulumi("stack", "init", "prod").returncode == 0
    shown = pulumi("preview", "--stack", "prod", "--policy-pack", "policies")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "to create" in shown.stdout
    assert "[mandatory]" not in shown.stdout

    file = directory / "Pulumi.prod.yaml"
    document = yaml.safe_load(file.read_text())
    document["config"]["kai-fleet:teams"]["ml"]["queues"]["ml"]["gpu"]["quota"] = 99
    file.write_text(yaml.safe_dump(document))
    refused = pulumi("preview", "--stack", "prod", "--policy-pack", "policies")
    assert refused.returncode != 0
    said = refused.stdout + refused.stderr
    assert "kai-fleet:teams.ml.queues" in said
    assert "[queue-quota]" in said
    assert "Traceback" not in said
