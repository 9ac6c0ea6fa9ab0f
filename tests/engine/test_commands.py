"""Guide 000 by what a person types: three teams, three schedulers; `fleet`, and plain `pulumi`."""

import functools
import json
import re
import shutil

import pytest
import yaml
from kubernetes import client

from kai_fleet.names import STACK
from kai_fleet.releases import kai
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.plan.recorder import SECRET, UNKNOWN
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.reading import ROOT
from kai_usage.quantities import parse_quantity
from tests.attacks.hold_ups import ACTS, LINE, is_at_work
from tests.attacks.http import Http
from tests.engine import sandbox_commands
from tests.engine.product import (
    api,
    cluster_roles,
    copied,
    deployments,
    namespaces,
    queues,
)
from tests.engine.sandbox_commands import pulumi, typed, until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the project: tests of other modules read the checkout's own stack file."""
    folder = copied(tmp_path_factory.mktemp("first") / "project")
    for file in ROOT.glob("Pulumi.sandbox*.yaml"):
        shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="module")
def fleet(sandbox, folder):
    return functools.partial(sandbox_commands.fleet, sandbox, folder)


@pytest.fixture(scope="module")
def first(fleet, folder):
    before = (folder / "Pulumi.sandbox.yaml").read_text()
    ran = fleet("up", stack="sandbox")
    assert (folder / "Pulumi.sandbox.yaml").read_text() == before, "the stack file stays as it was"
    return ran


@pytest.fixture(scope="module")
def inside(first, fleet):
    """What `fleet team kubeconfig` gives for each team."""
    teams = ("ml", "research", "dev")
    return {team: fleet("team", "kubeconfig", team, stack="sandbox").stdout for team in teams}


def test_the_sandbox_has_versions_that_get_fixes_and_each_step_is_one_line(first):
    assert "out of support" not in first.stdout
    assert "no support dates" not in first.stdout
    assert not re.search(r" creating \(\d+s\)$", first.stdout, re.M)
    assert "Stack kai-fleet-sandbox is created" not in first.stdout


def test_an_update_is_shown_by_pulumi(first):
    assert re.search(
        r"^ \+ +kubernetes:helm.sh/v3:Release ml-kai-release created", first.stdout, re.M
    )


def test_up_ends_with_a_table_and_what_to_try_next(first):
    assert first.returncode == 0, first.stdout + first.stderr
    table = first.stdout[first.stdout.index("Stack sandbox") :]
    assert "KAI v0.14.7" in table
    assert "KAI v0.16.8" in table
    assert "https://127.0.0.1:" in table
    assert "Not real here: nodes, GPUs and pods (KWOK), vCluster's syncer," in table
    assert "fleet team kubeconfig ml --stack sandbox --output ml.kubeconfig" in table
    assert 'eval "$(.venv/bin/fleet sandbox env)"' in table


def test_every_team_gets_its_own_scheduler_version(inside):
    assert deployments(api(inside["ml"]), "kai-scheduler") >= set(kai("v0.14.7").deployments)
    research = deployments(api(inside["research"]), "kai-scheduler")
    assert research >= set(kai("v0.16.8").deployments)
    assert "kai-scheduler" not in namespaces(api(inside["dev"]))


def test_queues_are_there_with_their_parents_and_limits(inside):
    found = queues(api(inside["ml"]))
    assert set(found) == {"default", "train", "serve"}
    assert found["train"]["spec"]["parentQueue"] == "default"
    gpu = {"quota": 2, "limit": 4, "overQuotaWeight": 1}
    assert found["serve"]["spec"]["resources"]["gpu"] == gpu
    assert set(queues(api(inside["research"]))) == {"default", "test"}


def test_a_team_sees_the_nodes_of_its_pool_and_no_others(inside):
    nodes = client.CoreV1Api(api(inside["ml"])).list_node().items
    assert {node.metadata.labels["kai-fleet/pool"] for node in nodes} == {"ml"}
    assert {node.status.allocatable["nvidia.com/gpu"] for node in nodes} != {None}


def test_the_offline_plan_is_what_the_engine_made(first, sandbox, folder, monkeypatch):
    monkeypatch.setenv("KAI_FLEET_CHARTS", sandbox.env()["KAI_FLEET_CHARTS"])
    exported = json.loads(pulumi(sandbox, folder, "stack", "export", "--stack", "sandbox").stdout)
    # Default providers are the engine's own, made for what names none.
    state = {
        resource["urn"]: resource
        for resource in exported["deployment"]["resources"]
        if resource["type"] != STACK and "::default" not in resource["urn"]
    }
    settings = reading.read(folder / "Pulumi.sandbox.yaml")
    planned = {item.urn: item for item in recorder.record("sandbox", settings)}
    assert set(planned) == set(state)
    compared = 0
    for urn, item in planned.items():
        if not state[urn]["custom"]:
            continue
        inputs = dict(state[urn].get("inputs", {}))
        for path, value in leaves(item.inputs):
            # `compat` is a mark of the SDK for its provider, which takes it out.
            if value in (SECRET, UNKNOWN) or path == ("compat",):
                continue
            created = functools.reduce(lambda at, key: at[key], path, inputs)
            # Pulumi's plugin writes quantities in Kubernetes' shortest form: 5k for 5000.
            if path[:2] == ("spec", "hard"):
                created, value = parse_quantity(created), parse_quantity(value)
            assert created == value, f"{urn} {path}"
            compared += 1
    assert compared > 300


def leaves(value, path=()):
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            yield from leaves(inner, (*path, key))
    else:
        yield path, value


def test_no_kubeconfig_is_printed_by_an_update(first, inside):
    for kubeconfig in inside.values():
        secrets = [line.split(": ", 1)[1] for line in kubeconfig.splitlines() if "-data: " in line]
        assert secrets
        assert not [secret for secret in secrets if secret in first.stdout + first.stderr]


def test_a_second_up_changes_nothing_and_says_so(first, fleet):
    second = fleet("up", stack="sandbox")
    assert second.returncode == 0, second.stdout + second.stderr
    assert "Nothing changed: " in second.stdout
    assert not re.search(r"^ [+~-]", second.stdout, re.M)


def test_a_team_that_is_not_there_names_those_that_are(first, fleet):
    found = fleet("team", "kubeconfig", "nosuch", stack="sandbox")
    assert found.returncode == 1
    assert "its teams: dev, ml, research" in found.stderr
    assert "Traceback" not in found.stderr


def test_the_sandbox_takes_one_stack_at_a_time(first, fleet):
    refused = fleet("up", stack="sandbox-host")
    assert refused.returncode == 1
    assert "the sandbox runs stack sandbox" in refused.stderr
    assert "make down" in refused.stderr


def test_what_a_tenant_does_inside_holds_up_its_own_team(inside, fleet, sandbox, folder):
    """The command at the end puts it right. Other acts: tests/attacks/test_hold_ups.py."""
    act, tenant = ACTS[0], Http(api(inside["ml"]))
    act.do(tenant)
    until(lambda: is_at_work(act, tenant))
    file = folder / "Pulumi.sandbox.yaml"
    config = yaml.safe_load(file.read_text())
    teams = config["config"]["kai-fleet:teams"]
    for team, queue in (("ml", "train"), ("research", "test")):
        teams[team]["queues"]["default"]["children"][queue]["gpu"] = 5
    file.write_text(yaml.safe_dump(config))

    def quota(team, queue):
        return queues(api(inside[team]))[queue]["spec"]["resources"]["gpu"]["quota"]

    ran = fleet("up", stack="sandbox")
    assert ran.returncode == 1
    ((team, cause, command),) = LINE.findall(f"{ran.stdout}\n{ran.stderr}")
    assert (team, act.says in cause) == ("ml", True), cause
    assert (quota("ml", "train"), quota("research", "test")) == (6, 5)
    own = {**sandbox.env(), "KAI_FLEET_SANDBOX": str(sandbox.directory)}
    repaired = typed(folder, command, **own)
    assert repaired.returncode == 0, repaired
    again = fleet("up", stack="sandbox")
    assert again.returncode == 0, again.stdout + again.stderr
    assert quota("ml", "train") == 5


def test_destroy_empties_the_cluster(first, fleet, sandbox):
    refused = fleet("destroy", stack="sandbox")
    assert refused.returncode == 1
    assert "write --yes: .venv/bin/fleet destroy --stack sandbox --yes" in refused.stderr
    host = api(sandbox.kubeconfig.read_text())
    assert namespaces(host) >= {"team-ml", "team-research", "team-dev"}, "nothing was begun"
    gone = fleet("destroy", "--yes", stack="sandbox")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    host = api(sandbox.kubeconfig.read_text())
    assert not namespaces(host) & {"team-ml", "team-research", "team-dev"}
    assert cluster_roles(host, "ml", "research", "dev") == set()
    assert "nvidia-device-plugin" not in namespaces(host)
    classes = client.NodeV1Api(host).list_runtime_class().items
    assert "nvidia" in {item.metadata.name for item in classes}, "others may use it by now"
