"""Tools built with Go where no release can be had."""

import fcntl
import threading
import time

import pytest

from sandbox.tools import go_builds, toolbox
from tests.unit.tool_scripts import go, script, silent


def test_without_go_the_message_says_what_to_install(machine):
    with pytest.raises(toolbox.ToolError, match=r"no Go toolchain on PATH\. Install Go 1\.26 or"):
        toolbox.ensure(["kwok"], silent)


def test_a_go_that_is_too_old_is_named_with_what_is_needed(machine):
    older = "go: go.mod requires go >= 1.26.0 (running go 1.22.5; GOTOOLCHAIN=local)"
    path = go(machine, build=f"echo '{older}'; exit 1")
    with pytest.raises(toolbox.ToolError) as refusal:
        toolbox.ensure(["kwok"], silent)
    text = str(refusal.value)
    assert str(path) in text and "go 1.22.5" in text and "Install Go 1.26" in text


def test_a_build_that_fails_says_why_and_where_its_output_is(machine):
    go(machine, build="echo 'go: downloading x'; echo 'go: sigs.k8s.io/kwok: 403'; exit 1")
    with pytest.raises(toolbox.ToolError) as failure:
        toolbox.ensure(["kwok"], silent)
    log = machine / "cache/logs/kwok-0.8.0.log"
    assert "go: sigs.k8s.io/kwok: 403" in str(failure.value)
    assert str(log) in str(failure.value)
    assert "downloading x" in log.read_text()
    assert not list((machine / "cache/tools").glob("kwok-*"))


def test_a_build_that_somebody_ended_says_so(machine):
    go(machine, build="echo 'go: downloading x'; kill -9 $$")
    with pytest.raises(toolbox.ToolError, match="ended by signal 9; start it again"):
        toolbox.ensure(["kwok"], silent)


def test_what_was_built_is_used_again(machine):
    path = go(machine, build='echo x > "$out"')
    built = toolbox.ensure(["kwok"], silent)["kwok"]
    path.unlink()
    assert toolbox.ensure(["kwok"], silent)["kwok"] == built
    assert built.path == machine / "cache/tools/kwok-0.8.0/kwok"


def test_a_long_build_shows_that_it_goes_on(machine, monkeypatch):
    monkeypatch.setattr(go_builds, "PROGRESS_SECONDS", 0.1)
    go(machine, build='sleep 0.5; echo x > "$out"')
    said = []
    toolbox.ensure(["kwok"], said.append)
    assert any("still building" in line for line in said)


def test_two_tools_are_built_at_a_time(machine):
    (machine / "begun").mkdir()
    waits = "n=0; until [ $# -ge 2 ] || [ $n -ge 100 ]; do sleep 0.05; n=$((n+1)); set -- *; done"
    begun = f'cd {machine}/begun; echo > "${{out##*/}}"; set -- *; {waits}; [ $# -ge 2 ] || exit 1'
    go(machine, build=f'{begun}; echo x > "$out"')
    found = toolbox.ensure(["etcd", "kwok"], silent)
    assert {tool.origin for tool in found.values()} == {"built"}


def test_a_build_that_fails_stops_the_other_one(machine):
    go(machine, build='[ "${out##*/}" = kwok ] && exit 1; sleep 60')
    begun = time.monotonic()
    with pytest.raises(toolbox.ToolError):
        toolbox.ensure(["etcd", "kwok"], silent)
    assert time.monotonic() - begun < 30, "the other one is not waited for"


def test_a_tool_that_another_process_is_getting_is_waited_for(machine):
    go(machine, build='echo x > "$out"')
    folder = machine / "cache/tools"
    folder.mkdir(parents=True)
    said = []
    with (folder / ".kwok.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def finish():
            while not any("another process" in line for line in said):
                time.sleep(0.01)
            script(folder / "kwok-0.8.0/kwok")
            fcntl.flock(other, fcntl.LOCK_UN)

        threading.Thread(target=finish).start()
        toolbox.ensure(["kwok"], said.append)
    assert any("another process is getting it" in line for line in said)
    assert not any("building" in line for line in said), "the other one's should be used"
