"""docs/lost-state.md: a stack whose state is gone goes on, and nothing is made anew."""

import json
import re

import pytest
from kubernetes import client

from kai_fleet_cli.stack_file.reading import ROOT
from tests.engine.product import api, project_with, queues
from tests.engine.sandbox_commands import fleet, fleet_on, pulumi, typed, until

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

STACK = "lost"
SALT = (ROOT / "Pulumi.sandbox.yaml").read_text().splitlines()[-1]
TEAM = """\
    {name}:
      scheduler: {{mode: virtual, version: v0.16.8}}
      nodePool: {{kai-fleet/pool: {name}}}
      gpus: 8
      queues: {{default: {{children: {{train: {{gpu: 6}}}}}}}}
"""
FILE = f"""\
config:
  kai-fleet:cluster: {{name: lost, context: kai-fleet-sandbox}}
  kai-fleet:gpu: {{provider: device-plugin}}
  kai-fleet:vcluster:
    kubernetesVersion: v1.36.3
    access: {{type: NodePort, host: 127.0.0.1}}
  kai-fleet:teams:
{TEAM.format(name="ml")}{SALT}
"""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "job"},
    "spec": {"containers": [{"name": "main", "image": "busybox:1.37"}]},
}


def commands(heading):
    """The lines of the first console block below a heading of the page."""
    page = (ROOT / "docs" / "lost-state.md").read_text().partition(f"\n## {heading}\n")[2]
    block = re.search(r"```console\n(.*?)```", page, re.DOTALL)
    assert block, heading
    text = re.sub(r"(--stack|--create|--yes) prod", rf"\1 {STACK}", block[1])
    return [line.partition("   #")[0] for line in text.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return project_with(tmp_path_factory.mktemp("lost"), STACK, FILE)


@pytest.fixture(scope="module")
def run(sandbox, folder):
    return fleet_on(sandbox, folder, STACK)


@pytest.fixture(scope="module")
def walk(sandbox, folder):
    """Run the commands below a heading, as somebody types them; the last output."""

    def walk(heading):
        for command in commands(heading):
            ran = typed(folder, command, **sandbox.env())
            assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
            print(command, ran.stdout, ran.stderr)
        return ran.stdout

    return walk


@pytest.fixture(scope="module")
def made(run, sandbox, folder):
    """What is to stay: UIDs of what the team has on the host and inside."""
    run("up", "--yes", STACK)
    kubeconfig = fleet(sandbox, folder, "team", "kubeconfig", "ml", stack=STACK).stdout
    core = client.CoreV1Api(api(kubeconfig))
    until(lambda: core.read_namespaced_service_account("default", "default"))
    core.create_namespaced_pod("default", POD)
    return kubeconfig


@pytest.fixture
def lose(sandbox, folder, host, made):
    """Lose the state; afterwards nothing may have been made anew."""
    inside = api(made)

    def uids():
        core = client.CoreV1Api(inside)
        plane = client.AppsV1Api(host).read_namespaced_stateful_set("ml", "team-ml")
        return {
            "vCluster": core.read_namespace("kube-system").metadata.uid,
            "pod": core.read_namespaced_pod("job", "default").metadata.uid,
            "queues": {name: item["metadata"]["uid"] for name, item in queues(inside).items()},
            "namespace": client.CoreV1Api(host).read_namespace("team-ml").metadata.uid,
            "plane": plane.metadata.uid,
        }

    before = uids()

    def lose():
        stack_rm = ("stack", "rm", "--force", "--preserve-config", "--yes", "--stack", STACK)
        ran = pulumi(sandbox, folder, *stack_rm)
        assert ran.returncode == 0, ran.stderr
        assert (folder / f"Pulumi.{STACK}.yaml").exists()

    yield lose
    plain = pulumi(sandbox, folder, "preview", "--stack", STACK, "--expect-no-changes")
    assert plain.returncode == 0, plain.stdout + plain.stderr
    assert uids() == before


def test_a_lost_state_names_the_page_and_opens_no_guard(run, lose, walk):
    walk("Keep an export")
    lose()
    refused = run("up", "--yes", STACK, fails=True)
    assert "docs/lost-state.md" in refused
    assert "delete validatingadmissionpolicy" not in refused
    walk("With the export of the last update")


def test_an_export_has_no_secret_in_clear(made, folder, lose, walk):
    walk("Keep an export")
    text = (folder / "state.json").read_text()
    keys = re.findall(r"client-key-data: (\S+)", made)
    assert keys
    assert not [key for key in keys if key in text]
    assert "PRIVATE KEY" not in text
    assert json.loads(text)["deployment"]["secrets_providers"]["type"] == "passphrase"


def test_an_older_export_is_enough(run, lose, walk, folder):
    walk("Keep an export")
    file = folder / f"Pulumi.{STACK}.yaml"
    file.write_text(file.read_text().replace("train: {gpu: 6}", "train: {gpu: 4}"))
    run("up", "--yes", STACK)
    lose()
    walk("With an older export")


def test_without_an_export_everything_is_imported(lose, walk, made, folder):
    lose()
    walk("Without an export")
