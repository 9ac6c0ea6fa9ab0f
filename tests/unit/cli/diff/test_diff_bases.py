"""`fleet diff` over real git history: whatever the base is, and whatever ends the command."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from kai_fleet_cli.diff import report
from kai_fleet_cli.errors import UserError
from tests.unit.golden import history
from tests.unit.golden.history import GOOD, SECRETS, git

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    yield from history.created(
        tmp_path_factory.mktemp("scratch"), tmp_path_factory.mktemp("repository")
    )


def test_the_command_writes_the_diff_and_leaves_nothing_behind(repository):
    repository.file.write_text(GOOD.replace("gpus: 4", "gpus: 8") + SECRETS[1])
    try:
        ran = repository.fleet("diff", "--stack", "lab", "--base", "good", "--format", "json")
    finally:
        git(repository.top, "checkout", "--quiet", "--", ".")
    found = json.loads(ran.stdout)
    assert (ran.returncode, ran.stderr) == (3, "")
    assert found["base"]["commit"] == git(repository.top, "rev-parse", "good")
    assert {item["team"] for item in found["changed"]} == {"ml", "research"}
    assert [item["subject"] for item in found["secret"]] == ["other:token"]
    assert [item["subject"] for item in found["granted"]] == [
        "kai-fleet:teams.ml.gpus",
        "kai-fleet:teams.research.gpus",
    ]
    assert "HIDDEN" not in ran.stdout
    assert repository.is_tidy()


def test_a_label_that_a_pool_loses_is_told_as_granted(repository):
    two = GOOD.replace("{pool: ml}", "{pool: ml, disk: fast}")
    assert two != GOOD
    repository.file.write_text(two)
    repository.commit("two-labels")
    repository.file.write_text(GOOD)
    try:
        ran = repository.fleet("diff", "--stack", "lab", "--base", "two-labels", "--format", "json")
    finally:
        git(repository.top, "reset", "--quiet", "--hard", "HEAD~1")
    (granted,) = json.loads(ran.stdout)["granted"]
    assert (ran.returncode, granted["team"]) == (3, "ml")
    assert granted["subject"] == "kai-fleet:teams.ml.nodePool.disk"


@pytest.mark.parametrize(
    ("tag", "exit_code", "says"),
    [
        ("no-lab", 3, "The stack is new: at no-lab"),
        ("broken", 3, "the rules refuse the stack's file there: the gpu quotas of top add"),
        ("other-packages", 3, "does not run here: ModuleNotFoundError: No module named 'a_pack"),
    ],
)
def test_a_base_without_such_a_plan(repository, tag, exit_code, says):
    found = report.compare("lab", tag, repository.project)
    assert found.exit_code == exit_code
    assert says in found.note
    kinds = {"created"} if tag == "no-lab" else set()
    assert {change.kind for change in found.changes} == kinds
    assert repository.is_tidy()


def test_a_file_of_queues_that_is_a_link_in_a_circle_is_named_as_a_plan_names_it(repository):
    circle = repository.project / "circle.yaml"
    circle.symlink_to(circle)
    kai = "  kai-fleet:kai: {version: v0.16.8}\n"
    repository.file.write_text(f"{GOOD}{kai}  kai-fleet:queues: circle.yaml\n")
    try:
        ran = repository.fleet("diff", "--stack", "lab", "--base", "good", "--format", "json")
    finally:
        circle.unlink()
        git(repository.top, "checkout", "--quiet", "--", ".")
    assert (ran.returncode, ran.stderr) == (1, "")
    (problem,) = json.loads(ran.stdout)["problems"]
    assert problem["path"] == "kai-fleet:queues"
    assert problem["cause"].startswith("names circle.yaml, which cannot be read: ")


def test_a_stack_whose_file_is_gone_is_not_removed_by_that(repository):
    repository.file.unlink()
    try:
        found = report.compare("lab", "good", repository.project)
    finally:
        git(repository.top, "checkout", "--quiet", "--", ".")
    assert found.exit_code == 3
    assert "nothing of the stack is removed by that" in found.note
    assert "destroy --stack lab" in found.note
    assert not found.changes


def test_a_stack_that_never_was_is_unreadable(repository):
    with pytest.raises(UserError, match=r"no Pulumi\.nosuch\.yaml, neither here nor at good"):
        report.compare("nosuch", "good", repository.project)


@pytest.mark.parametrize("ref", ["nosuch", "--help"])
def test_what_is_no_commit_is_said_in_one_sentence(repository, tmp_path, ref):
    for root, why in ((repository.project, "fatal: Needed a single"), (tmp_path, "not a git repo")):
        with pytest.raises(UserError, match=f"no branch, tag or commit .*{why}"):
            report.compare("lab", ref, root)


def test_a_cancelled_job_leaves_no_files(repository):
    command = [sys.executable, "-m", "kai_fleet_cli", "diff", "--stack", "lab", "--base", "waits"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = subprocess.Popen(
        command,
        cwd=repository.project,
        env=repository.environment,
        start_new_session=True,
        **quiet,
    )
    waited = time.monotonic() + 60
    try:
        # Not at its first moment, when nobody knows the folder yet.
        while not any(
            (each / "project/Pulumi.lab.yaml").exists() for each in repository.unpacked()
        ):
            assert running.poll() is None and time.monotonic() < waited
            time.sleep(0.01)
        os.killpg(running.pid, signal.SIGTERM)  # as a terminal or a CI runner does: to all of them
        assert running.wait(30) in (128 + signal.SIGTERM, 1)
    finally:
        running.kill()  # its folder would be in the next test's way
        running.wait()
    assert repository.is_tidy()
