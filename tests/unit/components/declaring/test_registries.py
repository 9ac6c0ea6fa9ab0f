"""Registries' credentials of a stack file: the Secrets of them, and who pulls with those."""

import base64
import copy
import json

import pytest

from kai_fleet.declaring.pull_secrets import docker_config
from kai_fleet.names import STACK_PULL_SECRET, TEAM_PULL_SECRET
from kai_fleet.releases import KAI, kai
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_stack import validation
from kai_fleet_stack.arguments import team as team_arguments
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.team_stack import Facts
from tests.unit.cli.doctor.doctor_samples import SETTINGS
from tests.unit.stack.stack_arguments import team_stack

MIRROR, OWN = "mirror.example.com", "own.example.com:5000/ml"


def account(password="[secret]"):
    return {"username": "robot", "password": password}


def stack(of_team=None, **keys):
    raw = copy.deepcopy(SETTINGS) | {"registries": {MIRROR: account()}} | keys
    if of_team:
        raw["teams"]["ml"]["registries"] = of_team
    return raw


def secrets(created):
    found = [item for item in created if item.type == "kubernetes:core/v1:Secret"]
    assert all(
        item.inputs["type"] == "kubernetes.io/dockerconfigjson"
        and item.inputs["data"] == "[secret]"
        for item in found
    )
    meta = [item.inputs["metadata"] for item in found]
    return {(item["namespace"], item["name"]) for item in meta}


def test_a_secret_is_made_wherever_images_are_pulled():
    raw = stack({OWN: account()}, gpu={"provider": "operator"})
    raw["vcluster"] = {"imagePullSecrets": ["there"]}
    plan = plan_settings(raw)
    assert plan.problems == ()
    places = {
        ("gpu-operator", STACK_PULL_SECRET),
        ("team-ml", STACK_PULL_SECRET),
        ("team-ml", TEAM_PULL_SECRET),
    }
    assert secrets(plan.resources) == places
    by_name = {resource.name: resource.inputs for resource in plan.resources}
    operator = by_name["host-gpu-release"]["values"]
    assert operator["driver"] == {"imagePullSecrets": [STACK_PULL_SECRET]}
    assert operator["node-feature-discovery"] == {"imagePullSecrets": [{"name": STACK_PULL_SECRET}]}
    # A pod that names a Secret has none of its account's.
    assert "imagePullSecrets" not in by_name["ml-kai-release"]["values"]["global"]
    advanced = by_name["ml-release"]["values"]["controlPlane"]["advanced"]
    # Names of Secrets that are there stay beside those that are made.
    assert pulled(advanced["workloadServiceAccount"]) == [
        "there",
        STACK_PULL_SECRET,
        TEAM_PULL_SECRET,
    ]
    assert pulled(advanced["serviceAccount"]) == ["there", STACK_PULL_SECRET, TEAM_PULL_SECRET]


def test_the_hosts_kai_pulls_with_it():
    raw = stack(teams={}, kai={"version": "v0.16.8"})
    by_name = {resource.name: resource.inputs for resource in plan_settings(raw).resources}
    created = by_name["host-kai-registries"], by_name["host-kai-reservation-registries"]
    spaces = [item["metadata"]["namespace"] for item in created]
    assert spaces == ["kai-scheduler", "kai-resource-reservation"]
    assert pulled(by_name["host-kai-release"]["values"]["global"]) == [STACK_PULL_SECRET]


def pulled(values):
    return [secret["name"] for secret in values["imagePullSecrets"]]


def test_without_credentials_nothing_is_made_or_named():
    plan = plan_settings(copy.deepcopy(SETTINGS) | {"gpu": {"provider": "device-plugin"}})
    assert secrets(plan.resources) == set()
    assert not any("imagePullSecrets" in str(resource.inputs) for resource in plan.resources)


@pytest.mark.parametrize("password", ["pä:ss", 1234567], ids=["text", "of another resource"])
def test_a_secret_is_what_kubectl_would_make(password):
    text = docker_config({MIRROR: account(password)})
    (entry,) = json.loads(base64.b64decode(text))["auths"].items()
    assert entry[0] == MIRROR and entry[1]["password"] == str(password)
    assert base64.b64decode(entry[1]["auth"]).decode() == f"robot:{password}"


@pytest.mark.parametrize(
    ("registry", "says"),
    [
        ("https://mirror.example.com", "is no plain name"),
        ("Mirror.example.com", "is no plain name"),
        ("me@mirror.example.com", "is no plain name"),
        ("mirror.example.com/a/../b", "is no plain name"),
    ],
)
def test_a_registry_is_a_host_and_perhaps_a_path(registry, says):
    (mistake,) = load(stack(registries={registry: account()})).mistakes
    assert mistake.path.startswith("kai-fleet:registries")
    assert says in mistake.message and "write mirror.example.com" in mistake.message


@pytest.mark.parametrize("password", ["hunter2", 1234567, 1.5, True])
@pytest.mark.parametrize("place", ["registries", "teams.ml.registries"])
def test_a_password_in_clear_is_refused_with_the_command_that_encrypts_it(place, password):
    own = {MIRROR: account(password)}
    raw = stack(registries=own) if place == "registries" else stack(own)
    reported = [str(item) for item in validation.validate(raw, stack="prod").refused]
    path = f'kai-fleet:{place}["{MIRROR}"].password'
    command = f"pulumi config set --secret --path '{path}' --stack prod"
    command = f"pulumi stack select --create prod && {command}"
    assert len([line for line in reported if command in line]) == 1
    assert not any(str(password) in line for line in reported)


@pytest.mark.parametrize("wrong", ["robot:hunter2", {"username": "robot:hunter2"}, ["hunter2"]])
def test_what_is_wrong_there_is_not_shown(wrong):
    mistakes = load(stack(registries={MIRROR: wrong})).mistakes
    assert mistakes and not any("hunter2" in str(item) for item in mistakes)


def test_what_is_missing_is_told():
    raw = stack(registries={MIRROR: {"username": "robot"}})
    (mistake,) = validation.validate(raw, stack="prod").refused
    assert mistake.path.endswith("password")
    path = f'kai-fleet:registries["{MIRROR}"].password'
    assert mistake.message.endswith(f"pulumi config set --secret --path '{path}' --stack prod")


@pytest.mark.parametrize("version", [*KAI])
def test_parts_that_pull_without_it_are_warned_of(version):
    plan = plan_settings(stack(kai={"version": version}))
    found = [problem for problem in plan.problems if problem.path == "kai-fleet:registries"]
    assert bool(found) == (
        not kai(version).operands_get_node_selector and kai(version).has_operator
    )


GRANT = {"nodePool": {"kai-fleet/pool": "ml"}, "gpus": 8}


def platform():
    raw = stack(teamStacks={"ml": GRANT})
    del raw["teams"]
    return raw


def test_a_platform_makes_the_secret_of_a_team_stack_and_tells_no_password():
    raw = platform() | {"registries": {MIRROR: account("hunter2")}}
    loaded = load(raw)
    assert loaded.mistakes == ()
    assert ("team-ml", STACK_PULL_SECRET) in secrets(plan_settings(platform()).resources)
    sentence = Facts.of(loaded.settings).output()
    assert sentence["registries"] == [MIRROR] and "hunter2" not in str(sentence)


def test_a_team_stack_pulls_with_its_platforms_and_makes_its_own():
    tenant = team_stack(platform(), "ml", GRANT, registries={OWN: account()})
    assert tenant.mistakes == ()
    own = team_arguments.vcluster(tenant.settings, "ml")
    assert own["image_pull_secrets"] == [STACK_PULL_SECRET, TEAM_PULL_SECRET]
    assert [*own["registries"]] == [OWN]


AWS_HOST = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
ZEROS = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize(
    ("user", "lifetime"),
    [("AWS", "twelve hours"), ("oauth2accesstoken", "one hour"), (ZEROS, "three hours")],
)
def test_an_account_whose_password_ends_is_advised_against_where_it_is_written(user, lifetime):
    ends = {"username": user, "password": "[secret]"}
    of_mirror = {"registry": MIRROR, "account": ends}
    written = [
        (stack(registries={AWS_HOST: ends}), f"kai-fleet:registries.{AWS_HOST}"),
        (stack({OWN: ends}), f"kai-fleet:teams.ml.registries.{OWN}"),
        (stack(registries={}, mirror=of_mirror), "kai-fleet:mirror.account"),
    ]
    for raw, path in written:
        (found,) = advised(raw)
        assert found.path == path
        assert f"lives {lifetime}" in found.cause and "role" in found.fix


def test_an_account_of_a_name_of_its_own_lasts():
    assert advised(stack({OWN: account()}, mirror={"registry": MIRROR, "account": account()})) == []


def test_the_account_by_which_a_mirror_pulls_counts():
    ends = {"username": "AWS", "password": "[secret]"}
    mirror = {"registry": MIRROR, "account": account()}
    (found,) = advised(stack(registries={MIRROR: ends}, mirror=mirror))
    assert found.path == f"kai-fleet:registries.{MIRROR}"
    mirror["account"] = ends
    assert advised(stack(registries={MIRROR: account()}, mirror=mirror)) == []


def advised(raw):
    problems = validation.validate(raw).problems
    return [each for each in problems if each.check == "registry-account-lasts"]
