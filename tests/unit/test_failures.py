"""What the engine's errors become: a sentence with the cause and what repairs it."""

import re
import subprocess

import pytest
from pulumi.automation import CommandResult, errors

from kai_fleet_cli.recovery import failures

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
    return failures.explain(what, "dev", failed(**printed), environment or {}, again, errors)


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("etcdserver: mvcc: database space exceeded", "alarm disarm"),
        ("write /state/x.json: no space left on device", "a disk is full"),
        (
            "error: PULUMI_ACCESS_TOKEN must be set for login during non-inter",
            "context: kai-fleet-sandbox at",
        ),
        ("Get x: stream error: stream ID 3; INTERNAL_ERROR; received from peer", "the etcd behind"),
        ("the API does not answer: it does not answer in time", "the etcd behind it is away"),
        ("the API does not answer: it cannot be connected to: x", "see that kubectl reaches it"),
        ("unable to return a response in the time allotted", "the etcd behind it is away"),
        ("is unreachable: Read timed out. (read timeout=60.0)", "the etcd behind it is away"),
        ("cannot be read: the API answers 500 Internal Server Error", "the etcd behind it is away"),
        ("from server: rpc error: code = Unavailable desc = closing", "the etcd behind it is away"),
        ("code = Unavailable desc = error reading from server: EOF", "a provider plugin ended"),
        ('namespaces "team-a" already exists', "leave it to its owner"),
        ('failed calling webhook "queue": connect: connection refused', "kai-scheduler get pods"),
        ("dial tcp 127.0.0.1:6443: connect: connection refused", "API server does not answer"),
        ("x exited prematurely. dial tcp: connection refused", "a provider plugin ended"),
        ('failed to perform "Push" on destination: mismatched digest', "other content for that"),
        ("failed to fetch https://x/index.yaml : 500 Internal Server Error", "KAI_FLEET_CHARTS"),
        ("fork/exec /x/pulumi-resource-y: argument list too long", "at most 128 KiB"),
        ("error: uninstall: Release not loaded: ml: release: not found", AGAIN + DONE),
        (
            "install resource plugin 'pulumi-resource-a' at version v4.1.0, x",
            "install resource a v4.1.0",
        ),
        ('error: RoleBinding ml-rights: namespaces "team-ml" not found', AGAIN + DONE),
    ],
)
def test_a_known_error_says_what_to_do(printed, words):
    reported = explained(stdout=printed)
    assert reported.startswith("the update failed: ")
    assert words in reported


def test_a_namespace_that_no_stack_of_ours_made_is_not_repaired():
    assert "--refresh" not in explained(stdout='error: x: namespaces "ml" not found')


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ({"code": -9}, "exit code -9"),
        ({"code": 137, "stderr": "error reading from server: EOF"}, "exit code 137"),
        ({"stderr": LOCK}, "process 530 of ann on build-3, since 2026-11-21T15:22:18"),
        ({"stderr": "error: [409] Conflict: Another update is currently in progress."}, "the lock"),
    ],
)
def test_after_a_kill_the_lock_is_taken_off_and_the_state_refreshed(printed, words):
    reported = explained(**printed)
    assert words in reported.replace("the stack's lock", "the lock")
    assert reported.endswith(f"run: pulumi cancel --yes --stack dev && {AGAIN}")


def test_after_a_plugin_was_killed_the_first_command_is_the_one_that_works():
    assert explained(stderr="error: plugin exited: EOF").endswith(f"run: {AGAIN}")


def test_the_error_is_named_and_not_what_a_wait_printed_before():
    waited = "vCluster ml: waiting for its API: connection refused (5 s)"
    conflict = "Apply failed with 1 conflict: conflict with kubectl: .spec.matchConstraints"
    errors = {"a": f"{conflict}\n", "": "update failed\n"}
    reported = explained(stdout=waited, stderr="error: update failed", errors=errors)
    assert reported == f"the update failed: {conflict}"


def test_an_unknown_error_points_at_the_engines_own_words():
    reported = explained(stdout="something new")
    assert reported == "the update failed; the lines above say where and why"


@pytest.mark.parametrize(
    "lead",
    ["", "an unhandled error occurred: Exception calling application: "],
)
def test_what_the_program_says_is_said_as_it_says_it(lead):
    reported = explained("the preview", stderr=f"error: {lead}team ml is declared twice")
    assert reported == "the preview failed: team ml is declared twice"


def test_one_mistake_in_a_stack_file_is_named_at_the_end():
    printed = "error: the stack's configuration has {}:\n      teams.ml: is gone{}\n\n    Duration"
    ends = [
        explained(stderr=printed.format(*each))
        for each in (("1 mistake", ""), ("2 mistakes", "\n      b: c"))
    ]
    assert ends == [
        "the update failed: the stack's configuration has 1 mistake: teams.ml: is gone",
        "the update failed; the lines above say where and why",
    ]


@pytest.mark.parametrize(
    "why", ["incorrect passphrase", "passphrase must be set with PULUMI_CONFIG_PASSPHRASE"]
)
def test_a_state_without_its_passphrase_is_not_replaced(why):
    manager = 'constructing secrets manager of type "passphrase": constructing secrets manager'
    reported = explained(stderr=f"error: could not deserialize deployment: {manager}: {why}")
    assert "the secrets of stack dev cannot be read" in reported
    assert reported.endswith(why)


def test_what_a_clusters_api_server_says_commands_no_terminal():
    reported = explained(stderr="error: resource x: the server says \x1b[2J\x9b1mno\u202e")
    assert reported == "the update failed: resource x: the server says [2J1mno"


@pytest.mark.parametrize(
    ("reason", "before", "after"),
    [
        ("unexpected end of JSON input", {"dev.json": "{", "dev.json.bak": "x"}, {"dev.json": "x"}),
        ("EOF", {"a.attrs": "", "b.attrs": "{}", "a.json": ""}, {"b.attrs": "{}", "a.json": ""}),
    ],
)
def test_the_command_for_a_checkpoint_that_a_kill_cut_mends_it(tmp_path, reason, before, after):
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


def test_elsewhere_an_older_version_is_imported(monkeypatch):
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    reported = explained(stderr="error: failed to load checkpoint: unexpected end of JSON input")
    assert "pulumi stack export --stack dev --version <number> | pulumi stack import" in reported


ROWS = [(part, row) for part, rows in failures.table().items() for row in rows]


def printed_by(row, *, refreshed):
    """What a row says, with the names of its placeholders in place of their values."""
    fill = {name: f"<{name}>" for name in re.findall(r"\{(\w+)\}", str(row))}
    return row.sentence({**fill, "again": AGAIN, "cancel": "pulumi cancel"}, refreshed=refreshed)


@pytest.mark.parametrize(("part", "row"), ROWS, ids=lambda value: str(value)[:60])
def test_a_run_that_refreshed_is_not_sent_to_refresh_again(part, row):
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
def test_no_row_removes_a_team_or_a_volume(part, row):
    said = " ".join([row.run, row.do, row.run_kai, row.refreshed, row.anew, *row.commands])
    assert not re.search("team remove|delete (pvc|pv|statefulset)|helm.* uninstall|give_up", said)
    for space in re.findall(r"delete namespace (\S+)", said):
        assert space == "kai-scheduler", "an update makes it again, and queues and pods stay"


@pytest.mark.parametrize(("part", "row"), ROWS, ids=lambda value: str(value)[:60])
def test_a_text_has_its_commands_beside_it(part, row):
    texts = " ".join([row.do, row.refreshed, row.anew])
    assert {*re.findall(r"\{(\d)\}", texts)} == {str(number) for number in range(len(row.commands))}
    assert not re.search(r"\{(again|cancel|login)\}|\b(kubectl|helm|pulumi) (-|[a-z]+ -)", texts)


@pytest.mark.parametrize(("part", "row"), ROWS, ids=lambda value: str(value)[:60])
def test_what_makes_kai_anew_says_what_a_run_says_that_made_it(part, row):
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
def test_a_second_refresh_says_what_is_left(message):
    why, about = failed(stderr=f"error: {message}"), ({}, AGAIN)
    assert AGAIN in failures.explain("the update", "dev", why, *about)
    second = failures.explain("the update", "dev", why, *about, refreshed=True)
    assert "--refresh" not in second
    assert second.endswith("run the same command again")


KAI = {"type": "kubernetes:helm.sh/v3:Release"}
KAI |= {"inputs": {"name": "kai-scheduler", "namespace": "kai-scheduler"}}


@pytest.mark.parametrize(
    ("message", "command"),
    [
        (
            'failed pre-upgrade: 1 error occurred:\n\t* jobs.batch "crd-upgrader" already exists',
            "kubectl -n kai-scheduler delete jobs.batch/crd-upgrader && kubectl -n kai-scheduler"
            " delete secret -l owner=helm,name=kai-scheduler",
        ),
        (
            "another operation (install/upgrade/rollback) is in progress",
            "kubectl -n kai-scheduler delete secret -l owner=helm,name=kai-scheduler &&"
            " kubectl -n kai-scheduler delete jobs --all",
        ),
    ],
)
def test_hooks_of_a_killed_release_on_the_host_go_with_its_record(message, command):
    errors = {"urn": f"Helm Release kai-scheduler/kai-scheduler: {message}"}
    why = failed(stderr="error: update failed")
    reported = failures.explain("the update", "dev", why, {}, AGAIN, errors, {"urn": KAI})
    assert f"Repair it with: {command} && {AGAIN}" in reported
    of_no_release = failures.explain("the update", "dev", why, {}, AGAIN, errors)
    assert "delete" not in of_no_release
