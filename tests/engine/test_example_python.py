"""examples/python on the sandbox: two teams up, one gets another KAI, all of it goes."""

import json
import runpy
from typing import Any

import pytest
from kubernetes import client
from pulumi import automation

from kai_fleet_cli.stack_file.reading import ROOT
from tests.engine.bare_engine import changed
from tests.engine.product import api

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

TEXT = (ROOT / "examples" / "python" / "__main__.py").read_text()


def program(directory: Any, research: str) -> Any:
    """The example with this KAI for its team research."""
    file = directory / "__main__.py"

    def run() -> None:
        file.write_text(TEXT.replace("v0.7.11", research))
        runpy.run_path(str(file), run_name="__main__")

    return run


def test_two_teams_come_one_switches_and_both_go(engine, sandbox, tmp_path, monkeypatch):
    for key, value in sandbox.env().items():  # for the program, which runs in this process
        monkeypatch.setenv(key, value)
    for key, value in {"context": "kai-fleet-sandbox", "node": "127.0.0.1"}.items():
        engine.stack.set_config(key, automation.ConfigValue(value))
    engine.up(program(tmp_path, "v0.7.11"))
    outputs = engine.stack.outputs()
    inside = api(outputs["research-kubeconfig"].value)
    queues = client.CustomObjectsApi(inside).list_cluster_custom_object(
        "scheduling.run.ai", "v2", "queues"
    )
    assert {it["metadata"]["name"] for it in queues["items"]} == {"default", "train"}
    assert outputs["research-kubeconfig"].secret
    assert engine.field(".metadata.name", "namespace", "team-ml") == "team-ml"

    switched = engine.up(program(tmp_path, "v0.9.3"))
    assert set(changed(switched)) <= {"create", "update", "replace", "delete", "create-replacement"}
    state = json.loads(engine.state())["deployment"]["resources"]
    versions = {
        it["urn"].rpartition("::")[2]: it["outputs"]["version"]
        for it in state
        if it["type"] == "kubernetes:helm.sh/v3:Release"
    }
    assert versions["research-kai-release"].removeprefix("v") == "0.9.3"
    assert changed(engine.up(program(tmp_path, "v0.9.3"))) == {}

    engine.destroy()
    assert engine.field(".metadata.name", "namespace", "team-research") == ""
