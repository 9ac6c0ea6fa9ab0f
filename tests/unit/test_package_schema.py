"""The schema of the package: complete, up to date, and compared with the one before."""

import copy
import json
import subprocess
import sys

import pytest

from kai_fleet.guards.host_rules import HostRules
from kai_fleet.package import SCHEMA_FILE, schema, served_schema
from kai_fleet.package.arguments import ARGUMENTS
from kai_fleet.package.breaking import broken
from kai_fleet.package.construct import CONSTRUCTORS
from kai_fleet.package.outputs import OUTPUTS
from kai_fleet_cli.stack_file.reading import ROOT

SCHEMA = served_schema()


def described():
    """Every property, with where it stands."""
    for token, it in SCHEMA["types"].items():
        yield from ((f"{token}.{name}", of) for name, of in it.get("properties", {}).items())
    for token, it in SCHEMA["resources"].items():
        for part in ("inputProperties", "properties"):
            yield from ((f"{token}.{name}", of) for name, of in it[part].items())


def test_the_schema_that_ships_is_up_to_date():
    assert SCHEMA_FILE.read_text() == schema.text(), "run: make reference"


def test_the_environment_of_the_plugin_is_the_locked_one():
    found = (ROOT / "components" / "requirements.txt").read_text()
    locked = subprocess.run(
        ["make", "-s", "requirements"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found == locked.stdout, "run: make reference"


def test_every_component_has_arguments_results_and_a_way_to_be_made():
    assert set(ARGUMENTS) == set(OUTPUTS) == set(CONSTRUCTORS)
    assert {token.rpartition(":")[2] for token in SCHEMA["resources"]} == set(ARGUMENTS)


def test_every_property_is_described():
    assert [where for where, of in described() if not of.get("description")] == []


def test_nothing_is_any_but_values_for_a_chart_and_an_affinity():
    """What a chart takes is the chart's to say, and what an affinity has, Kubernetes'."""
    loose = [where for where, of in described() if "pulumi.json#/Any" in json.dumps(of)]
    affinity = {"nodeAffinity", "podAffinity", "podAntiAffinity"}
    assert {where.rpartition(".")[2] for where in loose} == {"values", *affinity}


def test_secrets_are_marked():
    secret = {where.rpartition(":")[2] for where, of in described() if of.get("secret")}
    assert {
        "HostCluster.kubeconfig",
        "Team.kubeconfig",
        "Platform.kubeconfigs",
        "VirtualCluster.kubeconfig",
        "VllmServer.huggingFaceToken",
    } <= secret


def test_types_are_named_once_and_all_are_there():
    refs = {ref.removeprefix("#/types/") for ref in _refs(SCHEMA) if ref.startswith("#/types/")}
    assert refs == set(SCHEMA["types"])


def _refs(value):
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
        for item in value.values():
            yield from _refs(item)
    elif isinstance(value, list):
        for item in value:
            yield from _refs(item)


def test_a_host_guard_takes_every_rule_that_the_component_has():
    assert set(HostRules.__dataclass_fields__) <= set(ARGUMENTS["HostGuard"].model_fields)


def changed(change):
    new = copy.deepcopy(SCHEMA)
    change(new)
    return broken(SCHEMA, new)


TEAM = "kai-fleet:index:Team"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s: s["resources"].pop(TEAM), "component Team is gone"),
        (lambda s: s["resources"][TEAM]["inputProperties"].pop("gpus"), "Team: input gpus is gone"),
        (lambda s: s["resources"][TEAM]["properties"].pop("server"), "Team: output server is gone"),
        (
            lambda s: s["resources"][TEAM]["requiredInputs"].append("gpus"),
            "Team: input gpus is needed now",
        ),
        (
            lambda s: s["resources"][TEAM]["inputProperties"]["gpus"].update(type="string"),
            "Team: input gpus was integer and is string",
        ),
        (
            lambda s: s["resources"][TEAM]["properties"]["kubeconfig"].pop("secret"),
            "Team: output kubeconfig was a secret and is none",
        ),
        (
            lambda s: s["types"]["kai-fleet:index:SchedulingMode"]["enum"].pop(),
            "type SchedulingMode: the value default is gone",
        ),
        (
            lambda s: s["types"]["kai-fleet:index:QueueSettings"]["properties"].pop("shard"),
            "type QueueSettings: input shard is gone",
        ),
    ],
)
def test_what_breaks_a_program_is_said(change, said):
    assert changed(change) == [said]


def test_what_is_new_breaks_nothing():
    def more(new):
        new["resources"][TEAM]["inputProperties"]["more"] = {"type": "string"}
        new["resources"]["kai-fleet:index:More"] = new["resources"][TEAM]

    assert changed(more) == []


def test_the_command_compares_with_the_last_release(tmp_path):
    old = copy.deepcopy(SCHEMA)
    old["resources"][TEAM]["inputProperties"]["gone"] = {"type": "string"}
    file = tmp_path / "old.json"
    file.write_text(json.dumps(old))
    command = [sys.executable, "-m", "kai_fleet.package.breaking", str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "Team: input gone is gone\n")


def test_every_choice_has_a_name_in_every_language():
    choices = [
        (name, choice["name"])
        for name, kind in SCHEMA["types"].items()
        for choice in kind.get("enum", ())
    ]
    assert choices
    assert [name for name, choice in choices if not choice.isidentifier()] == []
