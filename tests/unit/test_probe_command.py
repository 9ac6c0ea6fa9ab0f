"""How a probe is found: in the project's environment, on PATH."""

import os
import subprocess

import pytest

from kai_fleet.cluster import probes
from kai_fleet.cluster.probes.__main__ import PROBES
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
    done = run(probes.command("kai wait"), tmp_path, PATH=path)
    assert done.stdout == f"{place}/fleet-probe kai wait\n"


def test_else_it_is_on_path(tmp_path):
    put(tmp_path / "other")
    path = f"{tmp_path / 'other'}:{os.defpath}"
    done = run(probes.command("kai wait"), tmp_path, PATH=path)
    assert done.stdout == f"{tmp_path}/other/fleet-probe kai wait\n"


def test_no_text_of_a_state_names_a_folder_of_this_machine():
    for probe in PROBES:
        assert str(ROOT) not in probes.command(probe)
