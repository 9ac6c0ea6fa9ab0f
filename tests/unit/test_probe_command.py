"""How a probe is found: in the project's environment, on PATH, in the plugin's, by old states."""

import os
import subprocess

import pytest

from kai_fleet import probes
from kai_fleet.probes.__main__ import PROBES
from kai_fleet_cli.stack_file.reading import ROOT

SAYS = '#!/bin/sh\necho "$0" "$@"\n'


def put(folder):
    folder.mkdir(parents=True)
    probe = folder / "fleet-probe"
    probe.write_text(SAYS)
    probe.chmod(0o755)


def run(command, where, **variables):
    environment = {"PATH": os.defpath, "HOME": str(where / "nobody"), **variables}
    return subprocess.run(
        ["/bin/sh", "-c", command], cwd=where, env=environment, capture_output=True, text=True
    )


@pytest.mark.parametrize("place", [".venv/bin", "venv/bin"])
def test_the_environment_of_the_project_comes_first(tmp_path, place):
    put(tmp_path / place)
    put(tmp_path / "other")
    path = f"{tmp_path / 'other'}:{os.defpath}"
    done = run(probes.command("kai", "wait"), tmp_path, PATH=path)
    assert done.stdout == f"{place}/fleet-probe kai wait\n"


@pytest.mark.parametrize("place", [".venv/bin", "venv/bin", "other"])
def test_a_step_runs_what_the_program_has_and_else_what_is_on_path(tmp_path, place):
    for folder in {"other", place}:
        put(tmp_path / folder)
    path = f"{tmp_path / 'other'}:{os.defpath}"
    done = run(probes.step("vcluster wait"), tmp_path, PATH=path)
    assert done.stdout.endswith(f"{place}/fleet-probe vcluster wait\n")


def test_then_path_then_the_plugin(tmp_path):
    plugin = "resource-forge.example_acme_kai-fleet.git-v0.3.0/plugin/venv/bin"
    put(tmp_path / "home" / "plugins" / plugin)
    home = {"PULUMI_HOME": str(tmp_path / "home")}
    done = run(probes.command("vacant"), tmp_path, **home)
    assert done.stdout == f"{tmp_path}/home/plugins/{plugin}/fleet-probe vacant\n"
    put(tmp_path / "other")
    path = f"{tmp_path / 'other'}:{os.defpath}"
    done = run(probes.command("vacant"), tmp_path, PATH=path, **home)
    assert done.stdout == f"{tmp_path}/other/fleet-probe vacant\n"


def test_of_two_plugins_the_newer_is_taken(tmp_path):
    home = tmp_path / "a home"  # names may have spaces
    for version in ("0.9.0", "0.10.0"):
        put(
            home / "plugins" / f"resource-forge_kai-fleet.git_plugin-v{version}" / "plugin/venv/bin"
        )
    done = run(probes.command("vacant"), tmp_path, PULUMI_HOME=str(home))
    assert "v0.10.0" in done.stdout


def test_no_text_of_a_state_names_a_folder_of_this_machine():
    for probe in PROBES:
        assert str(ROOT) not in probes.command(*probe.split())
