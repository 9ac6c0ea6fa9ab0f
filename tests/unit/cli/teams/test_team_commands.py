"""`fleet team add`, `switch`, `rollback` and `remove` on stack files: written, run, and refused."""

import json

import pytest

from kai_fleet_cli.display import terminal
from kai_fleet_cli.engine import runs
from kai_fleet_cli.engine.errors import EngineError
from tests.unit.cli.teams.team_project import ADD, LAB, OWN

SWITCH = ("team", "switch", "ml", "v0.16.8", "-s", "lab")
SWITCHED = LAB.replace("v0.14.7", "v0.16.8")


def test_a_switch_is_one_line_and_one_update(project):
    ran = project.run(*SWITCH, "--yes")
    assert (ran.code, project.text(), project.engine.asked) == (0, SWITCHED, ["up lab"])
    assert "ml: KAI v0.14.7 → v0.16.8; queues and running pods stay" in ran.out
    assert "-      scheduler: {mode: virtual, version: v0.14.7}" in ran.out
    assert "+      scheduler: {mode: virtual, version: v0.16.8}" in ran.out


def test_a_switch_to_a_version_that_is_not_advised_says_why(project):
    ran = project.run("team", "switch", "ml", "v0.18.0", "-s", "lab", "--no-up")
    assert ran.code == 0
    said = " ".join(ran.out.split())
    assert "not advised: v0.18.1 repairs vulnerabilities of it; write v0.16.9" in said
    again = project.run("team", "switch", "ml", "v0.18.0", "-s", "lab", "--no-up")
    assert "not advised" not in again.out, "the file says it already"


def test_a_switch_that_nobody_can_be_asked_about_only_writes_and_says_so(project):
    ran = project.run(*SWITCH)
    assert (ran.code, project.text(), project.engine.asked) == (0, SWITCHED, [])
    assert "Pulumi.lab.yaml is written, and no more: there is no terminal to ask at" in ran.out


def test_no_up_only_writes_and_the_update_comes_later(project):
    ran = project.run("team", "switch", "ml", "v0.13.4", "-s", "lab", "--no-up")
    assert "Pulumi.lab.yaml is written. Next:\n  make up STACK=lab" in ran.out
    assert project.text() == LAB.replace("v0.14.7", "v0.13.4")
    again = project.run("team", "switch", "ml", "v0.13.4", "-s", "lab", "--yes")
    assert "ml has version v0.13.4 already: what is left is the update" in again.out
    assert project.engine.asked == ["up lab"]


def test_a_team_stack_is_switched_in_its_own_file(with_own):
    ran = with_own.run("team", "switch", "vision", "v0.16.8", "-s", "lab")
    assert ran.refusal.startswith("team vision has a stack of its own; write --stack")
    ran = with_own.run("team", "switch", "vision", "v0.16.8", "-s", "lab-vision", "--yes")
    assert ran.code == 0, ran.refusal
    assert with_own.text("lab-vision") == OWN.replace("v0.14.7", "v0.16.8")
    assert with_own.engine.asked == ["up lab-vision"]
    ran = with_own.run("team", "remove", "vision", "-s", "lab-vision", "--yes")
    assert ran.refusal.endswith("goes as a whole: .venv/bin/fleet destroy --stack lab-vision")
    (with_own.root / "Pulumi.lab.yaml").unlink()  # its platform's file is elsewhere
    ran = with_own.run("team", "switch", "vision", "v0.14.7", "-s", "lab-vision", "--no-up")
    assert (ran.code, with_own.text("lab-vision")) == (0, OWN)


def test_a_team_is_added_behind_the_others_and_its_first_steps_are_shown(project):
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--queue", "a=1.5", "--yes")
    assert ran.code == 0, ran.refusal
    assert project.text().startswith(LAB)
    assert "            a:\n              gpu: 1.5\n" in project.text()
    assert "team kubeconfig new --stack lab --output new.kubeconfig" in ran.out
    assert project.run("plan", "--config", str(project.root / "Pulumi.lab.yaml")).code == 0


@pytest.mark.parametrize(
    ("leaves", "top"),
    [
        (["a"], "default"),
        (["default"], "new"),
        (["default", "new"], "new-all"),
        (["default", "new", "new-all"], "new-all-all"),
        (["default", "new", "new-all", "new-all-all"], "new-all-all-all"),
    ],
)
def test_the_queue_above_has_a_name_that_no_leaf_has(project, leaves, top):
    queues = [f"--queue={leaf}=0.25" for leaf in leaves]
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, *queues, "--no-up")
    assert ran.code == 0, ran.refusal
    assert f"      queues:\n        {top}:\n" in project.text()


HOST = """\
config:
  kai-fleet:cluster: {name: lab, context: lab}
  kai-fleet:kai: {version: v0.16.8}
  kai-fleet:queues:
    all: {gpu: {quota: 8}, children: {left: {gpu: {quota: 4}}, right: {gpu: {quota: 2}}}}
  kai-fleet:teams: {}
"""


def test_in_mode_host_a_team_gets_a_leaf_of_the_hosts_tree(project):
    (project.root / "Pulumi.lab.yaml").write_text(HOST)
    host = ("--mode", "host", "--gpus", "4", "--queue", "left", "--yes")
    ran = project.run("team", "add", "new", "-s", "lab", *host)
    assert ran.code == 0, ran.refusal
    assert "      queue: left\n" in project.text()
    ran = project.run("team", "switch", "new", "v0.16.8", "-s", "lab")
    assert "in mode host kai-fleet:kai.version" in ran.refusal


def update(version, *, result="succeeded", kind="update"):
    text = json.dumps({"ml": {"scheduler": {"mode": "virtual", "version": version}}})
    config = {"kai-fleet:teams": {"value": text, "secret": False}}
    return {"kind": kind, "result": result, "config": config}


def test_a_rollback_goes_to_the_last_version_that_ran(project):
    project.updates = [
        update("v0.17.0", result="failed"),
        update("v0.17.0", kind="preview"),
        {"kind": "update", "result": "succeeded", "config": {}},
        *[update("v0.14.7")] * 3,  # changes of other teams
        update("v0.13.4"),
        update("v0.7.11"),
    ]
    ran = project.run("team", "rollback", "ml", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert project.text() == LAB.replace("v0.14.7", "v0.13.4")
    assert "Done: team ml runs KAI v0.13.4." in ran.out


def test_a_team_with_the_stacks_scheduler_is_switched_by_a_key_of_its_own_and_back(project):
    of_all = LAB.replace("config:\n", "config:\n  kai-fleet:scheduler: {version: v0.14.7}\n")
    own = "      scheduler: {mode: virtual, version: v0.14.7}  # their choice\n"
    (project.root / "Pulumi.lab.yaml").write_text(of_all.replace(own, ""))
    assert project.run(*SWITCH, "--yes").code == 0
    assert "scheduler:\n        version: v0.16.8\n" in project.text()
    assert "kai-fleet:scheduler: {version: v0.14.7}" in project.text()
    key, value = "kai-fleet:teams", {"value": json.dumps({"ml": {"gpus": 4}})}
    default = {"value": json.dumps({"version": "v0.14.7"})}
    config = {key: value, "kai-fleet:scheduler": default}
    project.updates = [{"kind": "update", "result": "succeeded", "config": config}]
    assert project.run("team", "rollback", "ml", "-s", "lab", "--yes").code == 0
    assert "scheduler:\n        version: v0.14.7\n" in project.text()


def test_removal_takes_the_lines_out_and_says_what_goes(project):
    ran = project.run("team", "remove", "ml", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert project.text() == LAB[: LAB.index("    ml:")] + LAB[LAB.index("    dev:") :]
    for gone in ("namespace team-ml", "its queues and every pod"):
        assert gone in ran.out
    assert project.engine.asked == ["up lab, without ml"]


def test_a_removal_that_is_only_written_names_the_team_to_the_update(project):
    ran = project.run("team", "remove", "ml", "-s", "lab", "--no-up")
    assert "Next:\n  .venv/bin/fleet up --stack lab --yes ml" in ran.out


BAD = [
    (("switch", "mll", "v0.16.8"), "has no team mll; its teams: dev, ml"),
    (("switch", "ml", "latest"), "the rules refuse this"),
    (("switch", "dev", "v0.16.8"), "team dev is in mode default, without a KAI of its own; edit"),
    (("switch", "ml", "v0.16.8", "-s", "nope"), "stacks with a file: lab"),
    (("rollback", "ml"), "no update in which team ml ran another version than v0.14.7"),
    (("remove", "ml"), "write --yes"),
    (("kubeconfig", "nope"), "its teams: dev, ml"),
    (("kubeconfig", "ml"), "was never made; run: make up STACK=lab"),
    (("kubeconfig", "ml", "--oidc"), "team ml has no identity provider; write vcluster: {oidc:"),
    (("add", "ml", *ADD), "has a team ml already, in Pulumi.lab.yaml"),
    (("add", "Bad_Name", *ADD), "the rules refuse this"),
    (("add", "new", *ADD[:6], "--gpus", "-4"), "the rules refuse this"),
    (("add", "new", "--mode", "fast", "--gpus", "1"), "the rules refuse this"),
    (("add", "new", *ADD[:4], "--pool", "x", "--gpus", "1"), "--pool x is not understood"),
    (("add", "new", *ADD, "--queue", "a=many"), "the rules refuse this"),
    (("add", "new", *ADD, "--queue", "a=3"), "the rules refuse this"),
    (("add", "new", *ADD[:4], "--pool", "pool=ml", "--gpus", "1"), "the rules refuse this"),
]


def test_queues_of_a_team_without_kai_are_refused(project):
    before = project.files()
    flags = ("--mode", "default", "--pool", "pool=new", "--gpus", "1", "--queue", "a=1")
    ran = project.run("team", "add", "new", "-s", "lab", *flags, "--no-up")
    assert (ran.code, ran.refusal) == (1, "the rules refuse this; nothing is written")
    assert "key queues: has no use in mode default; drop it" in ran.out
    assert project.files() == before


@pytest.mark.parametrize(
    ("arguments", "says"), BAD, ids=lambda v: " ".join(v) if isinstance(v, tuple) else ""
)
def test_bad_input_is_one_sentence_and_leaves_the_file_alone(project, arguments, says):
    before = project.files()
    stack = () if "-s" in arguments else ("-s", "lab")
    ran = project.run("team", *arguments, *stack)
    assert ran.code == 1
    assert says in ran.refusal and "\n" not in ran.refusal
    assert (project.files(), project.engine.asked) == (before, [])


ADD_NEW = ("add", "new", *ADD)
SWITCH_ML = ("switch", "ml", "v0.16.8")
NO_MAPPING = [
    (ADD_NEW, "abc", "kai-fleet:teams: key teams: is 'abc'; write a mapping of keys"),
    (ADD_NEW, "[ml]", "kai-fleet:teams: key teams: is a list; write a mapping of keys"),
    (SWITCH_ML, "{ml: abc}", "kai-fleet:teams.ml: key ml: is 'abc'; write a mapping"),
    (SWITCH_ML, "{ml: {scheduler: abc}}", "kai-fleet:teams.ml.scheduler: key scheduler: is 'abc'"),
    (ADD_NEW, "[]", "kai-fleet:teams: key teams: is a list; write a mapping of keys"),
    (ADD_NEW, "''", "kai-fleet:teams: key teams: is ''; write a mapping of keys"),
    (ADD_NEW, "0", "kai-fleet:teams: key teams: is 0; write a mapping of keys"),
    (ADD_NEW, "false", "kai-fleet:teams: key teams: is False; write a mapping of keys"),
    (SWITCH_ML, "{ml: []}", "kai-fleet:teams.ml: key ml: is a list; write a mapping"),
    (SWITCH_ML, "{ml: {scheduler: 0}}", "kai-fleet:teams.ml.scheduler: key scheduler: is 0"),
]


@pytest.mark.parametrize(("arguments", "teams", "says"), NO_MAPPING)
def test_a_key_that_is_no_mapping_is_refused_as_a_plan_refuses_it(project, arguments, teams, says):
    cluster = "  kai-fleet:cluster: {name: lab, context: lab}\n"
    scheduler = "  kai-fleet:scheduler: {version: v0.14.7}\n"
    text = f"config:\n{cluster}{scheduler}  kai-fleet:teams: {teams}\n"
    (project.root / "Pulumi.lab.yaml").write_text(text)
    ran = project.run("team", *arguments, "-s", "lab", "--yes")
    assert says in ran.refusal
    assert (project.text(), project.engine.asked) == (text, [])


@pytest.mark.parametrize(
    ("answer", "code", "text", "asked"),
    [
        (KeyboardInterrupt, 130, LAB, []),
        (False, 0, SWITCHED, []),
        (True, 0, SWITCHED, ["up lab"]),
    ],
)
def test_at_a_terminal_the_update_is_asked_for(project, at_a_terminal, answer, code, text, asked):
    at_a_terminal(answer)
    assert project.run(*SWITCH).code == code
    assert (project.text(), project.engine.asked) == (text, asked)


ENDED = "stdin ended at the question, which counts as no"


@pytest.mark.parametrize(
    "arguments",
    [
        ("team", "add", "new", *ADD, "-s", "lab"),
        SWITCH,
        ("team", "remove", "ml", "-s", "lab"),
        ("destroy", "-s", "lab"),
    ],
    ids=" ".join,
)
def test_the_end_of_stdin_at_a_question_is_one_sentence(project, at_a_terminal, arguments):
    at_a_terminal(EOFError)
    ran = project.run(*arguments)
    assert (ran.code, ran.refusal) == (1, ENDED)
    assert "Aborted" not in ran.out
    assert (project.text(), project.engine.asked) == (LAB, [])


def test_at_a_terminal_a_removal_wants_the_name(project, at_a_terminal):
    at_a_terminal("ml")
    assert project.run("team", "remove", "dev", "-s", "lab").refusal == "nothing is changed"
    assert (project.text(), project.engine.asked) == (LAB, [])


def test_what_the_rules_refuse_is_shown_with_its_key(project):
    deep = LAB.replace("train: {gpu: {quota: 3}}", "train: {gpu: {quota: 3}, children: {x: {}}}")
    (project.root / "Pulumi.lab.yaml").write_text(deep)
    ran = project.run("team", "switch", "ml", "v0.9.3", "-s", "lab", "--yes")
    assert "[queue-depth] kai-fleet:teams.ml.queues" in " ".join(ran.out.split())
    assert ran.refusal == "the rules refuse this; nothing is written"
    assert (project.text(), project.engine.asked) == (deep, [])


def test_a_file_that_changed_meanwhile_is_left_alone(project, monkeypatch):
    file = project.root / "Pulumi.lab.yaml"
    monkeypatch.setattr(terminal, "result", lambda _: file.write_text("a colleague's"))
    ran = project.run(*SWITCH, "--yes")
    assert "was changed or deleted by something else; run the command again" in ran.refusal
    assert (project.text(), project.engine.asked) == ("a colleague's", [])


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [(SWITCH, True), (("team", "remove", "ml", "-s", "lab"), "ml")],
)
def test_a_file_that_goes_while_the_question_is_open_stays_away(
    project, at_a_terminal, monkeypatch, arguments, answer
):
    at_a_terminal(answer)
    file = project.root / "Pulumi.lab.yaml"
    monkeypatch.setattr(terminal, "result", lambda *_: file.unlink(missing_ok=True))
    ran = project.run(*arguments)
    assert "Pulumi.lab.yaml was changed or deleted by something else" in ran.refusal
    assert (project.files(), project.engine.asked) == ({}, [])


def test_a_file_that_goes_while_the_update_runs_hides_no_failure(project, monkeypatch):
    def up(*_, **__):
        (project.root / "Pulumi.lab.yaml").unlink()
        raise EngineError("the update failed", began=False)

    monkeypatch.setattr(runs, "up", up)
    ran = project.run(*SWITCH, "--yes")
    assert ran.refusal.startswith("the update failed")
    assert project.files() == {}


@pytest.mark.parametrize(
    ("began", "text", "says"),
    [
        (False, LAB, "the update failed. Nothing was changed, and Pulumi.lab.yaml is as it was"),
        (True, SWITCHED, "Go on with: make up STACK=lab. Pulumi.lab.yaml keeps the edit"),
    ],
)
def test_an_update_that_fails_says_what_became_of_the_file(project, began, text, says):
    project.engine.fails = EngineError("the update failed", began=began)
    ran = project.run(*SWITCH, "--yes")
    assert says in ran.refusal
    assert project.text() == text


@pytest.mark.parametrize("failed", ["ml", "another"])
def test_a_switch_that_worked_is_said_to_have_worked_beside_a_team_that_failed(project, failed):
    """It ends with 1 all the same: the stack is not as its file says."""
    project.engine.fails = EngineError("the update is done, but for one", teams=[failed])
    ran = project.run(*SWITCH, "--yes")
    assert "the update is done, but for one" in ran.refusal
    assert ("Done: team ml runs KAI" in f"{ran}") == (failed != "ml")
