"""The workflows: what they may do, what they pin, and what their scripts do when run."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.tools.toolbox import cache_root

FOLDER = ROOT / ".github" / "workflows"
NAMES = sorted(path.name for path in FOLDER.glob("*.yml"))
ACTIONLINT = "1.7.12"
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
STACK = """\
config:
  kai-fleet:cluster: {name: lab, context: lab}
  kai-fleet:teams:
    dev: {scheduler: {mode: default}, gpus: 2}
"""


def text(name):
    return (FOLDER / name).read_text()


def workflow(name):
    """A workflow; YAML reads its key `on` as true."""
    found = yaml.safe_load(text(name))
    return found | {"on": found.pop(True)}


def jobs(name):
    return workflow(name)["jobs"]


def steps(name):
    return [step for job in jobs(name).values() for step in job.get("steps", ())]


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_pinned_by_commit_with_their_version(name):
    used = re.findall(r"uses: (.+)", text(name))
    assert used
    for action in used:
        assert action.startswith("./.github/workflows/") or PINNED.fullmatch(action), action


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_is_stored_and_nothing_foreign_is_pasted_into_a_script(name):
    assert "secrets." not in text(name)
    assert "secrets: inherit" not in text(name)
    assert "pull_request_target" not in text(name)
    for step in steps(name):
        assert "${{" not in step.get("run", "")
        assert "${{" not in step.get("with", {}).get("script", "")
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_permissions_are_the_least():
    def granted(name):
        every = [workflow(name)["permissions"]]
        every += [job["permissions"] for job in jobs(name).values() if "permissions" in job]
        return {(key, value) for item in every for key, value in item.items()}

    read = ("contents", "read")
    assert granted("test.yml") == granted("test-all.yml") == {read}
    assert granted("preview.yml") == {read, ("id-token", "write")}
    assert granted("pulumi.yml") == granted("deploy.yml") == granted("preview.yml")
    comment = granted("preview-comment.yml")
    assert comment == {read, ("actions", "read"), ("pull-requests", "write")}
    assert granted("scorecard.yml") == {read, ("id-token", "write"), ("security-events", "write")}
    # Only the job that runs the engine may be vouched for.
    assert [n for n, j in jobs("preview.yml").items() if "permissions" in j] == ["engine"]


def test_a_pull_requests_code_and_the_right_to_comment_are_never_together():
    assert workflow("preview.yml")["on"] == {"pull_request": None}
    assert workflow("preview-comment.yml")["on"]["workflow_run"]["workflows"] == ["Preview"]
    used = [step.get("uses", "").split("@")[0] for step in steps("preview-comment.yml")]
    assert used == ["actions/download-artifact", "actions/github-script"]


def test_credentials_are_for_branches_of_this_repository_only():
    engine = jobs("preview.yml")["engine"]
    assert "head.repo.full_name == github.repository" in engine["if"]
    assert "vars.PULUMI_ORGANIZATION != ''" in engine["if"]
    assert engine["with"]["command"] == "preview"
    assert engine["with"]["environment"].startswith("preview-")


def test_prod_comes_after_staging_and_in_an_environment_of_its_own():
    deploy = jobs("deploy.yml")
    assert deploy["prod"]["needs"] == "prod-preview"
    assert deploy["prod-preview"]["needs"] == "staging"
    assert [deploy[stack]["with"]["environment"] for stack in ("staging", "prod")] == [
        "staging",
        "prod",
    ]
    assert workflow("deploy.yml")["on"]["push"] == {"branches": ["main"]}
    engine = steps("pulumi.yml")[-1]
    assert engine["uses"].startswith("pulumi/actions@")
    assert engine["with"]["policyPacks"] == ".venv/bin/kai-fleet-policy-pack"


def test_a_preview_never_takes_the_place_of_an_update_that_waits():
    """GitHub keeps one waiting run of a group, and cancels it when another one comes."""
    (job,) = jobs("pulumi.yml").values()
    group = job["concurrency"]["group"]
    assert job["concurrency"]["cancel-in-progress"] is False
    update, preview = re.findall(r"format\('([^']+)'", group)
    assert "inputs.command == 'up' &&" in group
    assert not preview.startswith(update.partition("{")[0])
    assert "github.ref" in group.partition("||")[2]


@pytest.mark.engine  # as slow as the job: it plans every stack twice
def test_changed_stacks_are_found_in_a_real_history(tmp_path):
    """`same` stays, `staging` changes, `new` comes, `gone` goes, and Pulumi.yaml is no stack."""

    def git(*arguments):
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True)

    def commit(stacks):
        for old in tmp_path.glob("Pulumi.*.yaml"):
            old.unlink()
        for name, content in stacks.items():
            (tmp_path / f"Pulumi.{name}.yaml").write_text(content)
        git("add", "--all", ":!.venv")
        git("commit", "--quiet", "--no-verify", "--message", "stacks")

    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("kubectl", "components", "policies", "cli"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "__main__.py", tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: kai-fleet\n")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    git("init", "--quiet")
    commit({"same": STACK, "staging": STACK, "gone": STACK})
    commit({"same": STACK, "staging": STACK.replace("gpus: 2", "gpus: 3"), "new": STACK})

    (step,) = (step for step in steps("preview.yml") if step.get("id") == "changed")
    output = tmp_path / "output"
    subprocess.run(
        ["bash", "-c", step["run"]],
        cwd=tmp_path,
        env={
            **os.environ,
            **step["env"],
            "GITHUB_OUTPUT": str(output),
            "PYTHONPATH": os.pathsep.join(
                str(tmp_path / folder) for folder in ("kubectl", "components", "policies", "cli")
            ),
        },
        check=True,
    )
    found = dict(line.split("=", 1) for line in output.read_text().splitlines())
    assert json.loads(found["changed"]) == ["gone", "new", "staging"]
    assert json.loads(found["deployed"]) == ["staging"]


@pytest.mark.engine  # builds actionlint with Go the first time
def test_actionlint_has_nothing_to_say():
    folder = cache_root() / "tools" / f"actionlint-{ACTIONLINT}"
    tool = folder / "actionlint"
    if not tool.exists():
        go = shutil.which("go")
        if go is None:
            pytest.skip("actionlint is built with Go, which is not on PATH")
        module = f"github.com/rhysd/actionlint/cmd/actionlint@v{ACTIONLINT}"
        built = subprocess.run(
            [go, "install", module],
            env={**os.environ, "GOBIN": str(folder), "GOFLAGS": "-mod=mod"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert built.returncode == 0, built.stderr
    ran = subprocess.run(
        [tool, "-no-color", *(str(FOLDER / name) for name in NAMES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "")
