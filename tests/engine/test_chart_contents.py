"""A chart whose file has the right name and another content, from a server, by the real Helm."""

import functools
import http.server
import io
import tarfile
from typing import Any

import pulumi
import pytest
import yaml
from kubernetes import client
from pulumi import automation

from kai_fleet.cluster.connection import ClusterConnection, kubernetes_provider
from kai_fleet.gpu_stack import GpuStack
from kai_fleet.releases import GPU_PROVIDERS
from kai_fleet_cli.stack_file.reading import PROJECT
from tests.engine.product import project
from tests.unit.components.cluster.http_server import listening

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

OPERATOR = GPU_PROVIDERS["operator"]
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-the-chart}\n"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


class Served:
    """A GPU stack whose chart comes from a server of this test."""

    def __init__(self, folder, url: str) -> None:
        self.folder, self.url = folder, url
        self.stack: automation.Stack | None = None
        self.chart = ""

    def program(self) -> None:
        host = ClusterConnection(context="kai-fleet-sandbox")
        provider = kubernetes_provider("host", host, pulumi.ResourceOptions())
        opts = pulumi.ResourceOptions(provider=provider)
        GpuStack("gpu", {"provider": "operator", "chart": self.chart}, opts)

    def has(self, folder: str, name: str, version: str) -> None:
        """A package with this content, by the name of the right one."""
        file = f"gpu-operator-{OPERATOR.version}.tgz"
        (self.folder / folder).mkdir()
        metadata = yaml.safe_dump({"apiVersion": "v2", "name": name, "version": version})
        files = {"Chart.yaml": metadata, "templates/map.yaml": CONFIG_MAP}
        with tarfile.open(self.folder / folder / file, "w:gz") as archive:
            for path, text in files.items():
                member = tarfile.TarInfo(f"{name}/{path}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        self.chart = f"{self.url}/{folder}/{file}"

    def said_by(self, run: Any) -> str:
        """Everything that was said, whether or not it went well; `error:` where it did not."""
        reported: list[str] = []
        try:
            run(on_output=reported.append)
        except automation.errors.CommandError as why:
            reported.append(f"error: {why}")
        return "\n".join(reported)


@pytest.fixture(scope="module")
def served(sandbox, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    directory = project(tmp_path_factory.mktemp("contents") / "project")
    options = automation.LocalWorkspaceOptions(work_dir=str(directory), env_vars=sandbox.env())
    with (
        pytest.MonkeyPatch.context() as patch,
        listening(functools.partial(Quiet, directory=str(folder))) as server,
    ):
        for key, value in sandbox.env().items():
            patch.setenv(key, value)
        served = Served(folder, f"http://127.0.0.1:{server.server_address[1]}")
        served.stack = automation.create_or_select_stack(
            "contents", PROJECT, served.program, opts=options
        )
        yield served


def config_maps(host) -> list[str]:
    found = client.CoreV1Api(host).list_config_map_for_all_namespaces().items
    return [each.metadata.namespace for each in found if each.metadata.name == "of-the-chart"]


def test_another_version_is_refused_by_the_preview_before_anything_is_installed(served, host):
    served.has("version", "cert-manager", "1.2.3")
    reported = served.said_by(served.stack.preview)
    assert "error:" in reported
    assert f"has a chart whose version is 1.2.3, and not {OPERATOR.version}" in reported
    assert "Traceback" not in reported
    assert config_maps(host) == []


def test_an_update_without_a_preview_ends_with_what_helm_read(served):
    served.has("update", "gpu-operator", "1.2.3")
    reported = served.said_by(served.stack.up)
    assert f"has a chart whose version is 1.2.3, and not {OPERATOR.version}" in reported
    assert "error:" in reported and "Traceback" not in reported


def test_another_name_is_refused_as_soon_as_helm_says_it_and_in_each_later_run(served):
    served.has("name", "cert-manager", OPERATOR.version)
    for run in (served.stack.up, served.stack.preview):
        reported = served.said_by(run)
        assert (
            f"GpuStack gpu has the chart cert-manager, and not gpu-operator {OPERATOR.version}"
            in reported
        )
        assert "error:" in reported and "Traceback" not in reported


def test_the_right_chart_replaces_it(served, host):
    served.has("right", "gpu-operator", OPERATOR.version)
    assert "error:" not in served.said_by(served.stack.up)
    assert "error:" not in served.said_by(served.stack.preview)
    assert config_maps(host) == ["gpu-operator"]
    assert "error:" not in served.said_by(served.stack.destroy)
