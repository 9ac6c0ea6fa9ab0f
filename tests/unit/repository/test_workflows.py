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
from kai_fleet_stack.settings.secrets import ciphertexts_of
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


MORE_GPUS = STACK.replace("gpus: 2", "gpus: 3")
CIPHERTEXT = "v1:bm9uY2U=:Y29udGVudA=="


def named_step(job, name):
    (step,) = (each for each in jobs("preview.yml")[job]["steps"] if each.get("name") == name)
    return step


def run(step, folder, **variables):
    """A step of a workflow as GitHub runs it: its exit status, and its outputs."""
    files = {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    (folder / "GITHUB_OUTPUT").write_text("")
    ran = subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, **files, **variables},
        check=False,
    )
    outputs = (folder / "GITHUB_OUTPUT").read_text().splitlines()
    return ran.returncode, dict(line.split("=", 1) for line in outputs)


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
    vouched, reviews = ("id-token", "write"), ("pull-requests", "read")
    assert granted("preview.yml") == {read, vouched, reviews}
    assert granted("pulumi.yml") == granted("deploy.yml") == {read, vouched}
    comment = granted("preview-comment.yml")
    assert comment == {read, ("actions", "read"), ("pull-requests", "write")}
    assert granted("scorecard.yml") == {read, ("id-token", "write"), ("security-events", "write")}
    # Only the job that runs the engine may be vouched for; who asks for approvals runs no code.
    more = {
        name: job["permissions"]
        for name, job in jobs("preview.yml").items()
        if "permissions" in job
    }
    assert more == {"engine": dict([read, vouched]), "owners": dict([reviews])}
    assert not [step for step in jobs("preview.yml")["owners"]["steps"] if "uses" in step]


def test_the_state_is_kept_after_each_update_also_a_failed_one_where_nobody_else_reads_it():
    export, upload = jobs("pulumi.yml")["run"]["steps"][-2:]
    assert export["run"] == 'pulumi stack export --stack "$STACK" --file state.json'
    assert "--show-secrets" not in text("pulumi.yml")
    assert upload["with"]["path"] == "state.json"
    wanted = "inputs.command == 'up' && !cancelled() && github.event.repository.private"
    assert export["if"] == upload["if"] == wanted


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
    engine = steps("pulumi.yml")[-3]
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
    packages = ("usage", "kubectl", "components", "policies", "stack", "cli")
    for name in packages:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "__main__.py", tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: kai-fleet\n")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    git("init", "--quiet")
    sealed = f"{STACK}  other:token: {{secure: {CIPHERTEXT}}}\n"
    moved = f"{STACK}  other:key: {{secure: {CIPHERTEXT}}}\n"
    commit({"same": STACK, "staging": STACK, "gone": STACK, "moved": sealed})
    commit({"same": STACK, "staging": MORE_GPUS, "new": STACK, "moved": moved})
    folders = [str(tmp_path / package) for package in packages]
    python = {"PYTHONPATH": os.pathsep.join(folders)}

    step = named_step("stacks", "Find the stacks that change")
    ended, found = run(step, tmp_path, **step["env"], **python)
    assert ended == 0
    assert json.loads(found["changed"]) == ["gone", "moved", "new", "staging"]
    assert json.loads(found["deployed"]) == ["staging"]
    assert json.loads(found["sealed"]) == ["moved"]

    verdicts = {}
    for stack in json.loads(found["changed"]):
        _, written = run(named_step("diff", "Write the diff"), tmp_path, STACK=stack, **python)
        judge = named_step("diff", "Refuse what the update would refuse")
        verdicts[stack], _ = run(judge, tmp_path, STATUS=written["status"])
        assert (tmp_path / f"{stack}.md").read_text().startswith(f"## Stack {stack}: ")
    assert verdicts == {"gone": 0, "moved": 1, "new": 0, "staging": 0}


@pytest.mark.parametrize("status", ["0", "3", "1", "2", "127", ""])
def test_what_a_diff_refuses_fails(tmp_path, status):
    ended, _ = run(
        named_step("diff", "Refuse what the update would refuse"), tmp_path, STATUS=status
    )
    assert (ended == 0) == (status in ("0", "3"))


@pytest.mark.parametrize(
    ("results", "good"),
    [
        ("success success success", True),
        ("success skipped skipped", True),
        ("success success failure", False),
        ("success failure success", False),
        ("cancelled skipped skipped", False),
    ],
)
def test_one_check_tells_all_to_a_protected_branch(tmp_path, results, good):
    """Names of a matrix cannot be required; a job that is skipped counts as good."""
    verdict = jobs("preview.yml")["verdict"]
    assert verdict["if"] == "always()"
    assert {*verdict["needs"]} == {*jobs("preview.yml")} - {"verdict", "engine"}
    ended, _ = run(named_step("verdict", "Take the jobs together"), tmp_path, RESULTS=results)
    assert (ended == 0) == good


@pytest.mark.parametrize(
    ("reviews", "owners", "good"),
    [
        (["ann APPROVED c1"], "ann", True),
        (["Ann APPROVED c1"], "bob ann", True),
        (["ann CHANGES_REQUESTED c1", "ann APPROVED c1"], "ann", True),
        (["ann APPROVED c1", "ann CHANGES_REQUESTED c1"], "ann", False),
        (["ann DISMISSED c1"], "ann", False),
        (["ann APPROVED c0"], "ann", False),  # of another commit
        (["eve APPROVED c1"], "ann bob", False),
        (["eve-ann APPROVED c1", "annie APPROVED c1"], "ann", False),
        (["ann APPROVED c1"], "", False),
        ([], "ann", False),
    ],
)
def test_secrets_need_the_approval_of_an_owner_of_this_commit(tmp_path, reviews, owners, good):
    """`gh` is GitHub's own; its answer is at hand as it writes it with the step's filter."""
    gh = tmp_path / "gh"
    gh.write_text("#!/bin/sh\ncat <<'END'\n" + "".join(f"{line}\n" for line in reviews) + "END\n")
    gh.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    step = named_step("owners", "Ask for an owner's approval of this commit")
    ended, _ = run(step, tmp_path, PATH=path, COMMIT="c1", OWNERS=owners, REVIEWS="r", STACKS="[]")
    assert (ended == 0) == good


def codeowners(folder, paths):
    """The owners of paths, by the last pattern that fits, as git reads patterns too."""
    rows = [line.split() for line in (ROOT / ".github" / "CODEOWNERS").read_text().splitlines()]
    rows = [row for row in rows if row and not row[0].startswith("#")]
    every, *special = rows  # for git an ignored folder ends the search: * is kept apart
    assert every[0] == "*"
    (folder / ".gitignore").write_text("".join(f"{row[0]}\n" for row in special))
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    asked = ["git", "check-ignore", "--no-index", "--verbose", *paths]
    ran = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=False)
    fitting = (line.partition("\t") for line in ran.stdout.splitlines())
    found = {path: special[int(where.split(":")[1]) - 1][1:] for where, _, path in fitting}
    return {path: tuple(found.get(path, every[1:])) for path in paths}


def test_what_the_platform_decrypts_and_runs_has_the_owner_of_the_workflows(tmp_path):
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = [path for path in tracked.stdout.splitlines() if path.endswith((".yaml", ".yml"))]
    sealed = [path for path in files if ciphertexts_of(ROOT / path)]
    stacks = [path for path in files if path.startswith("Pulumi.")]
    assert stacks
    decides = ["Pulumi.yaml", "Pulumi.not-yet.yaml", "__main__.py", ".github/CODEOWNERS"]
    decides += ["cli/kai_fleet_cli/diff/report.py", "stack/kai_fleet_stack/settings/secrets.py"]
    owners = codeowners(tmp_path, [".github/workflows/preview.yml", *sealed, *stacks, *decides])
    assert len({*owners.values()}) == 1, owners
    assert codeowners(tmp_path, ["README.md"])["README.md"] not in owners.values()


def test_codeowners_names_what_there_is():
    lines = (ROOT / ".github" / "CODEOWNERS").read_text().splitlines()
    paths = [line.split()[0] for line in lines if line.startswith("/")]
    assert len({*paths}) == len(paths)
    assert not [path for path in paths if not (ROOT / path.lstrip("/")).exists()]


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
