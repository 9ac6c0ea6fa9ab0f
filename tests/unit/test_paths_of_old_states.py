"""Commands that states of 0.1.0 hold still run: the engine takes them from the state."""

from __future__ import annotations

import subprocess

import pytest

from kai_fleet.cli.stack_file.reading import ROOT

PROBES = ("components/probes/run kai clean-up", "components/probes/run shards remove")


def ran(command, **variables):
    variables["PATH"] = "/usr/bin:/bin"
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=ROOT, env=variables, capture_output=True, text=True
    )


@pytest.mark.parametrize("command", [*PROBES, "components/probes/run pods"])
def test_a_clean_up_runs_the_probe_of_now(command):
    then = ran(command)
    now = ran(command.replace("components/probes/run", ".venv/bin/fleet-probe"))
    assert then.stderr.splitlines()[-1] == now.stderr.splitlines()[-1] != ""
    assert "fleet-probe: write one of" not in then.stderr
    assert then.returncode == now.returncode not in (126, 127)


def test_a_kind_cluster_is_deleted_by_the_script_of_now():
    done = ran("components/kind/delete.sh", KIND_NAME="old")
    assert "kind" in done.stderr
    assert done.returncode not in (126, 127)
