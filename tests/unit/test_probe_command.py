"""How a probe is found: in the project's environment, on PATH."""

import os
import subprocess

import pytest

from kai_fleet.cluster import probes
from kai_fleet.cluster.probes.__main__ import PROBES
from kai_fleet_cli.stack_file.reading import ROOT

SAYS = '#!/bin/sh\necho "$0" "$@"\n'


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ((".venv/bin", "other"), ".venv/bin"),
        (("venv/bin", "other"), "venv/bin"),
        (("other",), "{here}/other"),
    ],
)
def test_it_is_in_the_environment_of_the_project_or_else_on_path(tmp_path, places, found):
    for place in places:
        probe = tmp_path / place / "fleet-probe"
        probe.parent.mkdir(parents=True)
        probe.write_text(SAYS)
        probe.chmod(0o755)
    environment = {"PATH": f"{tmp_path / 'other'}:{os.defpath}", "HOME": str(tmp_path / "nobody")}
    command = ["/bin/sh", "-c", probes.command("kai wait")]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{found.format(here=tmp_path)}/fleet-probe kai wait\n"


def test_no_text_of_a_state_names_a_folder_of_this_machine():
    for probe in PROBES:
        assert str(ROOT) not in probes.command(probe)
