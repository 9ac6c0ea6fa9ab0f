"""Ctrl-C while a command still loads."""

import signal
import subprocess
import sys

import pytest

from fleet.stack_file import ROOT

# The error comes from the import of that module, as it does for a key pressed in that moment.
LOADING = """
import runpy, sys
class Pressed:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            raise {error}
sys.meta_path.insert(0, Pressed())
runpy.run_module("fleet", run_name="__main__")
"""


def loading(module, error):
    code = LOADING.format(module=module, error=error)
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("module", ["typer", "fleet.teams", "ruamel.yaml"])
def test_it_is_one_word(module):
    ran = loading(module, "KeyboardInterrupt")
    assert (ran.returncode, ran.stderr) == (-signal.SIGINT, "interrupted\n")


def test_a_fault_of_the_products_own_keeps_its_trace():
    assert "ZeroDivisionError: by hand" in loading("typer", "ZeroDivisionError('by hand')").stderr
