"""`fleet team try`, `adopt` and `drop`: a second team on a part of the nodes, and back."""

import pytest

from fleet import live
from fleet.teams import reach
from tests.unit.team_project import LAB, Project

POOL = {"pool": "ml-next"}
TRY = ("team", "try", "ml", "v0.16.8", "-s", "lab", "--pool", "pool=ml-next", "--gpus", "2")


class Host:
    """A host cluster that knows its nodes, or does not answer."""

    def __init__(self, *nodes):
        self.there = nodes

    def nodes(self):
        if not self.there:
            raise live.NoAnswer("connection refused")
        return list(self.there)


def node(name, pool, gpus, ready="True"):
    return {
        "metadata": {"name": name, "labels": {"pool": pool}},
        "status": {
            "allocatable": {"nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


@pytest.fixture
def project(tmp_path, monkeypatch):
    made = Project.of(tmp_path, monkeypatch)

    def nodes(*there):
        monkeypatch.setattr(reach, "reach", lambda platform, say: reach.Reach(Host(*there)))

    made.nodes = nodes
    nodes(node("a", "ml-next", 4))
    return made


def teams(project):
    from fleet import stack_file

    return stack_file.read(project.root / "Pulumi.lab.yaml")["teams"]


def test_a_trial_takes_its_part_and_keeps_the_queues_names(project):
    ran = project.run(*TRY, "--yes")
    assert ran.code == 0, ran.refusal
    found = teams(project)
    assert found["ml-next"]["scheduler"] == {"mode": "virtual", "version": "v0.16.8"}
    assert found["ml-next"]["nodePool"] == POOL
    assert (found["ml"]["gpus"], found["ml-next"]["gpus"]) == (2, 2)
    below = found["ml-next"]["queues"]["default"]["children"]
    assert below == {"train": {"gpu": {"quota": 1.5}}, "serve": {"gpu": {"quota": 0.5, "limit": 1}}}
    assert found["ml"]["scheduler"]["version"] == "v0.14.7"
    assert project.engine.asked == ["up lab"]
    assert "ml-next: 2 of ml's 4 GPUs, nodes pool=ml-next, KAI v0.16.8 beside v0.14.7" in ran.out


def test_adopting_leaves_the_new_version_and_everything_else_as_before(project):
    project.run(*TRY, "--yes")
    ran = project.run("team", "adopt", "ml", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert project.text() == LAB.replace("v0.14.7", "v0.16.8")
    assert "KAI v0.14.7 → v0.16.8, upgraded in place" in ran.out
    assert "kubectl label node <node> pool=ml --overwrite" in ran.out


@pytest.mark.parametrize("name", ["ml", "ml-next"])
def test_dropping_leaves_the_file_as_it_was(project, name):
    project.run(*TRY, "--yes")
    ran = project.run("team", "drop", name, "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert project.text() == LAB


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            (*TRY[:-1], "4"),
            "--gpus 4 cannot be taken from team ml, which has 4; write a number from",
        ),
        ((*TRY[:-1], "0"), "from 1 to 3"),
        (("team", "try", "dev", *TRY[3:]), "team dev is in mode default"),
        (("team", "try", "ml", "v0.16", *TRY[4:]), "not a version this program knows"),
        ((*TRY[:7], "pool", *TRY[8:]), "write --pool kai-fleet/pool=ml-next"),
        ((*TRY[:7], "pool=dev", *TRY[8:]), "Ready nodes with pool=dev have 0 GPUs of 2"),
        (("team", "adopt", "ml", "-s", "lab"), "there is no team ml-next beside ml; begin with"),
        (("team", "drop", "ml", "-s", "lab"), "there is no team ml-next beside ml; begin with"),
        (("team", "drop", "x", "-s", "lab"), "Its teams: dev, ml"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(project, arguments, says):
    ran = project.run(*arguments)
    assert says in ran.refusal
    assert "\n" not in ran.refusal
    assert (project.text(), project.engine.asked) == (LAB, [])


def test_a_second_trial_is_refused(project):
    project.run(*TRY, "--no-up")
    assert "team ml-next is there already; first: fleet team adopt ml" in project.run(*TRY).refusal


def test_nodes_of_another_team_are_refused_by_the_rules(project):
    project.nodes(node("d", "dev", 8))
    ran = project.run(*TRY[:7], "pool=dev", *TRY[8:], "--yes")
    assert "[team-node-pools]" in ran.out
    assert project.text() == LAB


def test_without_nodes_it_names_one_to_label(project):
    project.nodes(node("a", "ml", 4), node("b", "ml", 2), node("c", "ml-next", 2, ready="False"))
    ran = project.run(*TRY, "--yes")
    assert "kubectl label node b pool=ml-next --overwrite" in ran.refusal
    assert project.text() == LAB


def test_it_does_not_name_all_of_a_teams_nodes(project):
    project.nodes(node("a", "ml", 4))
    assert "write a smaller --gpus" in project.run(*TRY, "--yes").refusal


def test_a_cluster_that_does_not_answer_is_said_and_no_obstacle(project):
    project.nodes()
    ran = project.run(*TRY, "--no-up")
    assert ran.code == 0
    assert "did not answer" in ran.out
    assert "kubectl label node <node> pool=ml-next --overwrite" in ran.out
