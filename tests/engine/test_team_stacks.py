"""A platform and two teams with stacks of their own; the tests build on one another."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from kubernetes import client
from pulumi import automation

from kai_fleet.releases import kai
from kai_fleet_cli.doctor.diagnosis import diagnose
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT
from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams import state
from kai_fleet_policies.finding import Level
from tests.engine import broken_things as things
from tests.engine.product import (
    Product,
    api,
    cluster_roles,
    deployments,
    namespaces,
    project,
    queues,
)
from tests.engine.sandbox_commands import pulumi

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

NLP = """\
config:
  kai-fleet:platform: {stack: sandbox}
  kai-fleet:team:
    name: nlp
    scheduler: {mode: virtual, version: v0.9.3}
    queues: {all: {gpu: {quota: 8}, children: {nlp: {gpu: {quota: 8}}}}}
"""
GRANT = {"nodePool": {"kai-fleet/pool": "nlp"}, "gpus": 8}


@pytest.fixture(scope="module")
def directory(sandbox, tmp_path_factory):
    found = project(tmp_path_factory.mktemp("team-stacks") / "project")
    # Its salt is the sandbox's, so that the passphrase is too.
    salt = yaml.safe_load((found / "Pulumi.sandbox.yaml").read_text())["encryptionsalt"]
    (found / "Pulumi.sandbox-nlp.yaml").write_text(f"{NLP}encryptionsalt: {salt}\n")
    return found


@pytest.fixture(scope="module")
def platform(sandbox, directory):
    def edit(settings):
        dev = settings["kai-fleet:teams"]["dev"]
        settings["kai-fleet:teams"] = {"dev": dev}
        settings["kai-fleet:teamStacks"]["nlp"] = GRANT

    product = Product.of("sandbox", sandbox, directory)
    product.edit(edit)
    return product


@pytest.fixture(scope="module")
def granted(platform):
    return platform.up()


@pytest.fixture(scope="module")
def account(sandbox, granted):
    return state.of_account("vision", SANDBOX_CONTEXT, 1, "sandbox", str(sandbox.kubeconfig))


@pytest.fixture(scope="module")
def vision(sandbox, directory, account):
    product = Product.of("sandbox-vision", sandbox, directory)
    secret = automation.ConfigValue(account, secret=True)
    product.stack.set_config("kai-fleet:cluster.kubeconfig", secret, path=True)
    return product


@pytest.fixture(scope="module")
def nlp(sandbox, directory, granted):
    return Product.of("sandbox-nlp", sandbox, directory)


@pytest.fixture(scope="module")
def both(vision, nlp, sandbox, directory):
    """Both team stacks, made at the same time by plain `pulumi up`."""

    def up(stack):
        return pulumi(sandbox, directory, "up", "--yes", "--stack", stack)

    with ThreadPoolExecutor() as pool:
        return list(pool.map(up, ("sandbox-vision", "sandbox-nlp")))


def refusal(product):
    with pytest.raises(automation.errors.CommandError) as refused:
        product.stack.preview()
    return str(refused.value)


def forget(workspace, name):
    """Have no such stack, though tests before these had one here, and emptied it."""
    if any(stack.name == name for stack in workspace.list_stacks()):
        workspace.remove_stack(name, preserve_config=True)


def uids(host, inner, team):
    """What must not be made anew: the namespace, the vCluster, the queues."""
    found = {name: q["metadata"]["uid"] for name, q in queues(inner).items()}
    found["namespace"] = client.CoreV1Api(host).read_namespace(f"team-{team}").metadata.uid
    stateful = client.AppsV1Api(host).read_namespaced_stateful_set(team, f"team-{team}")
    return found | {"vcluster": stateful.metadata.uid}


def inside(product, team):
    return api(product.stack.outputs()["kubeconfigs"].value[team])


def test_a_team_stack_before_its_platform_says_what_to_run(sandbox, directory):
    """The first test: no platform is there yet, then one that has never been updated."""
    early = Product.of("sandbox-vision", sandbox, directory)
    forget(early.stack.workspace, "sandbox")
    reported = refusal(early)
    assert "kai-fleet:platform.stack" in reported
    assert "update it first: make up STACK=sandbox" in reported
    assert "Traceback" not in reported
    Product.of("sandbox", sandbox, directory)
    assert "which exports no platform" in refusal(early)


def test_two_team_stacks_are_made_at_once_one_with_its_own_account_only(both, vision, nlp, host):
    for ran in both:
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert {"team-vision", "team-nlp"} <= namespaces(host)
    assert set(queues(inside(vision, "vision"))) == {"default", "detect"}
    assert set(queues(inside(nlp, "nlp"))) == {"all", "nlp"}


def test_the_doctor_looks_at_a_team_stack_with_its_own_credentials(
    both, vision, nlp, directory, host, monkeypatch
):
    monkeypatch.setattr(reading, "ROOT", directory)

    def reported(stack):
        found = diagnose(stack)
        return found, {each.check: each for each in found.findings if each.level is not Level.OK}

    for stack in ("sandbox-vision", "sandbox-nlp"):
        found, ill = reported(stack)
        assert found.count(Level.MANDATORY) == 0, ill
        well = {each.check for each in found.findings if each.level is Level.OK}
        # `isolation` asks for lists of the whole cluster, which the account may not read.
        assert well >= {"vcluster", "nodes", "kai-parts", "queues", "guard"}
        # Its account may not list the host's cluster-wide objects; the platform's context may.
        assert ("readable" in ill) == (stack == "sandbox-vision")
    core = client.CoreV1Api(host)
    core.delete_namespaced_resource_quota("gpus", "team-vision")
    inner = inside(vision, "vision")
    with things.without_queue(inner, "detect"):
        ill = reported("sandbox-vision")[1]
        assert ill["isolation"].fix == "`.venv/bin/fleet up --refresh --stack sandbox`"
        assert ill["queues"].fix == "`.venv/bin/fleet up --refresh --stack sandbox-vision`"
        # The namespace is the platform's, whose doctor sees it too.
        assert "team-vision/gpus" in reported("sandbox")[1]["isolation"].subject


def test_the_bound_is_there_again_by_the_command_that_the_doctor_named(both, platform, host):
    platform.stack.refresh()
    assert "ResourceQuota vision-gpus" in platform.up().changed
    client.CoreV1Api(host).read_namespaced_resource_quota("gpus", "team-vision")


def test_the_platform_is_seen_in_the_team_stack_and_its_secrets_stay_secret(both, vision, sandbox):
    resources = vision.stack.export_stack().deployment["resources"]
    (reference,) = [r for r in resources if r["type"] == "pulumi:pulumi:StackReference"]
    assert reference["inputs"]["name"] == "organization/kai-fleet/sandbox"
    (kept,) = (sandbox.directory / "state").rglob("stacks/**/sandbox-vision.json")
    assert '"platform"' in kept.read_text()
    assert "client-key-data" not in kept.read_text(), "neither its own nor the platform's"
    assert "token:" not in kept.read_text()


def test_the_offline_plan_of_a_team_stack_is_what_the_engine_has(both, nlp):
    planned = {item.urn for item in plan("sandbox-nlp", nlp.file).resources}
    deployment = nlp.stack.export_stack().deployment
    created = {r["urn"] for r in deployment["resources"] if "::default" not in r["urn"]}
    assert planned == {urn for urn in created if "pulumi:pulumi:Stack::" not in urn}


def test_a_switch_needs_no_more_than_the_account(both, vision):
    def edit(settings):
        settings["kai-fleet:team"]["scheduler"]["version"] = "v0.17.0"

    vision.edit(edit)
    run = vision.up()
    assert {name for name in run.changed if "vision-kai" not in name} <= {
        "Stack kai-fleet-sandbox-vision"
    }
    assert any("vision-kai" in name for name in run.changed)
    assert deployments(inside(vision, "vision"), "kai-scheduler") >= set(kai("v0.17.0").deployments)


def test_more_than_the_grant_is_refused_at_preview(both, vision):
    vision.edit(lambda settings: settings["kai-fleet:team"].update(gpus=5))
    reported = refusal(vision)
    assert "kai-fleet:team.gpus" in reported
    assert "is an unknown key; the keys here are scheduler," in reported
    vision.edit(lambda settings: settings["kai-fleet:team"].pop("gpus"))


@pytest.mark.slow
def test_a_grant_is_not_withdrawn_while_the_team_runs(both, platform, nlp, host):
    platform.edit(lambda settings: settings["kai-fleet:teamStacks"].pop("nlp"))
    before = uids(host, inside(nlp, "nlp"), "nlp")
    with pytest.raises(automation.errors.CommandError) as refused:
        platform.up()
    assert "kai-fleet:removed: [nlp]" in str(refused.value)
    assert uids(host, inside(nlp, "nlp"), "nlp") == before, "what runs is not taken away"
    platform.edit(lambda settings: settings["kai-fleet:teamStacks"].update(nlp=GRANT))
    assert platform.up().changed == {}


def test_a_team_stack_is_removed_whole_by_its_account(both, vision, host):
    vision.stack.destroy()
    assert "team-vision" in namespaces(host), "it is the platform's"
    core, apps = client.CoreV1Api(host), client.AppsV1Api(host)
    assert apps.list_namespaced_stateful_set("team-vision").items == []
    for left in (
        core.list_namespaced_pod("team-vision"),
        core.list_namespaced_persistent_volume_claim("team-vision"),
    ):
        assert [entry for entry in left.items if entry.metadata.deletion_timestamp is None] == []
    names = {entry.metadata.name for entry in core.list_namespaced_secret("team-vision").items}
    assert "vc-vision" not in names
    assert cluster_roles(host, "vision") == set()
    assert "team-nlp" in namespaces(host)
