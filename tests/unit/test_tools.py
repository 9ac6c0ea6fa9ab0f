"""Stand-ins, launchers and plugins, and what is said where no tool can be had."""

import os
import shutil
import subprocess

import pytest

from sandbox import launchers, plugin_folder, tools
from sandbox.tool_table import COMMAND_PROVIDER, KUBERNETES_PROVIDER, POLICY_LAUNCHER
from tests.unit.tool_scripts import script, silent


def test_a_provider_that_cannot_be_had_is_stood_in_for_and_said(machine):
    found = tools.ensure([KUBERNETES_PROVIDER, COMMAND_PROVIDER], silent)
    assert {tool.origin for tool in found.values()} == {"stand-in"}
    assert all(os.access(tool.path, os.X_OK) for tool in found.values())
    assert [tool.path.name for tool in found.values()] == list(found)
    words = tools.standins(found)
    assert len(words) == 2
    assert "Pulumi's Kubernetes provider is a stand-in" in words[0]


def test_launchers_of_a_checkout_that_is_gone_go_from_the_cache(machine, monkeypatch):
    gone, there = machine / "gone", machine / "there"
    others = []
    for checkout in (gone, there):
        script(checkout / "provider/launch.py", "")
        with monkeypatch.context() as patch:
            patch.setattr(launchers, "CHECKOUT", checkout)
            others.append(tools.ensure([COMMAND_PROVIDER], silent)[COMMAND_PROVIDER].path)
    shutil.rmtree(gone)
    mine = tools.ensure([COMMAND_PROVIDER], silent)[COMMAND_PROVIDER].path
    assert [path.parent.exists() for path in (*others, mine)] == [False, True, True]


def test_what_is_real_is_not_called_a_stand_in(machine):
    script(machine / "bin/helm", "echo v3.18.4")
    assert tools.standins(tools.ensure(["helm"], silent)) == []


def test_providers_are_linked_where_the_engine_looks_for_plugins(machine):
    script(machine / "bin/helm", "echo v3.18.4")
    found = tools.ensure(["helm", COMMAND_PROVIDER], silent)
    for _ in range(2):  # again over what is there
        assert plugin_folder.install(found, machine / "home") == [COMMAND_PROVIDER]
    plugin = found[COMMAND_PROVIDER]
    link = machine / f"home/plugins/resource-command-v{plugin.version}/{COMMAND_PROVIDER}"
    assert link.resolve() == plugin.path.resolve()
    assert len(list((machine / "home/plugins").iterdir())) == 1


def test_the_policy_launcher_runs_the_packs_own_environment(machine):
    script(machine / "bin/pulumi", "echo v3.272.0")
    launcher = tools.ensure([POLICY_LAUNCHER], silent)[POLICY_LAUNCHER].path
    script(machine / "venv/bin/python", 'echo "$@"')
    done = subprocess.run(
        [launcher, "127.0.0.1:99", ".", f"-virtualenv={machine}/venv", "-toolchain=pip"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "-u -m pulumi.policy 127.0.0.1:99 .\n"


def test_a_name_that_is_no_tool_is_refused(machine):
    with pytest.raises(tools.ToolError, match="no such tool: kubeadm; there are etcd"):
        tools.ensure(["kubeadm"], silent)


def test_a_cache_that_cannot_be_written_says_what_to_set(machine, monkeypatch):
    (machine / "file").write_text("")
    monkeypatch.setenv("KAI_FLEET_CACHE", str(machine / "file"))
    with pytest.raises(tools.ToolError, match="set KAI_FLEET_CACHE"):
        tools.ensure(["kwok"], silent)
