"""Stand-ins, launchers and plugins, and what is said where no tool can be had."""

import os
import subprocess

import pytest

from sandbox.tools import plugin_folder, toolbox
from sandbox.tools.table import COMMAND_PROVIDER, KUBERNETES_PROVIDER, POLICY_LAUNCHER
from tests.unit.tool_scripts import script, silent


def test_a_provider_that_cannot_be_had_is_stood_in_for_and_said(machine):
    said = []
    found = toolbox.ensure([KUBERNETES_PROVIDER, COMMAND_PROVIDER], said.append)
    (line,) = said
    assert "stand-ins take the place of Pulumi's Kubernetes provider and Pulumi's Command" in line
    assert "no official release" in line
    assert {tool.origin for tool in found.values()} == {"stand-in"}
    assert all(os.access(tool.path, os.X_OK) for tool in found.values())
    assert [tool.path.name for tool in found.values()] == list(found)
    words = toolbox.standins(found)
    assert words == ["Pulumi's Kubernetes provider", "Pulumi's Command provider"]


def test_what_is_real_is_not_called_a_stand_in(machine):
    script(machine / "bin/helm", "echo v3.18.4")
    assert toolbox.standins(toolbox.ensure(["helm"], silent)) == []


def test_providers_are_linked_where_the_engine_looks_for_plugins(machine):
    script(machine / "bin/helm", "echo v3.18.4")
    found = toolbox.ensure(["helm", COMMAND_PROVIDER], silent)
    for _ in range(2):  # again over what is there
        assert plugin_folder.install(found, machine / "home") == [COMMAND_PROVIDER]
    plugin = found[COMMAND_PROVIDER]
    link = machine / f"home/plugins/resource-command-v{plugin.version}/{COMMAND_PROVIDER}"
    assert link.resolve() == plugin.path.resolve()
    assert len(list((machine / "home/plugins").iterdir())) == 1


def test_the_policy_launcher_runs_the_packs_own_environment(machine):
    script(machine / "bin/pulumi", "echo v3.190.0")
    launcher = toolbox.ensure([POLICY_LAUNCHER], silent)[POLICY_LAUNCHER].path
    script(machine / "venv/bin/python", 'echo "$@"')
    done = subprocess.run(
        [launcher, "127.0.0.1:99", ".", f"-virtualenv={machine}/venv", "-toolchain=pip"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "-u -m pulumi.policy 127.0.0.1:99 .\n"


def test_a_name_that_is_no_tool_is_refused(machine):
    with pytest.raises(toolbox.ToolError, match="no such tool: kubeadm; there are etcd"):
        toolbox.ensure(["kubeadm"], silent)


def test_a_cache_that_cannot_be_written_says_what_to_set(machine, monkeypatch):
    (machine / "file").write_text("")
    monkeypatch.setenv("KAI_FLEET_CACHE", str(machine / "file"))
    with pytest.raises(toolbox.ToolError, match="set KAI_FLEET_CACHE"):
        toolbox.ensure(["kwok"], silent)
