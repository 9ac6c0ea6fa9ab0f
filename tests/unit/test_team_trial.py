"""`fleet team try`, `adopt` and `drop`: a second team on a part of the nodes, and back."""

import pytest

from kai_fleet_cli import cluster_reader
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams import connect
from tests.unit.team_project import LAB, OWN, Project

POOL = {"pool": "ml-next"}
TRY = ("team", "try", "ml", "v0.16.8", "-s", "lab", "--pool", "pool=ml-next", "--gpus", "2")


class Host:
    """A host cluster that knows its nodes, or does not answer."""

    def __init__(self, *nodes):
        self.there = nodes

    def nodes(self):
        if not self.there:
            raise cluster_reader.NoAnswerError("connection refused")
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
        monkeypatch.setattr(
            connect, "to_platform", lambda platform: connect.Connected(Host(*there))
        )

    made.nodes = nodes
    nodes(node("a", "ml-next", 4))
    return made


def teams(project):
    return reading.read(project.root / "Pulumi.lab.yaml")["teams"]


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
    assert project.engine.asked == ["up lab, only ml ml-next"]
    assert "ml-next: 2 of ml's 4 GPUs, nodes pool=ml-next, KAI v0.16.8 beside v0.14.7" in ran.out


def test_adopting_leaves_the_new_version_and_everything_else_as_before(project):
    project.run(*TRY, "--yes")
    ran = project.run("team", "adopt", "ml", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert project.text() == LAB.replace("v0.14.7", "v0.16.8")
    assert "KAI v0.14.7 → v0.16.8, upgraded in place" in ran.out
    assert "kubectl label node <node> pool=ml --overwrite" in ran.out
    assert project.engine.asked[-1] == "up lab, only ml ml-next, one of which goes"


def test_adopting_the_same_version_says_that_it_stays(project):
    project.run(*TRY[:3], "v0.14.7", *TRY[4:], "--yes")
    ran = project.run("team", "adopt", "ml-next", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert project.text() == LAB
    assert "ml: KAI v0.14.7 stays, ml-next has no other" in ran.out
    assert "→" not in ran.out


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
        (
            ("team", "adopt", "ml", "-s", "lab"),
            "begin with: .venv/bin/fleet team try ml VERSION --stack lab --pool KEY=VALUE --gpus N",
        ),
        (("team", "adopt", "ml-next", "-s", "lab"), "there is no team ml-next beside ml; begin"),
        (("team", "drop", "ml", "-s", "lab"), "there is no team ml-next beside ml; begin with"),
        (("team", "drop", "x", "-s", "lab"), "its teams: dev, ml"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(project, arguments, says):
    ran = project.run(*arguments)
    assert says in ran.refusal
    assert "\n" not in ran.refusal
    assert (project.text(), project.engine.asked) == (LAB, [])


def test_a_second_trial_is_refused(project):
    project.run(*TRY, "--no-up")
    fleet = ".venv/bin/fleet team"
    says = f"first: {fleet} adopt ml --stack lab, or {fleet} drop ml --stack lab. If"
    assert says in project.run(*TRY).refusal


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


ACCOUNT = """\
      registries:
        ml.example.com:
          username: pull
          password: {secure: v1:abc=}
"""


def test_what_is_encrypted_for_one_team_is_not_copied_for_another(project):
    file = project.root / "Pulumi.lab.yaml"
    before = LAB.replace("      gpus: 4\n", f"      gpus: 4\n{ACCOUNT}")
    file.write_text(before)
    ran = project.run(*TRY, "--yes")
    assert "fleet team add ml-next --stack lab, and encrypt the value there" in ran.refusal
    assert project.text() == before


TRY_OWN = ("team", "try", "vision", "v0.16.8", "-s", "lab", "--pool", "pool=vision-next")
ORDER = ["up lab, only vision vision-next and grants", "up lab-vision", "up lab-vision-next"]


@pytest.fixture
def own(tmp_path, monkeypatch):
    made = Project.of(tmp_path, monkeypatch, own=True)
    host = Host(node("v", "vision-next", 4))
    monkeypatch.setattr(connect, "to_platform", lambda platform: connect.Connected(host))
    return made


def of_stack(project, stack):
    return reading.read(project.root / f"Pulumi.{stack}.yaml")


def test_a_team_with_its_own_stack_is_tried_in_a_second_one_out_of_its_grant(own):
    ran = own.run(*TRY_OWN, "--gpus", "1", "--yes")
    assert ran.code == 0, ran.refusal
    assert of_stack(own, "lab")["teamStacks"] == {
        "vision": {"nodePool": {"pool": "vision"}, "gpus": 1},
        "vision-next": {"nodePool": {"pool": "vision-next"}, "gpus": 1},
    }
    beside = of_stack(own, "lab-vision-next")
    assert beside["platform"] == {"stack": "lab"}
    assert beside["team"] == {
        "name": "vision-next",
        "scheduler": {"mode": "virtual", "version": "v0.16.8"},
        "nodePool": {"pool": "vision-next"},
        "gpus": 1,
        "queues": {"default": {"gpu": {"quota": 1}, "children": {"a": {"gpu": {"quota": 1}}}}},
    }
    mine = of_stack(own, "lab-vision")["team"]
    assert (mine["gpus"], mine["scheduler"]["version"]) == (1, "v0.14.7")
    assert own.engine.asked == ORDER, "the team gives up its part before the trial takes it"


@pytest.mark.parametrize(
    ("command", "left"), [("adopt", OWN.replace("v0.14.7", "v0.16.8")), ("drop", OWN)]
)
def test_such_a_trial_ends_with_its_stack_and_the_grant_whole_again(own, command, left):
    before = own.files()
    own.run(*TRY_OWN, "--gpus", "1", "--no-up")
    ran = own.run("team", command, "vision", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert own.files() == before | {"Pulumi.lab-vision.yaml": left.encode()}
    assert own.engine.asked == [
        "destroy lab-vision-next, and the stack",
        "up lab, only vision vision-next and grants",
        "up lab-vision",
    ]
    assert "and stack lab-vision-next with its file and grant" in ran.out


def test_what_the_team_does_not_use_of_its_grant_stays_its_own(own):
    file = own.root / "Pulumi.lab.yaml"
    file.write_text(
        file.read_text().replace("{pool: vision}, gpus: 2}", "{pool: vision}, gpus: 8}")
    )
    own.run(*TRY_OWN, "--gpus", "1", "--no-up")
    grants = of_stack(own, "lab")["teamStacks"]
    assert {name: grant["gpus"] for name, grant in grants.items()} == {
        "vision": 7,
        "vision-next": 1,
    }


def test_more_than_the_grant_holds_is_refused_and_nothing_written(own):
    file = own.root / "Pulumi.lab.yaml"
    file.write_text(
        file.read_text().replace("{pool: vision}, gpus: 2}", "{pool: vision}, gpus: 1}")
    )
    before = own.files()
    ran = own.run(*TRY_OWN, "--gpus", "1", "--yes")
    assert "the rules refuse this" in ran.refusal
    assert "[team-granted]" in ran.out
    assert (own.files(), own.engine.asked) == (before, [])


def test_a_trial_without_credentials_is_refused_with_what_to_do(own):
    file = own.root / "Pulumi.lab.yaml"
    file.write_text(file.read_text().replace("context: lab", "kubeconfig: {secure: v1:x}"))
    before = own.files()
    ran = own.run(*TRY_OWN, "--gpus", "1", "--yes")
    assert "fleet team add vision-next --stack lab --own-stack --no-up" in ran.refusal
    assert own.files() == before


def test_the_nodes_of_another_grant_are_refused(own):
    file = own.root / "Pulumi.lab.yaml"
    grant = "    nlp: {nodePool: {pool: vision-next}, gpus: 1}\n"
    file.write_text(file.read_text() + grant)
    before = own.files()
    ran = own.run(*TRY_OWN, "--gpus", "1", "--yes")
    assert "[team-node-pools]" in ran.out
    assert own.files() == before


def test_what_is_encrypted_for_one_stack_is_not_copied_into_another(own):
    file = own.root / "Pulumi.lab-vision.yaml"
    file.write_text(file.read_text() + ACCOUNT.replace("\n  ", "\n").removeprefix("  "))
    before = own.files()
    ran = own.run(*TRY_OWN, "--gpus", "1", "--yes")
    assert (
        "fleet team add vision-next --stack lab --own-stack, and encrypt the value there"
        in ran.refusal
    )
    assert own.files() == before
