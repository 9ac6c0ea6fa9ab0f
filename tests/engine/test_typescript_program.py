"""The example in TypeScript, from a folder outside of the checkout: made, switched and removed."""

from __future__ import annotations

import os
import shlex
import tarfile

import pytest

from kai_fleet.cli.stack_file.reading import ROOT
from kai_fleet.provider.version import version
from tests.engine.product import api, deployments, namespaces, queues
from tests.engine.remote import PLUGIN
from tests.languages import sdks

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]
EXAMPLE = ROOT / "examples" / "fleet" / "typescript"


@pytest.fixture(scope="module")
def installed(sandbox, tmp_path_factory):
    """The plugin where `pulumi plugin install` puts it; its environment is this checkout's."""
    folder = tmp_path_factory.mktemp("plugin")
    launcher = folder / "pulumi-resource-kai-fleet"
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(str(PLUGIN / launcher.name))} "$@"\n')
    launcher.chmod(0o755)
    archive = folder / "plugin.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(launcher, launcher.name)
    env = {**sandbox.env(), "PATH": f"{sandbox.env()['PATH']}{os.pathsep}{PLUGIN}"}
    pulumi = sandbox.directory / "bin" / "pulumi"
    plugin = [pulumi, "plugin", "install", "resource", "kai-fleet", version(), "--file", archive]
    sdks.run(plugin, folder, env)
    yield env
    sdks.run([pulumi, "plugin", "rm", "resource", "kai-fleet", "--yes"], folder, env)


def test_a_fleet_of_two_teams_is_made_switched_and_removed(sandbox, installed, tmp_path):
    project = sdks.typescript(EXAMPLE, tmp_path)
    stack = sdks.Inline(project, "lab", installed)
    kubeconfig = sandbox.kubeconfig.read_text()
    try:
        made = stack("up", kubeconfig=kubeconfig, host="127.0.0.1")
        outputs = made["outputs"]
        assert outputs["kubeconfigs"]["secret"]
        kubeconfigs = outputs["kubeconfigs"]["value"]
        assert set(kubeconfigs) == {"ml", "dev"}
        assert outputs["teams"]["value"]["ml"]["scheduler"] == "v0.12.23"
        inside = api(kubeconfigs["ml"])
        assert set(queues(inside)) == {"ml", "train", "serve"}
        assert {"team-ml", "team-dev"} <= namespaces(api(kubeconfig))

        assert set(stack("up")["changes"]) == {"same"}

        switched = stack("up", mlVersion="v0.16.8")
        assert switched["outputs"]["teams"]["value"]["ml"]["scheduler"] == "v0.16.8"
        assert "kai-scheduler-default" in deployments(inside, "kai-scheduler")
        assert "delete" not in switched["changes"] and "replace" not in switched["changes"]
    finally:
        stack("destroy")
    assert not {"team-ml", "team-dev"} & namespaces(api(kubeconfig))
