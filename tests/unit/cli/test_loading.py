"""How a command begins and ends: Ctrl-C while it loads, and all that it wrote at its end."""

import json
import signal
import subprocess
import sys

import pytest

from kai_fleet_cli.stack_file.reading import ROOT

# The error comes from the import of that module, as it does for a key pressed in that moment.
LOADING = """
import runpy, sys
class Pressed:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            raise {error}
sys.meta_path.insert(0, Pressed())
runpy.run_module("kai_fleet_cli", run_name="__main__")
"""


def loading(module, error):
    code = LOADING.format(module=module, error=error)
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("module", ["typer", "kai_fleet_cli.commands", "yaml"])
def test_it_is_one_word(module):
    ran = loading(module, "KeyboardInterrupt")
    assert (ran.returncode, ran.stderr) == (-signal.SIGINT, "interrupted\n")


def test_a_fault_of_the_products_own_keeps_its_trace():
    assert "ZeroDivisionError: by hand" in loading("typer", "ZeroDivisionError('by hand')").stderr


def test_the_program_loads_in_a_process_that_has_loaded_nothing_of_it():
    # It runs beside the package of that name: a module called kai_fleet would hide the package.
    code = "from kai_fleet_cli.engine.environment import program; program()"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "kai-fleet:cluster: key cluster: is missing" in ran.stderr


@pytest.mark.parametrize(
    ("module", "slow"),
    [
        ("kai_fleet_policies.pack.analyzer", "pydantic"),  # each preview and update waits for it
        ("kai_fleet.cluster.probes.__main__", "pulumi"),  # an update starts several for each team
        ("kai_fleet_cli.doctor.diagnosis", "pulumi_kubernetes.core.v1._inputs"),  # half a second
    ],
)
def test_what_is_slow_to_load_is_loaded_only_where_it_is_needed(module, slow):
    code = f"import {module}, sys; print({slow!r} in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("False\n", "")


@pytest.mark.parametrize(("stack", "code"), [("prod", 0), ("absent", 2)])
def test_a_command_that_ends_at_once_has_written_all_and_gives_its_code(stack, code):
    command = [sys.executable, "-m", "kai_fleet_cli", "plan", "--stack", stack, "--format", "json"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode, json.loads(ran.stdout)["stack"]) == (code, stack), ran.stderr
    assert len(ran.stdout) > 65536 or code, "more than a pipe holds"
