"""`fleet team add`, `switch` and `rollback` on stack files: written, run, and refused."""

from types import SimpleNamespace

import pytest

from kai_fleet.fleet.deployed_state import KAI_SCHEDULER, RELEASE, TEAM, VIRTUAL_CLUSTER
from kai_fleet_cli.teams import connect
from tests.unit.team_project import ADD, GRANT, LAB, OWN


def test_a_switch_is_one_line_and_one_update(project):
    ran = project.run("team", "switch", "ml", "v0.16.8", "-s", "lab", "--yes")
    assert ran.code == 0
    assert project.text() == LAB.replace("v0.14.7", "v0.16.8")
    assert project.engine.asked == ["up lab, only ml"]
    assert "KAI v0.14.7 → v0.16.8, upgraded in place" in ran.out


def test_a_downgrade_says_why_it_replaces(project):
    ran = project.run("team", "switch", "ml", "v0.13.4", "-s", "lab", "--no-up")
    assert "replaced (helm cannot downgrade this chart)" in ran.out
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
    assert "            a: {gpu: 1.5}\n" in project.text()
    assert "new: new team in mode virtual" in ran.out
    assert "team kubeconfig new --stack lab --output new.kubeconfig" in ran.out
    assert "kai.scheduler/queue: a" in ran.out
    assert "kubectl fleet queues --kubeconfig new.kubeconfig" in ran.out
    assert project.run("plan", "--config", str(project.root / "Pulumi.lab.yaml")).code == 0


def test_a_team_with_its_own_stack_is_a_file_and_a_grant(project):
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--own-stack", "--yes")
    assert ran.code == 0, ran.refusal
    grant = "  kai-fleet:teamStacks:\n    new:\n      nodePool: {pool: new}\n      gpus: 2\n"
    assert project.text() == LAB + grant
    own = project.text("lab-new")
    assert "kai-fleet:platform: {stack: lab}" in own
    assert "    name: new\n" in own
    assert project.engine.asked == ["up lab, only new and grants", "up lab-new"]


def update(version, *, result="succeeded", kind="update", message=""):
    text = f'{{"ml": {{"scheduler": {{"mode": "virtual", "version": "{version}"}}}}}}'
    config = {"kai-fleet:teams": {"value": text, "secret": False}}
    return {"kind": kind, "result": result, "config": config, "message": message}


def test_a_rollback_goes_to_the_last_version_that_ran(project):
    project.updates = [
        update("v0.17.0", result="failed"),
        update("v0.17.0", kind="preview"),
        # What stood in the file while another team was changed did not run.
        update("v0.16.8", message="only team dev"),
        *[update("v0.14.7")] * 30,  # other teams' changes
        update("v0.13.4", message="only team dev, ml"),
        update("v0.7.11"),
    ]
    ran = project.run("team", "rollback", "ml", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert project.text() == LAB.replace("v0.14.7", "v0.13.4")


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ("v0.13.4", "ml: runs KAI v0.13.4; only its file goes back"),
        ("v0.16.8", "ml: KAI v0.16.8 → v0.13.4, replaced"),
    ],
)
def test_a_rollback_of_an_edit_that_was_not_applied_says_what_the_cluster_does(project, runs, says):
    project.resources = [kai(runs)]
    project.updates = [update("v0.13.4")]
    ran = project.run("team", "rollback", "ml", "-s", "lab", "--yes")
    assert says in ran.out


def kai(version):
    urn = f"urn:pulumi:lab::kai-fleet::{TEAM}${KAI_SCHEDULER}${RELEASE}::"
    return {"urn": f"{urn}ml-kai-release", "type": RELEASE, "outputs": {"version": version}}


def test_an_edit_that_was_not_run_is_run_by_the_same_command(project):
    project.resources = [kai("v0.13.4")]
    before = project.files()
    ran = project.run("team", "switch", "ml", "v0.14.7", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert "v0.14.7 already, in Pulumi.lab.yaml; only the update is left: KAI v0.13.4 →" in ran.out
    assert (project.files(), project.engine.asked) == (before, ["up lab, only ml"])
    ran = project.run("team", "switch", "ml", "v0.14.7", "-s", "lab")
    assert "Next:\n  make up STACK=lab" in ran.out
    assert "Written" not in ran.out


def test_a_version_that_runs_already_is_refused(project):
    project.resources = [kai("v0.14.7")]
    ran = project.run("team", "switch", "ml", "v0.14.7", "-s", "lab", "--yes")
    assert ran.refusal == (
        "kai-fleet:teams.ml has version v0.14.7 already, in Pulumi.lab.yaml, and stack lab runs it"
        "; if its update was cut off, go on with: .venv/bin/fleet up --refresh --stack lab"
    )
    assert project.engine.asked == []


def vcluster(name, stack="lab"):
    urn = f"urn:pulumi:{stack}::kai-fleet::{TEAM}${VIRTUAL_CLUSTER}${RELEASE}::"
    return {"urn": f"{urn}{name}-release", "type": RELEASE}


def test_a_team_that_was_written_and_not_made_is_made_by_the_same_command(project):
    project.resources = [vcluster("ml")]
    assert project.run("team", "add", "new", "-s", "lab", *ADD, "--no-up").code == 0
    before = project.files()
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--yes")
    assert ran.code == 0, ran.refusal
    assert "in Pulumi.lab.yaml; only the update is left: it is not made yet" in ran.out
    assert (project.files(), project.engine.asked) == (before, ["up lab, only new"])
    ran = project.run("team", "add", "new", "-s", "lab", *ADD[:-1], "1", "--yes")
    assert ran.refusal.endswith("in Pulumi.lab.yaml, with another --gpus; write another name")
    project.resources = [vcluster("ml"), vcluster("new")]
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--yes")
    assert ran.refusal.endswith("in Pulumi.lab.yaml, and it is made; write another name")


def test_a_team_stack_that_was_written_and_not_made_is_made_with_its_grant(project):
    assert project.run("team", "add", "new", "-s", "lab", *ADD, "--own-stack", "--no-up").code == 0
    ran = project.run("team", "add", "new", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert project.engine.asked == ["up lab, only new and grants", "up lab-new"]


def test_a_team_that_was_written_is_not_made_for_flags_that_want_other_queues(project):
    queues = ("--queue", "a=1", "--queue", "b=1")
    assert project.run("team", "add", "new", "-s", "lab", *ADD, *queues, "--no-up").code == 0
    for other in (("--queue", "a=1"), ("--queue", "a=1", "--queue", "b=0.5")):
        ran = project.run("team", "add", "new", "-s", "lab", *ADD, *other, "--yes")
        assert "with another --queue; write another name" in ran.refusal
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, *queues, "--yes")
    assert ran.code == 0, ran.refusal


def test_a_pool_without_nodes_is_refused_for_a_team_that_is_written_too(project, monkeypatch):
    assert project.run("team", "add", "new", "-s", "lab", *ADD, "--no-up").code == 0
    host = SimpleNamespace(nodes=lambda: [node("nwe")])
    monkeypatch.setattr(connect, "to_platform", lambda *_: connect.Connected(host, {}))
    ran = project.run("team", "add", "new", "-s", "lab", "--yes")
    assert ran.refusal.startswith("no Ready node has pool=new")
    assert project.engine.asked == []


def test_a_rollback_that_was_written_and_not_run_is_run_by_the_same_command(project):
    project.resources = [kai("v0.14.7")]
    project.updates = [update("v0.14.7"), update("v0.13.4")]
    assert project.run("team", "rollback", "ml", "-s", "lab", "--no-up").code == 0
    before = project.files()
    assert project.text() == LAB.replace("v0.14.7", "v0.13.4")
    ran = project.run("team", "rollback", "ml", "-s", "lab", "--yes")
    assert ran.code == 0, ran.refusal
    assert "only the update is left: KAI v0.14.7 → v0.13.4" in ran.out
    assert (project.files(), project.engine.asked) == (before, ["up lab, only ml"])


def node(pool, ready="True"):
    return {
        "metadata": {"labels": {"pool": pool}},
        "status": {
            "allocatable": {"nvidia.com/gpu": 8},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


@pytest.mark.parametrize(
    ("there", "refused"),
    [([node("new")], False), ([node("nwe")], True), ([node("new", "Unknown"), node("nwe")], True)],
    ids=["there", "a typo", "not Ready"],
)
def test_a_pool_without_a_ready_node_is_refused_before_anything_waits(
    project, monkeypatch, there, refused
):
    host = SimpleNamespace(nodes=lambda: there)
    monkeypatch.setattr(connect, "to_platform", lambda *_: connect.Connected(host))
    before = project.files()
    ran = project.run("team", "add", "new", "-s", "lab", *ADD, "--yes")
    assert (ran.code, project.files() == before) == (int(refused), refused)
    if refused:
        assert ran.refusal.startswith("no Ready node has pool=new, and without one the vCluster")
        assert "free are: pool=nwe (1 node, 8 GPUs)" in ran.refusal
        assert project.run("team", "add", "new", "-s", "lab", *ADD, "--no-up").code == 0


BAD = [
    (("switch", "mll", "v0.16.8"), "has no team mll; did you mean ml? Its teams: dev, ml"),
    (("switch", "ml", "v0.9.5"), "write v0.9.3 or v0.9.8"),
    (("switch", "ml", "0.16.8"), "write v0.16.8"),
    (("switch", "ml", "latest"), "not a version this program knows"),
    (("switch", "ml", "v0.20.1"), "it is retracted"),
    (("switch", "dev", "v0.16.8"), "team dev is in mode default, which has no KAI of its own"),
    (("switch", "ml", "v0.16.8", "-s", "nope"), "stacks with a file: lab"),
    (("rollback", "ml"), "no update in which team ml ran another version than v0.14.7"),
    (("rollback", "nope"), "its teams: dev, ml"),
    (("remove", "nope"), "its teams: dev, ml"),
    (("remove", "ml"), "write --yes"),
    (("kubeconfig", "nope"), "its teams: dev, ml"),
    (("add", "ml", *ADD), "has a team ml already, in Pulumi.lab.yaml"),
    (("add", "Bad Name"), "the name 'Bad Name' does not fit; write at most 40 lower-case letters"),
    (("add", "ml-"), "a letter first and no dash last"),
    (("add", "new", *ADD[:6], "--gpus", "-4"), "--gpus -4 is negative; write how many"),
    (("add", "a" * 41), "does not fit; write at most 40 lower-case letters"),
    (("add", "host"), "the name 'host' is what findings and metrics call the host cluster"),
    (("add", "new"), "--mode is missing; write, for example, --mode virtual"),
    (
        ("add", "new", "--mode", "virtual"),
        "write, for example, --version v0.16.9",
    ),
    (("add", "new", *ADD[:4]), "--pool is missing; write, for example, --pool pool=new"),
    (("add", "new", *ADD[:6]), "--gpus is missing; write, for example, --gpus 4"),
    (("add", "new", "--mode", "host", "--gpus", "1"), "--queue is missing; write, for example,"),
    (("add", "new", "--mode", "fast"), "--mode fast is none; write one of virtual, host, default"),
    (("add", "new", *ADD[:4], "--pool", "x", "--gpus", "1"), "--pool x is not understood"),
    (("add", "new", *ADD, "--queue", "a=many"), "--queue a=many 'many' is no Kubernetes quantity"),
    (("add", "new", *ADD[2:], "--mode", "host"), "--version is for mode virtual"),
    (("add", "new", "--mode", "default", "--queue", "a=1"), "mode default has no queues"),
    (("add", "new", *ADD, "--queue", "a=3"), "the rules refuse this"),
    (("add", "new", *ADD, "--queue", "a=1", "--queue", "a=2"), "--queue has a twice"),
    (("add", "new", "--mode", "host", "--queue", "a", "--queue", "b"), "write one --queue"),
    (("add", "Bad_Name", *ADD), "the name 'Bad_Name' does not fit"),
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
    assert "[queue-depth] kai-fleet:teams.ml.queues" in " ".join(ran.out.split())
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
