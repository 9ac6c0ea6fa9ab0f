"""`fleet team …` as typed, on a sandbox: one team comes, is switched, goes back and goes away.

Beside it is another team, of which nothing may change. The tests build on one another.
"""

import json

import pytest
import yaml
from kubernetes import client

from kai_fleet_cli.stack_file.reading import ROOT
from tests.engine.product import api, deployments, namespaces, project_with, queues
from tests.engine.sandbox_commands import fleet_on, pulumi

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
      scheduler: {mode: default}
      nodePool: {kai-fleet/pool: nlp}
      gpus: 8
"""
SALT = next(
    line
    for line in (ROOT / "Pulumi.sandbox.yaml").read_text().splitlines(True)
    if line.startswith("encryptionsalt:")
)
ADD = ("--mode", "virtual", "--version", "v0.9.3", "--pool", "kai-fleet/pool=vision", "--gpus", "4")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return project_with(tmp_path_factory.mktemp("commands"), STACK, FILE + SALT)


@pytest.fixture(scope="module")
def fleet(sandbox, folder):
    return fleet_on(sandbox, folder, STACK)


def inside(fleet, team, known={}):  # noqa: B006 - it stays the same, and asking takes long
    if team not in known:
        known[team] = api(fleet("team", "kubeconfig", team))
    return known[team]


def uids(host, team):
    """What makes a team: its namespace and its vCluster."""
    namespace = client.CoreV1Api(host).read_namespace(f"team-{team}")
    vcluster = client.AppsV1Api(host).read_namespaced_stateful_set(team, f"team-{team}")
    return namespace.metadata.uid, vcluster.metadata.uid, vcluster.metadata.generation


def queues_of(fleet, team):
    return {name: item["metadata"]["uid"] for name, item in queues(inside(fleet, team)).items()}


def nothing_is_left_to_do(sandbox, folder):
    """Plain Pulumi finds the stack as the file says, under the same rules."""
    pack = ("--policy-pack", ".venv/bin/kai-fleet-policy-pack")
    plain = ("preview", "--stack", STACK, "--expect-no-changes", *pack)
    ran = pulumi(sandbox, folder, *plain)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def listed(fleet):
    return {row["team"]: row for row in json.loads(fleet("teams", "--json"))["teams"]}


@pytest.fixture(scope="module")
def added(fleet):
    """What the first command prints, of a stack that has not been made yet: so it makes both."""
    return fleet("team", "add", "vision", *ADD, "--queue", "train=3", "--queue", "serve=1", "--yes")


@pytest.fixture(scope="module")
def neighbour(added, host):
    return uids(host, "nlp")


def test_a_team_is_added(added, fleet, folder, host):
    assert "team-vision" in namespaces(host)
    assert set(queues(inside(fleet, "vision"))) == {"default", "train", "serve"}
    text = (folder / f"Pulumi.{STACK}.yaml").read_text()
    assert text.startswith(FILE)
    assert text.endswith(SALT)
    assert f"fleet team kubeconfig vision --stack {STACK}" in added
    page = (ROOT / "docs" / "ml-engineers.md").read_text()  # which the next steps name
    pod = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    there = client.CoreV1Api(inside(fleet, "vision"))
    there.create_namespaced_pod("default", pod)  # the guard at admission takes it
    there.delete_namespaced_pod("first", "default", grace_period_seconds=0)
    rows = listed(fleet)
    assert set(rows) == {"nlp", "vision"}
    assert rows["vision"]["running"] == "v0.9.3"
    assert (rows["vision"]["GPUs"], rows["vision"]["guaranteed"]) == ("4", "4")


def test_a_switch_touches_that_team_only(fleet, host, neighbour, sandbox, folder):
    before = uids(host, "vision"), queues_of(fleet, "vision")
    fleet("team", "switch", "vision", "v0.16.8", "--yes")
    assert listed(fleet)["vision"]["running"] == "v0.16.8"
    assert "kai-scheduler-default" in deployments(inside(fleet, "vision"), "kai-scheduler")
    assert (uids(host, "vision"), queues_of(fleet, "vision")) == before
    assert uids(host, "nlp") == neighbour
    nothing_is_left_to_do(sandbox, folder)


@pytest.mark.slow
def test_a_rollback_goes_to_what_ran_before(fleet, host, neighbour):
    reported = fleet("team", "rollback", "vision", "--yes")
    assert "vision: KAI v0.16.8 → v0.9.3; queues and running pods stay" in reported
    assert "scheduler" in deployments(inside(fleet, "vision"), "kai-scheduler")
    assert listed(fleet)["vision"]["running"] == "v0.9.3"
    assert uids(host, "nlp") == neighbour


def test_a_team_is_removed_and_the_file_is_as_it_was(fleet, host, folder, neighbour):
    fleet("team", "remove", "vision", "--yes")
    assert "team-vision" not in namespaces(host)
    assert (folder / f"Pulumi.{STACK}.yaml").read_text() == FILE + SALT
    assert set(listed(fleet)) == {"nlp"}
    assert uids(host, "nlp") == neighbour
