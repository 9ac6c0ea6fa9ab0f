"""`fleet team …` as typed, on a sandbox: one team comes, is switched, goes back and goes away.

Beside it is another team, of which nothing may change. The tests build on one another.
"""

import json
import os
import signal
import subprocess
import sys

import pytest
import yaml
from kubernetes import client
from pulumi import automation

from kai_fleet.fleet.deployed_state import STACK as STACK_TYPE
from kai_fleet_cli.engine import runs
from kai_fleet_cli.recovery import state
from kai_fleet_cli.recovery.state import is_secret
from kai_fleet_cli.stack_file.reading import ROOT
from tests.engine.product import api, copied, deployments, namespaces, queues

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

STACK = "commands"
FILE = """\
# A platform with one team; the other comes and goes by commands.
config:
  kai-fleet:cluster: {name: commands, context: kai-fleet-sandbox}
  kai-fleet:vcluster:
    kubernetesVersion: v1.36.3
    access: {type: NodePort, host: 127.0.0.1}   # the sandbox is here
  kai-fleet:teams:
    nlp:
      scheduler: {mode: virtual, version: v0.16.8}
      nodePool: {kai-fleet/pool: nlp}
      gpus: 8
      queues: {train: {gpu: {quota: 8}}}
"""
SALT = next(
    line
    for line in (ROOT / "Pulumi.sandbox.yaml").read_text().splitlines(True)
    if line.startswith("encryptionsalt:")
)
ADD = ("--mode", "virtual", "--version", "v0.9.3", "--pool", "kai-fleet/pool=vision", "--gpus", "4")
SWITCH = ("team", "switch", "vision", "v0.16.8", "--yes")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = copied(tmp_path_factory.mktemp("commands") / "project")
    (folder / f"Pulumi.{STACK}.yaml").write_text(FILE + SALT)
    with (folder / "__main__.py").open("a") as program:  # as somebody who declares more does
        program.write('    import pulumi\n\n    pulumi.ComponentResource("own:index:Own", "own")\n')
    return folder


@pytest.fixture(scope="module")
def fleet(sandbox, folder):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "kai_fleet_cli", *arguments, "--stack", STACK],
            cwd=folder,
            env={**os.environ, "KAI_FLEET_SANDBOX": str(sandbox.directory), "COLUMNS": "120"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def host(sandbox):
    return api(sandbox.kubeconfig.read_text())


@pytest.fixture(scope="module")
def first(fleet):
    ran = fleet("up")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def inside(fleet, team, known={}):  # noqa: B006 - it stays the same, and asking takes long
    if team not in known:
        ran = fleet("team", "kubeconfig", team)
        assert ran.returncode == 0, ran.stderr
        known[team] = api(ran.stdout)
    return known[team]


def uids(fleet, host, team):
    """What makes a team: its namespace, its vCluster, its deployments and queues inside."""
    there = inside(fleet, team)
    namespace = client.CoreV1Api(host).read_namespace(f"team-{team}")
    vcluster = client.AppsV1Api(host).read_namespaced_stateful_set(team, f"team-{team}")
    found = {"namespace": namespace.metadata.uid, "vcluster": vcluster.metadata.uid}
    found["generation"] = str(vcluster.metadata.generation)
    found |= {f"queue {name}": q["metadata"]["uid"] for name, q in queues(there).items()}
    for item in client.AppsV1Api(there).list_namespaced_deployment("kai-scheduler").items:
        found[f"deployment {item.metadata.name}"] = item.metadata.uid
    return found


@pytest.fixture(scope="module")
def neighbour(first, fleet, host):
    return uids(fleet, host, "nlp")


def listed(fleet):
    ran = fleet("teams", "--json")
    assert ran.returncode == 0, ran.stderr
    return {row["team"]: row for row in json.loads(ran.stdout)["teams"]}


def test_a_team_is_added(neighbour, fleet, folder, host):
    ran = fleet("team", "add", "vision", *ADD, "--queue", "train=3", "--queue", "serve=1", "--yes")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "team-vision" in namespaces(host)
    assert set(queues(inside(fleet, "vision"))) == {"default", "train", "serve"}
    text = (folder / f"Pulumi.{STACK}.yaml").read_text()
    assert text.startswith(FILE)
    assert text.endswith(SALT)
    pod = yaml.safe_load(ran.stdout.split("<<'EOF'\n")[1].split("EOF")[0])
    there = client.CoreV1Api(inside(fleet, "vision"))
    there.create_namespaced_pod("default", pod)  # the guard at admission takes it
    there.delete_namespaced_pod("first", "default", grace_period_seconds=0)


def test_the_list_tells_what_is_wanted_and_what_runs(fleet):
    rows = listed(fleet)
    assert set(rows) == {"nlp", "vision"}
    assert rows["vision"]["version"] == {"wanted": "v0.9.3", "running": "v0.9.3"}
    assert rows["vision"]["gpus"] == {"most": 4, "guaranteed": 4.0, "used": 0.0}
    assert rows["nlp"]["supportEnd"] == "2027-06-30"


@pytest.mark.slow
def test_an_interrupted_switch_leaves_the_file_as_it_was(fleet, folder, sandbox):
    file = folder / f"Pulumi.{STACK}.yaml"
    before = file.read_bytes()
    running = subprocess.Popen(
        [sys.executable, "-m", "kai_fleet_cli", *SWITCH, "--stack", STACK],
        cwd=folder,
        env={**os.environ, "KAI_FLEET_SANDBOX": str(sandbox.directory)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    printed = ""
    while "Release vision-kai-release updating" not in printed:
        line = running.stdout.readline()
        assert line, printed
        printed += line
    assert file.read_bytes() != before
    running.send_signal(signal.SIGTERM)
    printed += running.communicate(timeout=120)[0]
    assert running.returncode == 143, printed
    assert file.read_bytes() == before
    assert "Traceback" not in printed
    assert "or run the same command again to go on" in printed


def test_a_switch_touches_that_team_only(fleet, host, neighbour):
    before = uids(fleet, host, "vision")
    ran = fleet(*SWITCH)  # it goes on from where it was interrupted
    if "ended in the middle of: Release vision-kai-release" in ran.stderr + ran.stdout:
        # Helm was cut off, and there is no terminal to ask at: the command that it names mends it,
        # and brings what the file says by then.
        ran = fleet("up", "--refresh")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert listed(fleet)["vision"]["version"] == {"wanted": "v0.16.8", "running": "v0.16.8"}
    after = uids(fleet, host, "vision")
    assert "deployment kai-scheduler-default" in after
    for kept in ("namespace", "vcluster", "queue default", "queue train", "queue serve"):
        assert after[kept] == before[kept]
    assert uids(fleet, host, "nlp") == neighbour


@pytest.mark.slow
def test_a_rollback_goes_to_what_ran_before(fleet, host, folder, neighbour):
    ran = fleet("team", "rollback", "vision", "--yes")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "vision: KAI v0.16.8 → v0.9.3, replaced" in ran.stdout
    assert "scheduler" in deployments(inside(fleet, "vision"), "kai-scheduler")
    assert listed(fleet)["vision"]["version"] == {"wanted": "v0.9.3", "running": "v0.9.3"}
    assert uids(fleet, host, "nlp") == neighbour


def test_what_came_meanwhile_stays_where_a_team_is_removed(fleet, sandbox, folder, monkeypatch):
    opened = runs.stack(STACK, sandbox.env(), folder)
    read = state.exported(opened).resources
    before = [it for it in read if not it["urn"].endswith("::nlp-queues")]
    monkeypatch.setattr(state, "exported", lambda _: state.ExportedState({"resources": before}))
    said = []
    with pytest.raises(runs.EngineError):
        runs.up(opened, said.append, teams=["vision"], removes=True)
    assert "meanwhile, so nothing was done; run the same command again" in "".join(said)
    assert "train" in queues(inside(fleet, "nlp"))


def test_a_team_is_removed_and_the_file_is_as_it_was(fleet, host, folder, neighbour):
    file = folder / f"Pulumi.{STACK}.yaml"
    file.write_text(file.read_text().replace("train: {gpu: {quota: 8}}", "train: {gpu: 7}"))
    ran = fleet("team", "remove", "vision", "--yes")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "team-vision" not in namespaces(host)
    quota = queues(inside(fleet, "nlp"))["train"]["spec"]["resources"]["gpu"]["quota"]
    assert quota == 8, "what else was edited waits"
    file.write_text(file.read_text().replace("train: {gpu: 7}", "train: {gpu: {quota: 8}}"))
    assert file.read_text() == FILE + SALT
    assert set(listed(fleet)) == {"nlp"}
    assert uids(fleet, host, "nlp") == neighbour


def outputs(opened):
    """In clear, as `pulumi stack output` has them."""
    return automation.LocalWorkspace.stack_outputs(opened.workspace, STACK)


def test_the_stack_says_after_the_removal_who_is_left(sandbox, folder):
    opened = runs.stack(STACK, sandbox.env(), folder)
    said = outputs(opened)
    assert set(said["teams"].value) == set(said["kubeconfigs"].value) == {"nlp"}
    top = next(it for it in state.read(opened).resources if it["type"] == STACK_TYPE)
    assert is_secret(top["outputs"]["kubeconfigs"]["nlp"])


@pytest.mark.slow
def test_an_update_of_all_after_the_removal_says_the_same(fleet, sandbox, folder):
    opened = runs.stack(STACK, sandbox.env(), folder)
    said = {name: output.value for name, output in outputs(opened).items()}
    ran = fleet("up")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Nothing changed: " in ran.stdout
    assert {name: output.value for name, output in outputs(opened).items()} == said


def test_what_the_program_declares_besides_is_never_taken_away(fleet, sandbox, folder):
    opened = runs.stack(STACK, sandbox.env(), folder)
    assert [it for it in state.read(opened).resources if it["type"] == "own:index:Own"]
