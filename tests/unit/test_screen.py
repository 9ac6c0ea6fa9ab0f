"""What a command prints of the engine's."""

import subprocess
import sys

from kai_fleet.cli.stack_file.reading import ROOT

PROGRAM = """
import sys
from kai_fleet.cli.display.screen import engine_line
for number in range(50_000):
    engine_line(f"line {number}")
print("after")
sys.stderr.write("it went on")
"""


def test_a_reader_that_leaves_early_does_not_end_the_run():
    command = [sys.executable, "-c", PROGRAM]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, cwd=ROOT, text=True) as process:
        assert process.stdout.readline() == "line 0\n"
        process.stdout.close()  # as `head -1` does
        said = process.stderr.read()
    assert (process.returncode, said) == (0, "it went on")
