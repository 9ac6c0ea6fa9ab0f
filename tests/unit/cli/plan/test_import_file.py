"""The file for `pulumi import`, of a stack file with everything that a platform may have."""

import json

import pytest
from typer.testing import CliRunner

from kai_fleet.urns import read_urn
from kai_fleet_cli.app import app
from kai_fleet_cli.stack_file.reading import ROOT


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The file and the components' file, by name, and what is said beside them."""
    file = tmp_path_factory.mktemp("import") / "import.json"
    config = str(ROOT / "Pulumi.sandbox.yaml")
    ran = CliRunner().invoke(app, ["plan", "--config", config, "--import", str(file)])
    assert ran.exit_code == 0, ran.output
    both = [file, file.with_name("components-import.json")]
    return [json.loads(each.read_text())["resources"] for each in both], ran.output


def ids(records, kind):
    return {each["logicalName"]: each.get("id") for each in records if each["type"] == kind}


def test_objects_have_the_names_that_they_have_on_their_cluster(written):
    (records, _), _ = written
    assert ids(records, "kubernetes:core/v1:Namespace")["ml-namespace"] == "team-ml"
    assert ids(records, "kubernetes:core/v1:ResourceQuota")["ml-gpus"] == "team-ml/gpus"
    releases = ids(records, "kubernetes:helm.sh/v3:Release")
    assert releases["ml-release"] == "team-ml/ml"
    assert releases["ml-kai-release"] == "kai-scheduler/kai-scheduler"


def test_parents_and_providers_are_in_the_file(written):
    (records, components), output = written
    names = {each["name"] for each in records}
    assert len(names) == len(records)
    for each in records:
        assert {each.get("parent"), each.get("provider")} - {None} <= names
        assert read_urn(each["name"]).name == each["logicalName"]
    assert all(each["component"] for each in components)
    assert {each["name"] for each in components} == {
        each["name"] for each in records if each.get("component")
    }
    types = {each["type"] for each in records}
    assert not types & {"command:local:Command", "kai-fleet:index:Queues"}
    assert "made anew by the update: commands, queue trees" in output


def test_a_secret_kubeconfig_is_read_from_a_file(written):
    (records, _), _ = written
    providers = {
        each["logicalName"]: each["inputs"]
        for each in records
        if each["type"] == "pulumi:providers:kubernetes"
    }
    assert providers["ml"]["kubeconfig"] == "ml.kubeconfig"
    assert providers["host"]["context"] == "kai-fleet-sandbox"
    assert "[secret]" not in json.dumps(providers)


def test_of_a_refused_file_nothing_is_written(tmp_path):
    file = tmp_path / "Pulumi.lab.yaml"
    file.write_text("config: {kai-fleet:cluster: {name: lab, context: lab}, kai-fleet:teams: 1}\n")
    result = tmp_path / "import.json"
    ran = CliRunner().invoke(app, ["plan", "--config", str(file), "--import", str(result)])
    assert ran.exit_code == 1
    assert not result.exists()
