"""The wheel in an empty environment: a program of ten lines plans offline, and what ships is there.

Among the engine tests, because it fetches packages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kai_fleet_cli.stack_file.reading import ROOT

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]
UV = Path(sys.executable).with_name("uv")

PROGRAM = """\
import kai_fleet

plan = kai_fleet.plan_settings({
    "cluster": {"name": "lab", "context": "lab"},
    "teams": {"ml": {"scheduler": {"mode": "virtual", "version": "v0.12.23"},
                     "nodePool": {"pool": "ml"}, "gpus": 2,
                     "queues": {"ml": {"children": {"train": {"gpu": {"quota": 2}}}}}}},
})
print(len(plan.resources), plan.ok, *plan.problems)
"""
OWN = """\
import kai_fleet


def program():
    tree = {"ml": kai_fleet.Queue(children={"train": kai_fleet.Queue()})}
    access = kai_fleet.ClusterAccess("lab", context="lab")
    kai_fleet.QueueTree("queues", kai_fleet.QueueTreeArgs(kai_fleet.declared_queues(tree), access))


print(*sorted(resource.type for resource in kai_fleet.plan_program(program).resources))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [UV, "build", "--wheel", "--out-dir", folder], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The interpreter of an environment with the wheel alone."""
    venv = tmp_path_factory.mktemp("empty") / "venv"
    for command in (
        [sys.executable, "-m", "venv", venv],
        [venv / "bin" / "python", "-m", "pip", "install", "--quiet", wheel],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return venv / "bin" / "python"


def said(python: Path, program: str, where: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", program], cwd=where, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_one_name_and_all_that_it_needs(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {
        "kai_fleet",
        wheel.name.rsplit("-", 3)[0] + ".dist-info",
    }
    for file in ("py.typed", "package/schema.json", "policy_pack/PulumiPolicy.yaml"):
        assert f"kai_fleet/{file}" in names
    assert not [name for name in names if "__pycache__" in name or "node_modules" in name]


@pytest.mark.slow
def test_ten_lines_plan_offline(python, tmp_path):
    count, ok, *_ = said(python, PROGRAM, tmp_path).split()
    assert int(count) > 30
    assert ok == "True"


@pytest.mark.slow
def test_a_program_of_ones_own_plans_offline(python, tmp_path):
    assert said(python, OWN, tmp_path) == "kai-fleet:index:QueueTree kai-fleet:index:Queues"


@pytest.mark.slow
def test_what_a_program_needs_is_on_its_path(python, tmp_path):
    for script in ("fleet", "fleet-probe", "pulumi-resource-kai-fleet"):
        assert (python.parent / script).is_file()
    pack = Path(said(python, "import kai_fleet; print(kai_fleet.policy_pack())", tmp_path))
    assert (pack / "__main__.py").is_file()
    # Its environment, as the engine finds it from there, is the one that it is installed in.
    named = next(
        it for it in (pack / "PulumiPolicy.yaml").read_text().splitlines() if "virtualenv" in it
    )
    assert (pack / named.split()[-1] / "bin" / "python").samefile(python)
