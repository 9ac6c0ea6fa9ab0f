"""The steps that `fleet upgrade` prints, taken one after another on a sandbox."""

import json

import pytest
from kubernetes import client

from kai_fleet_cli.backups import files
from kai_fleet_cli.stack_file.edit import with_value
from kai_fleet_cli.stack_file.reading import ROOT
from tests.engine import sandbox_commands
from tests.engine.product import project_with
from tests.engine.sandbox_commands import fleet_on, pulumi

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

STACK = "upgraded"
FILE = """\
config:
  kai-fleet:cluster: {name: upgraded, context: kai-fleet-sandbox}
  kai-fleet:vcluster:
    version: v0.35.3
    kubernetesVersion: v1.36.0
    access: {type: NodePort, host: 127.0.0.1}
  kai-fleet:teams:
    ml:
      scheduler: {mode: virtual, version: v0.9.3}
      nodePool: {kai-fleet/pool: ml}
      gpus: 2
      queues: {default: {gpu: 2, children: {train: {gpu: 2}}}}
    nlp:
      scheduler: {mode: default}
      nodePool: {kai-fleet/pool: nlp}
      gpus: 1
"""
SALT = next(
    line
    for line in (ROOT / "Pulumi.sandbox.yaml").read_text().splitlines(True)
    if line.startswith("encryptionsalt:")
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return project_with(tmp_path_factory.mktemp("upgraded"), STACK, FILE + SALT)


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    """The file of the key of backups, which the first one makes."""
    file = tmp_path_factory.mktemp("key") / "backup.key"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(files.KEY, str(file))
        yield file


@pytest.fixture(scope="module")
def fleet(sandbox, folder, key):
    return fleet_on(sandbox, folder, STACK)


def control_planes(host):
    """UID and chart of each team's control plane."""
    found = {}
    for team in ("ml", "nlp"):
        plane = client.AppsV1Api(host).read_namespaced_stateful_set(team, f"team-{team}").metadata
        found[team] = (plane.uid, plane.labels["chart"])
    return found


def test_an_old_kubernetes_is_refused_by_the_version_of_the_host(sandbox, folder):
    """The file alone is fine: only the run asks the host, through the engine's plugin."""
    file = folder / f"Pulumi.{STACK}.yaml"
    old = FILE.replace("v0.35.3", "v0.34.7").replace("v1.36.0", "v1.33.4")
    file.write_text(old + SALT)
    ran = sandbox_commands.fleet(sandbox, folder, "preview", stack=STACK)
    file.write_text(FILE + SALT)
    said = ran.stdout + ran.stderr
    assert ran.returncode != 0
    assert "runs Kubernetes v1.33.4 on a host of v1.36" in said and "write v0.35.3" in said


def backups(folder, key):
    """The backups beside the stack's file: which change each is before, and its vCluster's chart.

    Each is read as a restore reads it.
    """
    found = []
    for file in sorted((folder / "backups").glob("*.backup")):
        change, _, _ = file.stem.rsplit("-", 2)
        team = change.removeprefix(f"{STACK}-").partition("-")[0]
        found.append((change, files.read(team, file, key).record["vcluster"]))
    return found


def test_the_printed_steps_lead_to_where_nothing_is_left_to_do(sandbox, folder, fleet, host, key):
    file = folder / f"Pulumi.{STACK}.yaml"
    fleet("up")
    fleet("up")
    assert backups(folder, key) == []
    before = control_planes(host)
    taken = []
    while steps := json.loads(fleet("upgrade", "--kubernetes", "v1.36.3", "--json"))["steps"]:
        assert len(taken) < 8, "each step is taken once"
        step = steps[0]
        keys = ("config", *step["key"].split("."))
        file.write_text(with_value(file.read_text(), keys, step["after"], file.name))
        if "verify" in step:
            keys = ("config", *step["verify"].removesuffix(": true").split("."))
            file.write_text(with_value(file.read_text(), keys, True, file.name))
        _, *words = step["command"].removesuffix(f" --stack {STACK}").split()
        fleet(*words, *(["--yes"] if words[0] == "team" else []))
        taken.append((step["part"], step["team"], step["after"]))
    assert taken == [
        ("vCluster", "ml", "v0.36.1"),
        ("vCluster", "nlp", "v0.36.1"),
        ("Kubernetes", "ml", "v1.36.3"),
        ("Kubernetes", "nlp", "v1.36.3"),
        ("KAI", "ml", "v0.16.9"),
    ]
    assert backups(folder, key) == [
        ("upgraded-ml-before-0.36.1", "0.35.3"),
        ("upgraded-ml-before-v1.36.3", "0.36.1"),
        ("upgraded-nlp-before-0.36.1", "0.35.3"),
        ("upgraded-nlp-before-v1.36.3", "0.36.1"),
    ]
    after = control_planes(host)
    assert {chart for _, chart in after.values()} == {"vcluster-0.36.1"}
    assert {team: uid for team, (uid, _) in after.items()} == {
        team: uid for team, (uid, _) in before.items()
    }
    assert fleet("upgrade", "--kubernetes", "v1.36.3").endswith("nothing to do\n")
    ran = pulumi(sandbox, folder, "preview", "--stack", STACK, "--expect-no-changes")
    assert ran.returncode == 0, ran.stdout + ran.stderr
