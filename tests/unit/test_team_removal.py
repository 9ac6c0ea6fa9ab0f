"""`fleet team remove` on stack files: what goes, what stays, and in which order."""

import time
from types import SimpleNamespace

import pytest

from fleet.engine import EngineFailed
from tests.unit.team_project import GRANT, LAB


def test_removal_takes_the_lines_out_and_says_what_goes(project):
    ran = project.run("team", "remove", "ml", "-s", "lab", "--yes")
    assert ran.code == 0
    kept = LAB[: LAB.index("    ml:")] + LAB[LAB.index("    dev:") :]
    assert project.text() == kept
    for gone in ("namespace team-ml", "KAI v0.14.7", "default, train, serve"):
        assert gone in ran.out
    assert project.engine.asked == ["up lab, only ml, ml leaving"]


@pytest.mark.parametrize("before", [LAB + GRANT, LAB], ids=["whole", "killed after its edit"])
def test_removal_of_an_own_stack_empties_it_first(with_own, before):
    (with_own.root / "Pulumi.lab.yaml").write_text(before)
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert with_own.engine.asked == [
        "destroy lab-vision with vision",
        "up lab, only vision, vision leaving",
    ]
    assert "Pulumi.lab-vision.yaml" not in with_own.files()
    assert with_own.text() == LAB, "the last grant goes with its key"


def test_other_grants_stay(with_own):
    file = with_own.root / "Pulumi.lab.yaml"
    file.write_text(LAB + GRANT + "    nlp: {nodePool: {pool: nlp}, gpus: 1}  # soon\n")
    assert with_own.run("team", "remove", "vision", "-s", "lab", "--yes").code == 0
    rest = "  kai-fleet:teamStacks:\n    nlp: {nodePool: {pool: nlp}, gpus: 1}  # soon\n"
    assert with_own.text() == LAB + rest


def test_a_removal_that_fails_leaves_both_files(with_own):
    before = with_own.files()
    with_own.engine.fails = EngineFailed("the removal failed")
    with_own.engine.fails_at = "destroy lab-vision"
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert ran.refusal.startswith("the removal failed. The files are as they were")
    assert with_own.files() == before


NAMESPACE = (
    "urn:pulumi:lab-vision::kai-fleet::kai-fleet:index:Team$kai-fleet:index:VirtualCluster$"
    "kubernetes:core/v1:Namespace::vision-namespace"
)


def told(urn):
    return SimpleNamespace(resource_pre_event=SimpleNamespace(metadata=SimpleNamespace(urn=urn)))


def seen_at_the_namespace(project):
    """Whether the platform was updated while the team's stack had its namespace left."""
    updated = []

    def going(hear):
        hear(SimpleNamespace(resource_pre_event=None))
        hear(told("urn:pulumi:lab-vision::kai-fleet::kubernetes:core/v1:Namespace::other"))
        time.sleep(0.2)
        assert len(project.engine.asked) == 1
        hear(told(NAMESPACE))
        end = time.monotonic() + 2
        while len(project.engine.asked) == 1 and time.monotonic() < end:
            time.sleep(0.01)
        updated.append(len(project.engine.asked) > 1)

    project.engine.going = going
    return updated


def test_a_grant_is_taken_back_while_the_namespace_goes(with_own):
    updated = seen_at_the_namespace(with_own)
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert updated == [True]
    assert "Pulumi.lab-vision.yaml" not in with_own.files()


def test_an_account_that_is_granted_has_its_rights_to_the_end(with_own):
    own = with_own.root / "Pulumi.lab-vision.yaml"
    own.write_text(own.read_text() + "  kai-fleet:cluster: {kubeconfig: {secure: v1:x}}\n")
    updated = seen_at_the_namespace(with_own)
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert updated == [False]


def test_a_namespace_that_does_not_go_leaves_the_teams_own_file(with_own):
    own = with_own.text("lab-vision")
    seen_at_the_namespace(with_own)
    with_own.engine.fails = EngineFailed("the removal failed")
    with_own.engine.fails_at = "destroy lab-vision"
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert ran.refusal == (
        "the removal failed. Its file is as it was; run the same command again to go on"
    )
    assert (with_own.text(), with_own.text("lab-vision")) == (LAB, own)
    with_own.engine.fails = with_own.engine.going = None
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert "Pulumi.lab-vision.yaml" not in with_own.files()


def test_a_platform_that_fails_does_not_keep_the_team(with_own):
    with_own.engine.fails, with_own.engine.fails_at = EngineFailed("the update failed"), "lab"
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert "The files keep the edit: run it again with\n  make up STACK=lab" in ran.refusal
    assert "destroy lab-vision with vision" in with_own.engine.asked
    assert with_own.text() == LAB
    assert "Pulumi.lab-vision.yaml" not in with_own.files()
