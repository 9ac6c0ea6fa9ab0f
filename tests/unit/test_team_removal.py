"""`fleet team remove` on stack files: what goes, what stays, and in which order."""

import pytest

from kai_fleet.fleet.deployed_state import TEAM
from kai_fleet_cli.engine.runs import EngineError
from kai_fleet_cli.recovery.state import ExportedState
from tests.unit.team_project import GRANT, LAB


def test_removal_takes_the_lines_out_and_says_what_goes(project):
    ran = project.run("team", "remove", "ml", "-s", "lab", "--yes")
    assert ran.code == 0
    kept = LAB[: LAB.index("    ml:")] + LAB[LAB.index("    dev:") :]
    assert project.text() == kept
    for gone in ("namespace team-ml", "KAI v0.14.7", "default, train, serve"):
        assert gone in ran.out
    assert project.engine.asked == ["up lab, only ml, one of which goes"]


@pytest.mark.parametrize("before", [LAB + GRANT, LAB], ids=["whole", "killed after its edit"])
def test_removal_of_an_own_stack_empties_it_first(with_own, before):
    (with_own.root / "Pulumi.lab.yaml").write_text(before)
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert with_own.engine.asked == [
        "destroy lab-vision, and the stack",
        "up lab, only vision and grants",
    ]
    assert "Pulumi.lab-vision.yaml" not in with_own.files()
    assert with_own.text() == LAB, "the last grant goes with its key"


def test_what_is_protected_in_its_own_stack_keeps_the_team(with_own):
    kept = {
        "urn": "urn:pulumi:lab-vision::kai-fleet::kai-fleet:index:Team::kept",
        "type": TEAM,
        "protect": True,
    }
    with_own.engine.deployed["lab-vision"] = ExportedState({"resources": [kept]})
    before = with_own.files()
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert "stack lab-vision has 1 protected resource, and Pulumi deletes none: kept" in ran.refusal
    assert (with_own.files(), with_own.engine.asked) == (before, [])


def test_other_grants_stay(with_own):
    file = with_own.root / "Pulumi.lab.yaml"
    file.write_text(LAB + GRANT + "    nlp: {nodePool: {pool: nlp}, gpus: 1}  # soon\n")
    assert with_own.run("team", "remove", "vision", "-s", "lab", "--yes").code == 0
    rest = "  kai-fleet:teamStacks:\n    nlp: {nodePool: {pool: nlp}, gpus: 1}  # soon\n"
    assert with_own.text() == LAB + rest


def test_a_removal_that_fails_leaves_both_files_and_goes_on(with_own):
    own = with_own.text("lab-vision")
    with_own.engine.fails = EngineError("the removal failed")
    with_own.engine.fails_at = "destroy lab-vision"
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert ran.refusal == (
        "the removal failed. The files are as they were; run the same command again to go on"
    )
    assert (with_own.text(), with_own.text("lab-vision")) == (LAB + GRANT, own)
    with_own.engine.fails = None
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert "Pulumi.lab-vision.yaml" not in with_own.files()


def test_a_platform_that_fails_does_not_keep_the_team(with_own):
    with_own.engine.fails, with_own.engine.fails_at = EngineError("the update failed"), "lab"
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert "The files keep the edit: run it again with\n  make up STACK=lab" in ran.refusal
    assert "destroy lab-vision, and the stack" in with_own.engine.asked
    assert with_own.text() == LAB
    assert "Pulumi.lab-vision.yaml" not in with_own.files()
