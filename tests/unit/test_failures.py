"""What the engine's errors become: a sentence that says what happened and what to do."""

import json
import os
import re
import shutil
import socket
import subprocess

import pytest
from pulumi.automation import CommandResult, errors

from kai_fleet_cli.recovery import failures, file_backend
from kai_fleet_cli.stack_file.reading import ROOT
from tests.unit.tool_scripts import script

LOCK = (
    "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to"
    " end or delete the lock file with `pulumi cancel`.\n  file:///state/x.json: created by"
    " ann@{host} (pid {pid}) at 2026-11-21T15:22:18Z"
)


def failed(stdout="", stderr="", code=255):
    return errors.create_command_error(CommandResult(stdout=stdout, stderr=stderr, code=code))


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("etcdserver: mvcc: database space exceeded", "alarm disarm"),
        ("write /state/x.json: no space left on device", "a disk is full"),
        ("Get x: stream error: stream ID 3; INTERNAL_ERROR; received from peer", "the etcd behind"),
        ("rpc error: etcdserver: request timed out", "the etcd behind it is away"),
        ("the API does not answer: it does not answer in time", "the etcd behind it is away"),
        ("the API does not answer: it cannot be connected to: x", "see that kubectl reaches it"),
        ("unable to return a response in the time allotted", "the etcd behind it is away"),
        (
            "cannot be read: the API does not answer (ReadTimeoutError)",
            "the etcd behind it is away",
        ),
        ("is unreachable: Read timed out. (read timeout=60.0)", "the etcd behind it is away"),
        ("cannot be read: the API answers 500 Internal Server Error", "the etcd behind it is away"),
        (
            "Error from server: rpc error: code = Unavailable desc = transport is closing",
            "the etcd behind it is away",
        ),
        (
            "error: rpc error: code = Unavailable desc = error reading from server: EOF",
            "a provider plugin ended",
        ),
        ('namespaces "team-a" already exists', "Leave it to its owner"),
        ('failed calling webhook "queue": connect: connection refused', "kai-scheduler get pods"),
        ("dial tcp 127.0.0.1:6443: connect: connection refused", "API server does not answer"),
        ("x exited prematurely. dial tcp: connection refused", "a provider plugin ended"),
        ('failed to perform "Push" on destination: mismatched digest', "other content for that"),
        ("failed to fetch https://x/index.yaml : 500 Internal Server Error", "KAI_FLEET_CHARTS"),
        ("fork/exec /x/pulumi-resource-y: argument list too long", "at most 128 KiB"),
        (
            "provider urn:x::default_1_3_0::y for resource urn:z has not been registered yet, this"
            " is due to a change of providers mixed with --target. Change your program back",
            "update the whole stack first",
        ),
    ],
)
def test_a_known_error_says_what_to_do(printed, words):
    said = failures.explain("the update", "dev", failed(stdout=printed))
    assert said.startswith("the update failed; the lines above say where. In short: ")
    assert words in said


def test_a_plugin_that_cannot_be_downloaded_is_installed_by_the_cli_that_runs(machine):
    printed = (
        "error: kubernetes host: Could not automatically download and install resource plugin"
        " 'pulumi-resource-kubernetes' at version v4.34.2, install the plugin using `pulumi plugin"
        " install resource kubernetes v4.34.2`: error downloading: failed to fetch x"
    )
    command = "pulumi plugin install resource kubernetes v4.34.2 "
    cli = script(machine / "cache/tools/pulumi-3.274.1/pulumi", "echo v3.274.1")
    said = failures.explain("the update", "dev", failed(stdout=printed))
    assert f"Install it: {cli.parent}/{command}" in said
    script(machine / "bin/pulumi", "echo v3.274.1")
    said = failures.explain("the update", "dev", failed(stdout=printed))
    assert f"Install it: {command}" in said


def test_an_unknown_error_points_at_the_engines_own_words():
    said = failures.explain("the update", "dev", failed(stdout="something new"))
    assert said == "the update failed; the lines above say where and why"


@pytest.mark.parametrize(
    "lead",
    [
        "",
        "an unhandled error occurred: ",
        "Exception calling application: ",
        "an unhandled error occurred: Exception calling application: ",
    ],
)
def test_what_the_program_says_is_said_as_it_says_it(lead):
    stderr = f"error: {lead}Secret vc-ml of namespace team-ml is not there"
    said = failures.explain("the preview", "dev", failed(stderr=stderr))
    assert said == "the preview failed: Secret vc-ml of namespace team-ml is not there"


def test_a_killed_engine():
    said = failures.explain("the update", "dev", failed(code=-9))
    assert "signal 9" in said
    assert "Take its lock off: pulumi cancel --yes --stack dev, then" in said


def test_attributes_that_a_kill_left_empty_are_named(backend, monkeypatch):
    file, environment = backend
    monkeypatch.setenv("PULUMI_BACKEND_URL", environment["PULUMI_BACKEND_URL"])
    stderr = "error: failed to load checkpoint: EOF"
    assert "pulumi stack import --stack dev" in failures.explain(
        "the update", "dev", failed(stderr=stderr)
    )
    cut = [file.with_name("dev.json.attrs"), file.with_name("platform.json.attrs")]
    for each in cut:
        each.touch()
    file.with_name("dev.json.bak.attrs").write_text("{}")
    said = failures.explain("the update", "dev", failed(stderr=stderr))
    assert "the state of stack dev is whole" in said
    (named,) = re.findall(r"Remove them: rm (.*), then run the same command again", said)
    assert sorted(named.split()) == sorted(map(str, cut))
    assert all(each.exists() for each in cut)


def test_a_release_that_somebody_uninstalled_names_the_one_command():
    printed = "error: uninstall: Release not loaded: ml: release: not found"
    said = failures.explain("the update", "dev", failed(stdout=printed))
    assert said.endswith(".venv/bin/fleet up --refresh --stack dev")
    said = failures.explain("the removal", "dev", failed(stdout=printed))
    assert said.endswith(".venv/bin/fleet destroy --refresh --yes --stack dev"), "no terminal"


def test_a_namespace_that_went_with_a_removal_that_was_cut_off_names_the_one_command():
    printed = 'error: RoleBinding ml-account-rights: namespaces "team-ml" not found'
    said = failures.explain("the update", "dev", failed(stdout=printed))
    assert said.endswith(".venv/bin/fleet up --refresh --stack dev")
    others = failures.explain("the update", "dev", failed(stdout=printed.replace("team-", "")))
    assert "--refresh" not in others, "one that no stack of ours made"


def test_a_state_that_cannot_be_read():
    stderr = "error: failed to load checkpoint: unexpected end of JSON input"
    said = failures.explain("the update", "dev", failed(stderr=stderr))
    assert "cut short" in said
    assert "pulumi stack export --stack dev --version <number> | pulumi stack import" in said


@pytest.mark.parametrize(
    "why", ["incorrect passphrase", "passphrase must be set with PULUMI_CONFIG_PASSPHRASE"]
)
def test_a_state_without_its_passphrase_is_not_replaced(why):
    manager = 'constructing secrets manager of type "passphrase": constructing secrets manager'
    stderr = f"error: could not deserialize deployment: {manager}: {why}"
    said = failures.explain("the removal", "dev", failed(stderr=stderr))
    assert said.startswith("the secrets of stack dev cannot be read")
    assert said.endswith(why)
    assert "import" not in said


@pytest.mark.parametrize(
    ("host", "pid", "words"),
    [
        (socket.gethostname(), 2**22 + 1, "that process was killed. Take the lock off"),
        ("elsewhere", 1, "Wait for it; if it was killed, run: "),
    ],
)
def test_a_lock_names_who_has_it(host, pid, words):
    said = failures.explain("the update", "dev", failed(stderr=LOCK.format(host=host, pid=pid)))
    assert f"process {pid} of ann on {host}" in said
    assert words in said


def test_a_lock_that_is_gone_by_now_was_no_killed_one(backend, monkeypatch):
    """Of two updates at once the first may end while the second one reads who held the lock."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend[1]["PULUMI_BACKEND_URL"])
    refused = failed(stderr=LOCK.format(host=socket.gethostname(), pid=2**22 + 1))
    said = failures.explain("the update", "dev", refused)
    assert (
        said == "the update did not start: another one has just ended. Run the same command again"
    )


def test_what_a_clusters_api_server_says_commands_no_terminal():
    why = failed(stderr="error: resource x: the server says \x1b[2J\x9b1mno\u202e")
    told = failures.explain("the update", "dev", why)
    assert told == "the update failed: resource x: the server says [2J1mno"


@pytest.fixture
def backend(tmp_path):
    """A file backend with a stack's state, the version before it, and two older ones."""
    base = tmp_path / ".pulumi"
    file = base / "stacks/kai-fleet/dev.json"
    history = base / "history/kai-fleet/dev"
    for folder in (file.parent, history):
        folder.mkdir(parents=True)

    def write(path, count):
        latest = {"resources": [{}] * count}
        path.write_text(json.dumps({"version": 3, "checkpoint": {"latest": latest}}))

    write(file, 4)
    write(file.with_name("dev.json.bak"), 3)
    for age, count in ((100, 2), (200, 1)):
        path = history / f"dev-{age}.checkpoint.json"
        write(path, count)
        os.utime(path, (1e9 - age, 1e9 - age))
    return file, {"PULUMI_BACKEND_URL": f"file://{tmp_path}"}


def imported(backend):
    """What the printed command hands to `pulumi stack import`."""
    _, environment = backend
    made, separator, rest = file_backend.put_back("dev", environment).partition(" | pulumi ")
    assert rest == "stack import --stack dev", separator
    printed = subprocess.run(made, shell=True, capture_output=True, check=True)
    return json.loads(printed.stdout)


def test_the_version_before_is_put_back_and_nothing_is_written(backend):
    file, _ = backend
    file.write_text(file.read_text()[:30])
    before = {path: path.read_text() for path in file.parents[2].rglob("*") if path.is_file()}
    assert imported(backend) == {"version": 3, "deployment": {"resources": [{}] * 3}}
    assert before == {
        path: path.read_text() for path in file.parents[2].rglob("*") if path.is_file()
    }


def test_the_newest_readable_one_is_taken(backend):
    file, _ = backend
    file.unlink()
    file.with_name("dev.json.bak").write_text("")
    assert len(imported(backend)["deployment"]["resources"]) == 2


def test_a_version_that_an_import_wrote_is_readable(backend):
    copy = backend[0].with_name("dev.json.bak")
    latest = {"Stack": "dev", "Latest": {"resources": [{}] * 9}}
    copy.write_text(json.dumps({"version": 3, "checkpoint": latest}))
    assert len(imported(backend)["deployment"]["resources"]) == 9


@pytest.mark.parametrize("beyond", ["", "?no_tmp_dir=false"])
def test_the_folder_is_that_of_the_engine(beyond):
    of = {"PULUMI_BACKEND_URL": f"file://states{beyond}"}
    assert file_backend.folder(of) == ROOT / "states" / ".pulumi"


def test_without_a_copy_a_backup_is_imported(backend):
    file, environment = backend
    for path in file.parents[2].rglob("*.json*"):
        path.write_text("")
    assert file_backend.put_back("dev", environment).startswith(
        "pulumi stack import --stack dev --file <backup>"
    )


def test_a_lock_of_somebody_else_is_read(backend):
    file, environment = backend
    lock = file.parents[2] / "locks/organization/kai-fleet/dev/1.json"
    lock.parent.mkdir(parents=True)
    holder = {"pid": 1, "username": "ann", "hostname": "elsewhere", "timestamp": "2026-11-21T15:22"}
    lock.write_text(json.dumps(holder))
    assert file_backend.holder("dev", environment) == file_backend.Holder(
        "ann", "elsewhere", 1, "2026-11-21T15:22"
    )


def test_a_killed_holder_that_nobody_buried_is_no_running_one(tmp_path):
    engine = tmp_path / "pulumi"
    engine.symlink_to(shutil.which("sleep"))
    process = subprocess.Popen([engine, "60"])
    holder = file_backend.Holder("ann", socket.gethostname(), process.pid, "2026-11-21T15:22")
    try:
        assert holder.alive is True
    finally:
        process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert holder.alive is False
    process.wait()
    assert holder.alive is False


def test_a_refresh_after_a_removal_names_the_teams_that_go():
    """Without their names the removal rule refuses it."""
    said = "In short: … .venv/bin/fleet up --refresh --stack lab"
    named = failures.naming(f"{said}. And so on", "lab", ["ml", "nlp"])
    assert named == f"{said} --remove-team ml --remove-team nlp. And so on"
    assert failures.naming(said, "lab", []) == said
    assert failures.naming(f"{said}-ml", "lab", ["ml"]) == f"{said}-ml"  # another stack's
