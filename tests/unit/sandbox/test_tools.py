"""The stand-in, launchers and plugins, and what is said where no tool can be had."""

import os

import pytest

from sandbox import lifecycle
from sandbox.tools import toolbox
from sandbox.tools.table import COMMAND_PROVIDER, KUBERNETES_PROVIDER
from tests.unit.sandbox.tool_scripts import go, script, silent


def test_the_command_plugin_that_cannot_be_had_is_stood_in_for_and_said(machine):
    reported = []
    tool = toolbox.ensure([COMMAND_PROVIDER], reported.append)[COMMAND_PROVIDER]
    (line,) = reported
    assert "stand-in takes the place of Pulumi's Command plugin: no official release" in line
    assert (tool.origin, tool.path.name) == ("stand-in", COMMAND_PROVIDER)
    assert os.access(tool.path, os.X_OK)
    assert toolbox.standins({COMMAND_PROVIDER: tool}) == ["Pulumi's Command plugin"]


def test_nothing_stands_in_for_the_kubernetes_plugin(machine):
    with pytest.raises(toolbox.ToolError, match=r"Kubernetes plugin .*has to be built from source"):
        toolbox.ensure([KUBERNETES_PROVIDER], silent)


def test_the_kubernetes_plugin_is_built_with_the_files_that_its_module_ships(machine):
    module = machine / "module/cmd/pulumi-resource-kubernetes"
    module.mkdir(parents=True)
    (module / "schema.json").write_text('{\n  "name": "kubernetes"\n}')
    (module / "terraform-mapping.json").write_text("{ }")
    kept = machine / "kept"
    go(
        machine,
        build=f"""if [ "$2" = download ]; then echo '{{"Dir": "{machine}/module"}}'; exit; fi
            cat main.go go.mod schema.json terraform-mapping.json > {kept}
            echo "$@" >> {kept}; echo x > "$out" """,
    )
    tool = toolbox.ensure([KUBERNETES_PROVIDER], silent)[KUBERNETES_PROVIDER]
    assert (tool.origin, tool.version) == ("built", "4.24.0"), "what the proxy has, not the SDK's"
    built = kept.read_text()
    assert '{"version":"4.24.0","name":"kubernetes"}{}' in built, "compact, as in a release"
    assert 'provider.Serve("kubernetes"' in built and "provider/v4 v4.0.0-20260115033456" in built
    assert "pkg/version.Version=4.24.0+20260115" in built
    # Older than the SDK asks for: the engine would not take it from its own folder.
    assert lifecycle.link_plugins({KUBERNETES_PROVIDER: tool}, machine / "home") == []


def test_providers_are_linked_where_the_engine_looks_for_plugins(machine):
    script(machine / "bin/helm", "echo v3.18.4")
    found = toolbox.ensure(["helm", COMMAND_PROVIDER], silent)
    for _ in range(2):  # again over what is there
        assert lifecycle.link_plugins(found, machine / "home") == [COMMAND_PROVIDER]
    plugin = found[COMMAND_PROVIDER]
    link = machine / f"home/plugins/resource-command-v{plugin.version}/{COMMAND_PROVIDER}"
    assert link.resolve() == plugin.path.resolve()
    assert len(list((machine / "home/plugins").iterdir())) == 1


def test_a_name_that_is_no_tool_is_refused(machine):
    with pytest.raises(toolbox.ToolError, match="no such tool: kubeadm; there are etcd"):
        toolbox.ensure(["kubeadm"], silent)


def test_a_cache_that_cannot_be_written_says_what_to_set(machine, monkeypatch):
    (machine / "file").write_text("")
    monkeypatch.setenv("KAI_FLEET_CACHE", str(machine / "file"))
    with pytest.raises(toolbox.ToolError, match="set KAI_FLEET_CACHE"):
        toolbox.ensure(["kwok"], silent)
