"""The examples of the package on the sandbox, from folders outside of the checkout, each by its
language's host, or inline where no registry has one.
"""

import os
import sys
from pathlib import Path

import pytest
from kubernetes import client

from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.tools import toolbox
from sandbox.tools.table import YAML_HOST
from tests.engine.product import api, deployments, namespaces, queues, take_queues
from tests.languages import sdks
from tests.languages.programs import GO, NODE, Hosted, Inline, Plugin

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def plugin(sandbox, tmp_path_factory):
    found = Plugin(tmp_path_factory.mktemp("plugin"), sandbox)
    yield found
    found.remove()


@pytest.fixture(scope="module")
def generator(tmp_path_factory):
    return sdks.generator(tmp_path_factory.mktemp("generator"))


@pytest.fixture
def program(sandbox, request, tmp_path, tmp_path_factory):
    """Makes a program of an example's folder ready to run."""

    def made(name):
        example, env = EXAMPLES / name, sandbox.env()
        # This checkout's plugin would be taken before the one that was installed.
        folders = [it for it in env["PATH"].split(os.pathsep) if it != str(Path(sys.prefix, "bin"))]
        env["PATH"] = os.pathsep.join(folders)
        if name.endswith("yaml"):
            # Beside the CLI, unless that is one that was installed without it.
            hosts = tmp_path_factory.mktemp("hosts")
            (hosts / YAML_HOST).symlink_to(toolbox.ensure([YAML_HOST], print)[YAML_HOST].path)
            env["PATH"] += f"{os.pathsep}{hosts}"
            return Hosted(sdks.in_yaml(example, tmp_path), sandbox, env)
        generator = request.getfixturevalue("generator")
        if (example / "package.json").exists():
            return Inline(NODE, sdks.typescript(example, tmp_path, generator), env)
        if (example / "go.mod").exists():
            return Inline(GO, sdks.go(example, tmp_path, generator), env)
        project = sdks.python(example, tmp_path, generator)
        # The host that can be had here runs the first python3 on PATH.
        env["PATH"] = f"{sdks.environment(project) / 'bin'}{os.pathsep}{env['PATH']}"
        return Hosted(project, sandbox, env)

    return made


# A team through the plugin: test_package.py. A program with an SDK: that of the queues, below.
@pytest.mark.slow
@pytest.mark.parametrize(
    "language",
    ["typescript", "go", pytest.param("yaml", marks=pytest.mark.yaml), "python"],
)
def test_a_fleet_of_two_teams_is_made_switched_and_removed(sandbox, plugin, program, language):
    stack = program(f"fleet/{language}")
    kubeconfig = sandbox.kubeconfig.read_text()
    try:
        made = stack("up", kubeconfig=kubeconfig, host="127.0.0.1")
        if language != "yaml":  # by its host the program runs, and no such start is seen
            assert plugin.started()
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


@pytest.mark.slow
def test_a_team_alone_serves_a_model_and_is_removed(sandbox, plugin, program):
    stack = program("team-alone")
    kubeconfig = sandbox.kubeconfig.read_text()
    try:
        outputs = stack("up", kubeconfig=kubeconfig, host="127.0.0.1")["outputs"]
        assert outputs["namespace"]["value"] == "team-vision"
        assert outputs["kubeconfig"]["secret"]
        inside = api(outputs["kubeconfig"]["value"])
        assert set(queues(inside)) == {"vision", "serve"}
        service, _, _ = outputs["url"]["value"].removeprefix("http://").partition(".")
        core = client.CoreV1Api(inside)
        assert core.read_namespaced_service(service, "default").spec.ports[0].port == 80
        (pod,) = core.list_namespaced_pod("default", label_selector=f"app={service}").items
        assert pod.metadata.annotations["gpu-fraction"] == "0.5"
        assert pod.metadata.labels["kai.scheduler/queue"] == "serve"
        assert set(stack("up")["changes"]) == {"same"}
    finally:
        stack("destroy")
    assert "team-vision" not in namespaces(api(kubeconfig))


def test_queues_alone_are_made_changed_and_removed(sandbox, plugin, program):
    host = api(sandbox.kubeconfig.read_text())
    take_queues(host)
    stack = program("queues-only")
    try:
        outputs = stack("up", kubeconfig=sandbox.kubeconfig.read_text())["outputs"]
        assert set(outputs["queues"]["value"]) == {"train", "notebooks"}
        assert set(queues(host)) >= {"research", "train", "notebooks"}
        stack("up", train="6")
        assert queues(host)["train"]["spec"]["resources"]["gpu"]["quota"] == 6
    finally:
        stack("destroy")
    assert not {"research", "train", "notebooks"} & set(queues(host))
