"""Values of Pulumi ESC, which only the engine reads: said, and not taken for missing keys."""

import pytest

from kai_fleet_cli.engine import environment
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan import offline
from kai_fleet_cli.stack_file import reading
from tests.unit.cli.teams.team_project import LAB

CLUSTER = "  kai-fleet:cluster: {name: lab, context: lab}   # its own\n"
SAID = "takes values of Pulumi ESC, which only the engine has"


@pytest.fixture(params=["environment: [lab]\n", "environment: {values: {pulumiConfig: {a: b}}}\n"])
def written(request, project):
    def write(*, whole):
        text = project.text() if whole else project.text().replace(CLUSTER, "")
        reading.path_of("lab").write_text(request.param + text)
        return project

    return write


def test_what_is_not_there_is_not_called_missing(written):
    written(whole=False)
    plan = offline.plan("lab")
    assert not plan.ok and [each.path for each in plan.problems] == ["environment"]
    assert SAID in plan.problems[0].message
    assert "logged in to Pulumi Cloud" in plan.problems[0].fix
    assert "make preview STACK=lab" in plan.problems[0].fix
    with pytest.raises(UserError, match=SAID):
        reading.settings_of("lab")


def test_a_file_that_is_whole_is_planned_with_a_warning(written):
    project = written(whole=True)
    plan = offline.plan("lab")
    assert plan.ok and plan.resources
    assert SAID in plan.problems[0].message
    assert reading.settings_of("lab").cluster.name == "lab"
    assert project.run("plan", "--stack", "lab").code == 0


def test_the_engine_judges_what_only_it_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "_own_cluster", lambda: environment.Environment({"a": "b"}))
    file = tmp_path / "Pulumi.lab.yaml"
    file.write_text(f"environment: [lab]\n{LAB.replace(CLUSTER, '')}")
    assert environment.for_stack("lab").variables == {"a": "b"}
    file.write_text(LAB.replace(CLUSTER, ""))
    with pytest.raises(UserError, match="cluster"):
        environment.for_stack("lab")
