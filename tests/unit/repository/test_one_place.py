"""What a maintainer adds stands in one place: a version, a GPU stack, a rule, a key of a team."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = (
    "components/kai_fleet",
    "policies/kai_fleet_policies",
    "stack/kai_fleet_stack",
    "cli/kai_fleet_cli",
)
PLAN = """\
import json, sys
from kai_fleet_cli.plan.offline import plan_settings
from tests.stack_files import teams

raw = {key.partition(":")[2]: value for key, value in teams(1, "v0.16.8").items()}
exec(sys.argv[1])
plan = plan_settings(raw)
found = [[p.check, p.level.value, p.message] for p in plan.problems]
releases = {r.name: r.inputs for r in plan.resources if r.type.endswith(":Release")}
print(json.dumps([found, releases], default=str))
"""


@pytest.fixture
def tree(tmp_path):
    """A copy of the product, to which a test adds something."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / Path(package).name)
    return tmp_path


def append(file, text):
    file.write_text(file.read_text() + text)


def planned(tree, edit):
    """The findings and the Helm releases of a stack of one team, after an edit of its settings."""
    done = subprocess.run(
        [sys.executable, "-c", PLAN, edit],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tree), str(ROOT)])},
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_version_of_kai_is_one_entry(tree):
    edit = 'raw["teams"]["team0"]["scheduler"]["version"] = "v0.99.1"'
    found, _ = planned(tree, edit)
    assert [check for check, level, _ in found if level == "mandatory"] == ["kai-version-known"]
    versions = tree / "kai_fleet" / "releases" / "versions.yaml"
    entry = "  v0.99.1: {<<: *v16, support_end: 2029-01-01}\n\nvcluster:"
    versions.write_text(versions.read_text().replace("\nvcluster:", entry))
    found, releases = planned(tree, edit)
    assert not [each for each in found if each[1] == "mandatory"]
    assert releases["team0-kai-release"]["version"] == "v0.99.1"


def test_a_version_of_vcluster_is_one_entry(tree):
    edit = 'raw["vcluster"] |= {"version": "v0.99.1", "kubernetesVersion": "v1.36.3"}'
    append(
        tree / "kai_fleet" / "releases" / "versions.yaml",
        "  v0.99.1: {kubernetes: v1.36.0, support_end: 2029-01-01}\n",
    )
    found, releases = planned(tree, edit)
    assert not [each for each in found if each[1] == "mandatory"]
    assert releases["team0-release"]["version"] == "0.99.1"


def test_a_gpu_stack_is_one_record(tree):
    append(
        tree / "kai_fleet" / "releases" / "gpu_providers.yaml",
        "  other: {chart: other-plugin, repository: https://charts.example, version: 1.2.3}\n",
    )
    found, releases = planned(tree, 'raw["gpu"] = {"provider": "other"}')
    assert not [each for each in found if each[1] == "mandatory"]
    (release,) = [each for each in releases.values() if each["chart"] == "other-plugin"]
    assert release["version"] == "1.2.3"


RULE = '''

@mandatory("no-team", "low", each_claim)
def no_team(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """No team.

    Because.
    """
    yield subject.refuse("is a team", "drop it")
'''


def test_a_rule_is_one_function(tree):
    append(tree / "kai_fleet_policies" / "rules" / "teams.py", RULE)
    found, _ = planned(tree, "")
    assert [each for each in found if each[0] == "no-team"]


@pytest.mark.parametrize(
    "key", ["image_pull_secrets", "storage_class", "kubernetes_version", "priority_classes"]
)
def test_a_key_of_a_team_is_in_at_most_five_files(key):
    """Its setting, its argument, the component, the values, and a rule about it."""
    files = [
        file.relative_to(ROOT)
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        if key in file.read_text()
    ]
    assert len(files) <= 5, files
