"""The names that other programs use: all there, and none costs a command its quick start."""

import re
import subprocess
import sys
import tomllib

from kai_fleet.provider import version
from kai_fleet_cli.stack_file.reading import ROOT


def test_importing_the_package_imports_nothing_else():
    program = "import sys, kai_fleet; print('pulumi' in sys.modules, 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr


DISTRIBUTIONS = ("usage", "kubectl", "components", "policies", "stack", "cli")


def test_the_distributions_are_of_one_version_and_need_each_other_in_it():
    for folder in DISTRIBUTIONS:
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
        assert project["version"] == version()
        own = [
            dependency
            for dependency in project["dependencies"]
            if dependency.startswith(("kai-fleet", "kai-usage", "kubectl-fleet"))
        ]
        assert all(item.endswith(f"=={version()}") for item in own)
        assert (ROOT / folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_a_release_builds_every_distribution():
    steps = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    (named,) = re.findall(r"for package in (.+); do", steps)
    projects = [
        tomllib.loads((ROOT / distribution / "pyproject.toml").read_text())
        for distribution in DISTRIBUTIONS
    ]
    assert named.split() == [item["project"]["name"] for item in projects]
