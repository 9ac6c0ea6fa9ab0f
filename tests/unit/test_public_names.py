"""The names that other programs use: all there, and none costs a command its quick start."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest

import kai_fleet
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies import policy_pack


@pytest.mark.parametrize("name", kai_fleet.__all__)
def test_every_public_name_is_there(name):
    assert getattr(kai_fleet, name) is not None
    assert name in dir(kai_fleet)


def test_another_name_is_none_of_it():
    with pytest.raises(AttributeError, match="no attribute 'Fleet'"):
        kai_fleet.Fleet  # noqa: B018 - asked for only


def test_importing_the_package_imports_nothing_else():
    program = "import sys, kai_fleet; print('pulumi' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_the_installed_pack_runs_what_the_one_of_the_checkout_runs():
    files = (folder / "__main__.py" for folder in (ROOT / "policies", policy_pack()))
    ours, installed = (re.findall("^from (.*) import main$", it.read_text(), re.M) for it in files)
    assert ours == installed
    assert importlib.util.find_spec(ours[0])
