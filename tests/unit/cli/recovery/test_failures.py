"""What the engine's errors become: a sentence with the cause and what repairs it."""

import re
import subprocess

import pytest
from pulumi.automation import CommandResult, errors

from kai_fleet_cli.recovery import failures
from kai_fleet_cli.recovery.failures import Run

pytestmark = pytest.mark.texts("failures")

LOCK = (
    "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to"
    " end or delete the lock file with `pulumi cancel`.\n  file:///state/x.json: created by"
    " ann@build-3 (pid 530) at 2026-11-21T15:22:18Z"
)
AGAIN = ".venv/bin/fleet up --refresh --stack dev"
DONE = ", then run the same command again"


def failed(stdout="", stderr="", code=255):
    return errors.create_command_error(CommandResult(stdout=stdout, stderr=stderr, code=code))


def explained(what="the update", environment=None, again=AGAIN, errors=None, **printed):
    run = Run("dev", again, environment or {})
    return failures.explain(what, run, failed(**printed), errors)


WITHOUT_PASSPHRASE = (
    'error: could not deserialize deployment: constructing secrets manager of type "passphrase":'
    " constructing secrets manager: "
)
PRINTED = {
    "full etcd": "etcdserver: mvcc: database space exceeded",
    "full disk": "write /state/x.json: no space left on device",
    "no login": "error: PULUMI_ACCESS_TOKEN must be set for login during non-inter",
    "stream error": "Get x: stream error: stream ID 3; INTERNAL_ERROR; received from peer",
    "no answer in time": "the API does not answer: it does not answer in time",
    "no connection": "the API does not answer: it cannot be connected to: x",
    "no response in time": "unable to return a response in the time allotted",
    "read timeout": "is unreachable: Read timed out. (read timeout=60.0)",
    "server error": "cannot be read: the API answers 500 Internal Server Error",
    "etcd away": "from server: rpc error: code = Unavailable desc = closing",
    "plugin ended": "code = Unavailable desc = error reading from server: EOF",
    "already there": 'namespaces "team-a" already exists',
    "webhook": 'failed calling webhook "queue": connect: connection refused',
    "connection refused": "dial tcp 127.0.0.1:6443: connect: connection refused",
    "plugin exited": "x exited prematurely. dial tcp: connection refused",
    "digest": 'failed to perform "Push" on destination: mismatched digest',
    "chart server": "failed to fetch https://x/index.yaml : 500 Internal Server Error",
    "long argument": "fork/exec /x/pulumi-resource-y: argument list too long",
    "release gone": "error: uninstall: Release not loaded: ml: release: not found",
    "plugin missing": "install resource plugin 'pulumi-resource-a' at version v4.1.0, x",
    "namespace gone": 'error: RoleBinding ml-rights: namespaces "team-ml" not found',
    "namespace of others gone": 'error: x: namespaces "ml" not found',
    "unknown": "something new",
    "gone dependency": (
        "error: snapshot integrity failure: resource urn:pulumi:dev::kai-fleet::x::ml-kai-release's"
        " dependency urn:pulumi:dev::kai-fleet::x::ml-kai-cluster-policy refers to missing resource"
    ),
    "cut checkpoint": "error: failed to load checkpoint: unexpected end of JSON input",
    "wrong passphrase": f"{WITHOUT_PASSPHRASE}incorrect passphrase",
    "no passphrase": f"{WITHOUT_PASSPHRASE}passphrase must be set with PULUMI_CONFIG_PASSPHRASE",
    "one mistake": "error: the stack's configuration has 1 mistake:\n      a: b\n\n    Duration",
    "two mistakes": "error: the stack's configuration has 2 mistakes:\n      a: b\n      c: d\n",
    "of the program": "error: team ml is declared twice",
    "unhandled": (
        "error: an unhandled error occurred: Exception calling application: team ml is declared"
        " twice"
    ),
    "control characters": "error: resource x: the server says \x1b[2J\x9b1mno\u202e",
}
REFRESHED = ("release gone", "namespace gone", "plugin ended", "plugin exited")


@pytest.mark.parametrize("case", PRINTED)
def test_explain_says_what_to_do(case, texts, monkeypatch):
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    reported = explained(stderr=PRINTED[case])
    assert reported.startswith("the update failed") and reported.isprintable()
    assert ("--refresh" in reported) == (case in REFRESHED)
    texts(reported)


@pytest.mark.parametrize(
    "printed",
    [
        {"code": -9},
        {"code": 137, "stderr": "error reading from server: EOF"},
        {"stderr": LOCK},
        {"stderr": "error: [409] Conflict: Another update is currently in progress."},
    ],
    ids=["killed", "killed plugin", "lock", "conflict"],
)
def test_explain_after_a_kill_takes_the_lock_off_and_refreshes(printed, texts):
    reported = explained(**printed)
    assert reported.endswith(f"run: pulumi cancel --yes --stack dev && {AGAIN}")
    texts(reported)


def test_explain_after_a_plugin_was_killed_refreshes_first():
    assert explained(stderr="error: plugin exited: EOF").endswith(f"run: {AGAIN}")


def test_explain_names_the_error_and_not_what_a_wait_printed_before():
    waited = "vCluster ml: waiting for its API: connection refused (5 s)"
    conflict = "Apply failed with 1 conflict: conflict with kubectl: .spec.matchConstraints"
    errors = {"a": f"{conflict}\n", "": "update failed\n"}
    reported = explained(stdout=waited, stderr="error: update failed", errors=errors)
    assert reported == f"the update failed: {conflict}"


@pytest.mark.parametrize(
    ("reason", "before", "after"),
    [
        ("unexpected end of JSON input", {"dev.json": "{", "dev.json.bak": "x"}, {"dev.json": "x"}),
        ("EOF", {"a.attrs": "", "b.attrs": "{}", "a.json": ""}, {"b.attrs": "{}", "a.json": ""}),
    ],
)
def test_explain_the_command_for_a_cut_checkpoint_mends_it(tmp_path, reason, before, after):
    stacks = tmp_path / ".pulumi/stacks/kai-fleet"
    stacks.mkdir(parents=True)
    for name, text in before.items():
        (stacks / name).write_text(text)
    stderr = f"error: failed to load checkpoint: {reason}"
    backend = {"PULUMI_BACKEND_URL": f"file://{tmp_path}?no_tmp_dir=false"}
    message = explained(stderr=stderr, environment=backend)
    command = message.partition("Repair it with: ")[2].removesuffix(DONE)
    subprocess.run(command, shell=True, check=True)
    left = {file.name: file.read_text() for file in stacks.iterdir() if file.suffix != ".bak"}
    assert left == after


ROWS = [(part, row) for part, rows in failures.table().items() for row in rows]


def printed_by(row, *, refreshed):
    """What a row says, with the names of its placeholders in place of their values."""
    fill = {name: f"<{name}>" for name in re.findall(r"\{(\w+)\}", str(row))}
    return row.sentence({**fill, "again": AGAIN, "cancel": "pulumi cancel"}, refreshed=refreshed)


@pytest.mark.parametrize(("part", "row"), ROWS, ids=lambda value: str(value)[:60])
def test_row_after_a_refresh_is_not_sent_to_refresh_again(part, row):
    """What only refreshes has done all that it can."""
    if "wait for it" in row.do:
        return  # what is cancelled is another run's, and then no lock is in the way
    first, second = (printed_by(row, refreshed=each) for each in (False, True))
    repair = re.split("Repair it with: |run: ", second)[-1]
    assert not repair.removeprefix("pulumi cancel && ").startswith(AGAIN), second
    if first != second:
        assert AGAIN in first
        assert "same command again" in second


@pytest.mark.parametrize(("part", "row"), ROWS, ids=lambda value: str(value)[:60])
def test_row_removes_no_team_and_no_volume(part, row):
    said = " ".join([row.run, row.do, row.run_kai, row.refreshed, row.anew, *row.commands])
    assert not re.search("team remove|delete (pvc|pv|statefulset)|helm.* uninstall|give_up", said)
    for space in re.findall(r"delete namespace (\S+)", said):
        assert space == "kai-scheduler", "an update makes it again, and queues and pods stay"


@pytest.mark.parametrize(("part", "row"), ROWS, ids=lambda value: str(value)[:60])
def test_row_has_its_commands_beside_it(part, row):
    texts = " ".join([row.do, row.refreshed, row.anew])
    assert {*re.findall(r"\{(\d)\}", texts)} == {str(number) for number in range(len(row.commands))}
    assert not re.search(r"\{(again|cancel|login)\}|\b(kubectl|helm|pulumi) (-|[a-z]+ -)", texts)


@pytest.mark.parametrize(("part", "row"), ROWS, ids=lambda value: str(value)[:60])
def test_row_that_makes_kai_anew_says_what_a_second_run_says(part, row):
    assert ("delete namespace kai-scheduler" in row.run + row.run_kai) == bool(row.anew)


@pytest.mark.parametrize(
    "message",
    [
        'namespaces "team-ml" not found',
        "uninstall: Release not loaded: ml: release: not found",
        "plugin exited: EOF",
        "failed to read resource state due to unreachable cluster",
    ],
)
def test_explain_a_second_refresh_says_what_is_left(message):
    why = failed(stderr=f"error: {message}")
    assert AGAIN in failures.explain("the update", Run("dev", AGAIN), why)
    second = failures.explain("the update", Run("dev", AGAIN, refreshed=True), why)
    assert "--refresh" not in second
    assert second.endswith("run the same command again")


KAI = {"type": "kubernetes:helm.sh/v3:Release"}
KAI |= {"inputs": {"name": "kai-scheduler", "namespace": "kai-scheduler"}}


@pytest.mark.parametrize(
    "message",
    [
        'failed pre-upgrade: 1 error occurred:\n\t* jobs.batch "crd-upgrader" already exists',
        "another operation (install/upgrade/rollback) is in progress",
    ],
    ids=["job", "operation"],
)
def test_explain_hooks_of_a_killed_release_go_with_its_record(message, texts):
    errors = {"urn": f"Helm Release kai-scheduler/kai-scheduler: {message}"}
    why = failed(stderr="error: update failed")
    reported = failures.explain("the update", Run("dev", AGAIN), why, errors, {"urn": KAI})
    assert "kubectl -n kai-scheduler delete secret -l owner=helm,name=kai-scheduler" in reported
    assert reported.endswith(f" && {AGAIN}{DONE}")
    of_no_release = failures.explain("the update", Run("dev", AGAIN), why, errors)
    assert "delete" not in of_no_release
    texts(reported, of_no_release)
