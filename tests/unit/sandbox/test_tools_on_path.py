"""Tools that are installed: which are taken, and what is said of the others."""

import pytest

from sandbox import lifecycle
from sandbox.tools import toolbox
from sandbox.tools.table import LANGUAGE_HOST
from tests.unit.sandbox.tool_scripts import go, script, silent


@pytest.mark.parametrize(
    ("name", "answer", "version"),
    [
        ("kubectl", "Client Version: v1.36.9\\nKustomize Version: v5.7.1", "1.36.9"),
        ("kube-apiserver", "Kubernetes v1.36.0", "1.36.0"),
        ("etcd", "etcd Version: 3.6.7\\nGo Version: go1.24.7", "3.6.7"),
        ("helm", "v3.18.4+gd80839c", "3.18.4"),
        ("pulumi", "v3.275.0", "3.275.0"),
    ],
)
def test_a_tool_on_path_is_used_when_its_version_will_do(machine, name, answer, version):
    path = script(machine / "bin" / name, f"printf '{answer}\\n'")
    tool = toolbox.ensure([name], silent)[name]
    assert (tool.origin, tool.version, tool.path) == ("PATH", version, path)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("kubectl", "Client Version: v1.32.4"),
        ("etcd", "etcd Version: 3.5.1"),
        ("helm", "v4.0.1"),
        ("pulumi", "v3.259.0"),
        ("kwok", "something else altogether"),
    ],
)
def test_a_tool_on_path_in_another_version_is_named_and_not_used(machine, name, answer):
    path = script(machine / "bin" / name, f"echo '{answer}'")
    reported = []
    with pytest.raises(toolbox.ToolError):  # there is no Go to build one with
        toolbox.ensure([name], reported.append)
    assert any(str(path) in line and "is needed" in line for line in reported)


def test_a_tool_of_the_cache_that_is_on_path_is_not_taken_for_an_installed_one(machine):
    go(machine, build='echo "echo kwok v0.8.0" > "$out"')
    built = toolbox.ensure(["kwok"], silent)["kwok"]
    (machine / "bin/kwok").symlink_to(built.path)
    assert toolbox.ensure(["kwok"], silent)["kwok"] == built


def test_a_companion_is_taken_from_where_the_installed_cli_is(machine):
    script(machine / "opt/pulumi", "echo v3.275.0")
    (machine / "bin/pulumi").symlink_to(machine / "opt/pulumi")
    beside = script(machine / "opt" / LANGUAGE_HOST)
    tool = toolbox.ensure([LANGUAGE_HOST], silent)[LANGUAGE_HOST]
    assert (tool.path, tool.origin) == (beside, "PATH")


def test_what_is_no_link_makes_room_for_the_tool(tmp_path):
    folder, installed = tmp_path / "bin", tmp_path / "opt" / "pulumi"
    folder.mkdir()
    (folder / "pulumi").write_text("put here by hand")
    lifecycle._link_tools(folder, {"pulumi": installed})
    assert (folder / "pulumi").readlink() == installed
