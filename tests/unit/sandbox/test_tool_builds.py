"""Tools built with Go where no release can be had."""

import fcntl
import threading
import time

import pytest

from sandbox.tools import toolbox
from tests.unit.sandbox.tool_scripts import go, script, silent


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
    reported = []
    with (folder / ".kwok.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def finish():
            while not any("another process" in line for line in reported):
                time.sleep(0.01)
            script(folder / "kwok-0.8.0/kwok")
            fcntl.flock(other, fcntl.LOCK_UN)

        threading.Thread(target=finish).start()
        toolbox.ensure(["kwok"], reported.append)
    assert any("another process is getting it" in line for line in reported)
    assert not any("building" in line for line in reported), "the other one's should be used"
