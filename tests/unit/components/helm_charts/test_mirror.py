"""`kai-fleet:mirror`: every chart and image of the platform from one registry."""

import copy
import json

import pytest

from kai_fleet.releases import GPU_PROVIDERS, KAI
from kai_fleet.releases.chart_values import nested
from kai_fleet.values import value_at
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_policies.finding import Level
from kai_fleet_stack import validation
from kai_fleet_stack.arguments import Arguments
from kai_fleet_stack.arguments import team as team_arguments
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.team_stack import Facts
from tests.unit.cli.doctor.doctor_samples import SETTINGS

REGISTRY = "mirror.example.com:5000/fleet"
ACCOUNT = {"username": "robot", "password": "[secret]"}
OSS = "controlPlane.advanced.defaultImageRegistry"


def stack(mirror, **keys):
    return copy.deepcopy(SETTINGS) | {"mirror": mirror} | keys


def releases(raw):
    plan = plan_settings(raw)
    assert plan.problems == ()
    found = {r.name: r.inputs for r in plan.resources if r.type.endswith(":Release")}
    return found, plan.resources


def test_one_key_moves_every_chart_and_image_with_its_account():
    raw = stack({"registry": REGISTRY, "account": ACCOUNT}, gpu={"provider": "operator"})
    found, resources = releases(raw)
    for release in found.values():
        name = release["chart"].rpartition("/")[2]
        assert release["chart"] == f"oci://{REGISTRY}/charts/{name}"
        assert release["repositoryOpts"] == ACCOUNT
    assert value_at(found["ml-release"]["values"], OSS) == REGISTRY
    kai = found["ml-kai-release"]["values"]["global"]
    assert kai["registry"] == f"{REGISTRY}/kai-scheduler/kai-scheduler"
    gpu = found["host-gpu-release"]["values"]
    for key, place in GPU_PROVIDERS["operator"].images.items():
        assert value_at(gpu, key) == place.replace(place.partition("/")[0], REGISTRY)
    assert value_at(gpu, "toolkit.repository") == f"{REGISTRY}/nvidia/k8s"
    secrets = [r.inputs["metadata"]["namespace"] for r in resources if r.type.endswith(":Secret")]
    assert {"gpu-operator", "team-ml"} <= {*secrets}


def test_a_key_of_its_own_goes_first_and_gets_no_account_of_another_registry():
    raw = stack(
        {"registry": REGISTRY, "account": ACCOUNT},
        sources={"charts": ["oci://own.example.com/x"], "images": ["own.example.com/x"]},
    )
    raw["teams"]["ml"]["scheduler"] |= {
        "chart": "oci://own.example.com/x/kai-scheduler",
        "values": {"global": {"registry": "own.example.com/x"}},
    }
    found, _ = releases(raw)
    kai = found["ml-kai-release"]
    assert kai["chart"] == "oci://own.example.com/x/kai-scheduler"
    assert kai["values"]["global"]["registry"] == "own.example.com/x"
    assert "repositoryOpts" not in kai


def test_images_of_the_mirror_are_kais_for_the_guard_at_restricted():
    raw = stack(REGISTRY, isolation={"level": "restricted"})
    assert releases(raw)
    guard = Arguments(load(raw).settings).namespace("ml")["kai_images"]
    assert {kai.images.replace("ghcr.io", REGISTRY) for kai in KAI.values()} <= {*guard}


def test_a_team_stack_has_the_mirror_without_its_password():
    grant = {"nlp": {"nodePool": {"pool": "nlp"}, "gpus": 4}}
    raw = stack({"registry": REGISTRY, "account": ACCOUNT}, teams={}, teamStacks=grant)
    output = json.loads(json.dumps(Facts.of(load(raw).settings).output()))
    assert "[secret]" not in str(output)
    facts, own = Facts.read(output), {"version": "v0.9.3"}
    queues = {"all": {"children": {"a": {"gpu": 4}}}}
    team = {"name": "nlp", "scheduler": own, "queues": queues}
    file = {"platform": {"stack": "lab"}, "team": team}
    verdict = validation.validate(file, facts_of=lambda _: facts)
    assert not verdict.refused
    kai = team_arguments.kai(verdict.settings, "nlp")
    assert kai["chart"] == f"oci://{REGISTRY}/charts/kai-scheduler"
    assert kai["values"]["global"]["registry"] == f"{REGISTRY}/nvidia/kai-scheduler"


@pytest.mark.parametrize(
    ("wrong", "path", "says"),
    [
        ("fleet", ".registry", "write a host, or a path in one: mirror.example.com/kai-fleet"),
        ("https://mirror.example.com", ".registry", "is no plain name"),
        ({"registry": REGISTRY, "account": {"username": "x"}}, ".account.password", "is missing"),
        (
            {"registry": REGISTRY, "account": {**ACCOUNT, "password": "hunter2"}},
            ".account.password",
            "pulumi config set --secret --path 'kai-fleet:mirror.account.password' --stack STACK",
        ),
    ],
)
def test_a_mistake_is_named_by_its_key_with_what_to_write(wrong, path, says):
    (mistake,) = validation.validate(stack(wrong)).refused
    assert mistake.path == f"kai-fleet:mirror{path}"
    assert says in mistake.message and "hunter2" not in mistake.message


def test_a_source_that_nothing_uses_is_advised():
    charts, images = ["oci://mirror.corp/charts"], ["mirror.corp"]
    raw = copy.deepcopy(SETTINGS) | {"sources": {"charts": charts, "images": images}}
    raw["vcluster"] = {"chart": "oci://mirror.corp/charts/vcluster"}
    (unused,) = validation.validate(raw).problems
    assert (unused.level, unused.path) == (Level.ADVISORY, "kai-fleet:sources.images[0]")
    assert "write kai-fleet:mirror: mirror.corp, by which all do, or drop it" in unused.message
    (unused,) = validation.validate(raw | {"mirror": REGISTRY}).problems
    assert unused.fix == "drop it"
    raw["vcluster"]["values"] = nested(OSS, "mirror.corp")
    assert validation.validate(raw).problems == ()
