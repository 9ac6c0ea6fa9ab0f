"""`fleet team …` on stack files: what is written, what is run, and what is refused."""

import json
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from socket import gethostname
from types import SimpleNamespace

import pytest

from fleet.engine import EngineFailed
from fleet.environment import Environment
from fleet.teams import reach, state
from tests.unit.team_project import GRANT, LAB, OWN, Project

ADD = ("--mode", "virtual", "--version", "v0.16.8", "--pool", "pool=new", "--gpus", "2")


@pytest.fixture
def project(tmp_path, monkeypatch):
    made = Project.of(tmp_path, monkeypatch)
    made.updates = []

    def ask(stack, variables, *asked):
        if asked[0] == "export":
            return {}  # a stack without resources
        page = int(asked[asked.index("--page") + 1])
        size = int(asked[asked.index("--page-size") + 1])
        return made.updates[(page - 1) * size : page * size]

    nobody = reach.Reach(None, {})
    monkeypatch.setattr(reach, "reach", lambda platform, say: nobody)
    monkeypatch.setattr(state, "ask", ask)
    return made


@pytest.fixture
def with_own(tmp_path, monkeypatch):
    return Project.of(tmp_path, monkeypatch, own=True)


def test_a_switch_is_one_line_and_one_update(project):
    ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert ran.code == 0
    assert project.text() == LAB.replace("v0.14.7", "v0.16.8")
    assert project.engine.asked == ["up lab, only ml"]
    assert "KAI v0.14.7 → v0.16.8, upgraded in place" in ran.out


def test_a_downgrade_says_why_it_replaces(project):
    ran = project.run("team", "switch", "ml", "v0.13.4", "-s", "lab", "--no-up")
    assert "replaced (is a downgrade, which helm cannot do with this chart)" in ran.out
    assert project.engine.asked == []
    assert "make up STACK=lab" in ran.out


def test_a_switch_of_a_team_with_its_own_stack_edits_that_and_runs_that(with_own):
    ran = with_own.run("team", "switch", "vision", "v0.16.8", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert with_own.text("lab-vision") == OWN.replace("v0.14.7", "v0.16.8")
    assert with_own.text() == LAB + GRANT
    assert with_own.engine.asked == ["up lab-vision"]


def test_a_team_is_added_behind_the_others_and_its_first_steps_are_shown(project):
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--queue", "a=1.5", "--yes")
    assert ran.code == 0, ran.refusal
    assert project.text().startswith(LAB)
    assert "            a:\n" in project.text()
    assert "gpu: {quota: 1.5}" in project.text()
    assert "new: new team in mode virtual" in ran.out
    assert "team kubeconfig new --stack lab --output new.kubeconfig" in ran.out
    assert "kai.scheduler/queue: a" in ran.out
    assert project.run("plan", "--config", str(project.root / "Pulumi.lab.yaml")).code == 0


def test_a_team_with_its_own_stack_is_a_file_and_a_grant(project):
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--own-stack", "--yes")
    assert ran.code == 0, ran.refusal
    grant = "  kai-fleet:teamStacks:\n    new:\n      nodePool: {pool: new}\n      gpus: 2\n"
    assert project.text() == LAB + grant
    own = project.text("lab-new")
    assert "kai-fleet:platform: {stack: lab}" in own
    assert "    name: new\n" in own
    assert project.engine.asked == ["up lab, only new", "up lab-new"]


def test_removal_takes_the_lines_out_and_says_what_goes(project):
    ran = project.run("team", "remove", "ml", "-s", "lab", "--yes")
    assert ran.code == 0
    kept = LAB[: LAB.index("    ml:")] + LAB[LAB.index("    dev:") :]
    assert project.text() == kept
    for gone in ("namespace team-ml", "KAI v0.14.7", "default, train, serve"):
        assert gone in ran.out
    assert project.engine.asked == ["up lab, only ml, ml leaving"]


def test_removal_of_an_own_stack_empties_it_first(with_own):
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert with_own.engine.asked == [
        "destroy lab-vision with vision",
        "up lab, only vision, vision leaving",
    ]
    assert "Pulumi.lab-vision.yaml" not in with_own.files()
    assert with_own.text() == LAB, "the last grant goes with its key"


def test_a_removal_that_was_killed_after_it_edited_the_platforms_file_goes_on(with_own):
    (with_own.root / "Pulumi.lab.yaml").write_text(LAB)
    ran = with_own.run("team", "remove", "vision", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert with_own.engine.asked == [
        "destroy lab-vision with vision",
        "up lab, only vision, vision leaving",
    ]
    assert "Pulumi.lab-vision.yaml" not in with_own.files()


def test_other_grants_stay(with_own):
    file = with_own.root / "Pulumi.lab.yaml"
    file.write_text(LAB + GRANT + "    nlp: {nodePool: {pool: nlp}, gpus: 1}  # soon\n")
    assert with_own.run("team", "remove", "vision", "-s", "lab", "--yes").code == 0
    rest = "  kai-fleet:teamStacks:\n    nlp: {nodePool: {pool: nlp}, gpus: 1}  # soon\n"
    assert with_own.text() == LAB + rest


def update(version, *, result="succeeded", kind="update", message=""):
    text = f'{{"ml": {{"scheduler": {{"mode": "virtual", "version": "{version}"}}}}}}'
    config = {"kai-fleet:teams": {"value": text, "secret": False}}
    return {"kind": kind, "result": result, "config": config, "message": message}


def test_a_rollback_goes_to_the_last_version_that_ran(project):
    project.updates = [
        update("v0.17.0", result="failed"),
        update("v0.17.0", kind="preview"),
        # What stood in the file while another team was changed did not run.
        update("v0.16.8", message="only the platform and team dev"),
        *[update("v0.14.7")] * 30,  # other teams' changes
        update("v0.13.4", message="only the platform and team dev, ml"),
        update("v0.7.11"),
    ]
    ran = project.run("team", "rollback", "ml", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert project.text() == LAB.replace("v0.14.7", "v0.13.4")


BAD = [
    (("switch", "mll", "v0.16.8"), "has no team mll; did you mean ml? Its teams: dev, ml"),
    (("switch", "ml", "v0.9.5"), "write v0.9.3 or v0.9.8"),
    (("switch", "ml", "0.16.8"), "write v0.16.8"),
    (("switch", "ml", "latest"), "not a version this program knows"),
    (("switch", "ml", "v0.20.1"), "it is retracted"),
    (("switch", "ml", "v0.14.7"), "kai-fleet:teams.ml has version v0.14.7 already"),
    (("switch", "dev", "v0.16.8"), "team dev is in mode default, which has no KAI of its own"),
    (("switch", "ml", "v0.16.8", "-s", "nope"), "stacks with a file: lab"),
    (("rollback", "ml"), "no update in which team ml ran another version than v0.14.7"),
    (("rollback", "nope"), "Its teams: dev, ml"),
    (("remove", "nope"), "Its teams: dev, ml"),
    (("remove", "ml"), "write --yes"),
    (("kubeconfig", "nope"), "Its teams: dev, ml"),
    (("add", "ml", *ADD), "has a team ml already, in Pulumi.lab.yaml"),
    (("add", "new"), "--mode is missing"),
    (("add", "new", "--mode", "virtual"), "--version is missing"),
    (("add", "new", *ADD[:4]), "--pool is missing"),
    (("add", "new", *ADD[:6]), "--gpus is missing"),
    (("add", "new", "--mode", "fast"), "--mode fast is none; write one of virtual, host, default"),
    (("add", "new", *ADD[:4], "--pool", "x", "--gpus", "1"), "--pool x is not understood"),
    (("add", "new", *ADD, "--queue", "a=many"), "--queue a=many 'many' is no Kubernetes quantity"),
    (("add", "new", *ADD[2:], "--mode", "host"), "--version is for mode virtual"),
    (("add", "new", "--mode", "default", "--queue", "a=1"), "mode default has no queues"),
    (("add", "new", *ADD, "--queue", "a=3"), "the rules refuse this"),
    (("add", "Bad_Name", *ADD), "the rules refuse this"),
    (("add", "new", *ADD[:4], "--pool", "pool=ml", "--gpus", "1"), "the rules refuse this"),
]


@pytest.mark.parametrize(
    ("arguments", "says"), BAD, ids=lambda v: " ".join(v) if isinstance(v, tuple) else ""
)
def test_bad_input_is_one_sentence_and_leaves_the_file_alone(project, arguments, says):
    before = project.files()
    stack = () if "-s" in arguments else ("-s", "lab")
    ran = project.run("team", *arguments, *stack)
    assert ran.code == 1
    assert says in ran.refusal
    assert "\n" not in ran.refusal
    assert project.files() == before
    assert project.engine.asked == []


def test_a_version_that_cannot_schedule_the_queues_is_refused(project):
    deep = LAB.replace("train: {gpu: {quota: 3}}", "train: {gpu: {quota: 3}, children: {x: {}}}")
    (project.root / "Pulumi.lab.yaml").write_text(deep)
    ran = project.run("team", "switch", "ml", "v0.9.3", "-s", "lab", "--yes")
    assert "[queue-depth] kai-fleet:teams.ml.queues" in ran.out
    assert ran.refusal == "the rules refuse this; nothing is written"
    assert (project.text(), project.engine.asked) == (deep, [])


def test_a_team_stack_is_no_platform(with_own):
    ran = with_own.run("team", "switch", "vision", "v0.16.8", "-s", "lab-vision")
    assert (
        ran.refusal == "stack lab-vision is team vision's own, not a platform's; write --stack lab"
    )


def test_a_pool_of_a_team_with_its_own_stack_is_taken(with_own):
    pool = ("--mode", "virtual", "--version", "v0.16.8", "--pool", "pool=vision", "--gpus", "1")
    ran = with_own.run("team", "add", "new", "-s", "lab", *pool)
    assert "[team-node-pools]" in ran.out
    assert ran.refusal == "the rules refuse this; nothing is written"


@pytest.mark.parametrize(
    ("signal_number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_a_signal_during_the_update_puts_the_file_back(project, signal_number, code):
    before = project.files()

    def up(stack, show, *, color, teams, leaving):
        assert project.files() != before, "the update runs on the edited file"
        os.kill(os.getpid(), signal_number)
        time.sleep(5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fleet.engine.up", up)
        ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert ran.code == code
    assert project.files() == before
    assert "Pulumi.lab.yaml as before" in ran.out
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_refused_update_puts_the_file_back(project):
    before = project.files()
    project.engine.fails = EngineFailed("the update failed; the lines above say where and why")
    ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert ran.code == 1
    assert "the files are as they were" in ran.refusal
    assert project.files() == before


def test_an_update_that_failed_half_way_keeps_the_edit(project):
    project.engine.fails = EngineFailed("the update failed; the lines above say where and why")
    later = (datetime.now(UTC) + timedelta(minutes=1)).replace(tzinfo=None)
    project.engine.history = [SimpleNamespace(start_time=later, resource_changes={"update": 1})]
    ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert "The files keep the edit: run it again with\n  make up STACK=lab" in ran.refusal
    assert project.text() == LAB.replace("v0.14.7", "v0.16.8")


def test_what_a_killed_update_did_is_not_called_nothing(project, tmp_path):
    """The engine's history has no word of it; the lock that it left has."""
    lock = tmp_path / ".pulumi/locks/organization/kai-fleet/lab/1.json"
    lock.parent.mkdir(parents=True)
    held = {"username": "ann", "hostname": gethostname(), "pid": 2**22 + 1, "timestamp": "2026"}
    lock.write_text(json.dumps(held))
    project.engine.variables = {"PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    project.engine.fails = EngineFailed("the update was cut off")
    ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert "The files keep the edit: run it again with\n  make up STACK=lab" in ran.refusal
    assert project.text() == LAB.replace("v0.14.7", "v0.16.8")


def test_of_two_updates_the_first_is_not_taken_back(project):
    project.engine.fails, project.engine.fails_at = EngineFailed("the update failed"), "lab-new"
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--own-stack", "--yes")
    assert "the update failed. The files keep the edit: run it again with" in ran.refusal
    assert "kai-fleet:teamStacks:" in project.text()
    assert "name: new" in project.text("lab-new")


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


def test_an_edit_that_mends_a_file_is_not_held_up_by_what_the_file_was(project, monkeypatch):
    """The sandbox is started for what is going to run, and that was judged already."""
    asked = []

    def for_stack(stack, say, *, judged=True):
        asked.append(judged)
        return Environment()

    monkeypatch.setattr("fleet.teams.update.for_stack", for_stack)
    assert project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes").code == 0
    assert asked == [False]


def test_a_file_that_changed_meanwhile_is_not_overwritten(project):
    file = project.root / "Pulumi.lab.yaml"

    def destroyed_by_someone(stack, variables, **_):
        file.write_text(LAB + "# a colleague\n")
        return SimpleNamespace(name=stack)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fleet.teams.update.for_stack", destroyed_by_someone)
        ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert "was changed by something else meanwhile" in ran.refusal
    assert project.text().endswith("# a colleague\n")


HOST = """\
config:
  kai-fleet:cluster: {name: lab, context: lab}
  kai-fleet:kai: {version: v0.16.8}
  kai-fleet:queues:
    all: {gpu: {quota: 8}, children: {left: {gpu: {quota: 4}}, right: {gpu: {quota: 2}}}}
  kai-fleet:vcluster: {}
  kai-fleet:teams: {}
"""


def test_in_mode_host_a_team_gets_a_leaf_of_the_hosts_tree(project):
    (project.root / "Pulumi.lab.yaml").write_text(HOST)
    host = ("--mode", "host", "--gpus", "4", "--queue")
    ran = project.run("team", "add", "new", "-s", "lab", *host, "left", "--yes")
    assert ran.code == 0, ran.refusal
    assert "queue: left" in project.text()
    ran = project.run("team", "add", "own", "-s", "lab", *host, "right", "--own-stack", "--yes")
    assert ran.code == 0, ran.refusal
    assert "parentQueue: right" in project.text()
    assert "queue: right" in project.text("lab-own")
    ran = project.run("team", "switch", "new", "v0.16.8", "-s", "lab")
    assert "edit kai-fleet:kai.version in Pulumi.lab.yaml" in ran.refusal
    rows = project.run("teams", "-s", "lab", "--json").out
    assert '"guaranteed": 4.0' in rows
    assert '"guaranteed": 2.0' in rows
    ran = project.run("team", "remove", "new", "-s", "lab", "--yes")
    assert "queue left stays: it is the host's" in ran.out
