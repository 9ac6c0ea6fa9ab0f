"""The stand-in charts: one for every version that is supported, shaped as the real ones."""

import json
import subprocess

import pytest
import yaml

from kai_fleet import releases
from kai_fleet.releases import GPU_PROVIDERS
from sandbox import chart_packages
from sandbox.chart_packages import SOURCES
from sandbox.tools import toolbox

CHARTS = sorted(path.parent.name for path in SOURCES.glob("*/Chart.yaml"))


def test_every_supported_version_has_its_chart():
    files = {chart.file_name for chart in chart_packages.packages()}
    desired = {f"kai-scheduler-{version}.tgz" for version in releases.KAI}
    desired |= {f"vcluster-{release.chart_version}.tgz" for release in releases.VCLUSTER.values()}
    desired |= {
        f"gpu-operator-{GPU_PROVIDERS['operator'].version}.tgz",
        f"nvidia-device-plugin-{GPU_PROVIDERS['device-plugin'].version}.tgz",
    }
    assert desired <= files


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_says_that_it_is_a_stand_in(name):
    chart = yaml.safe_load((SOURCES / name / "Chart.yaml").read_text())
    assert chart["name"] == name
    assert chart["annotations"] == {"kai-fleet/stand-in": "true"}
    assert "stand-in" in chart["description"] and "sandbox" in chart["description"]


def test_a_chart_that_is_there_is_not_packaged_again(tmp_path):
    reported = []
    for _ in range(2):
        chart_packages.package(tmp_path, reported.append)
    assert len(reported) == 1
    (tmp_path / "vcluster-0.36.1.tgz").unlink()
    chart_packages.package(tmp_path, reported.append)
    assert reported[1] == "packaging 1 stand-in charts"


# With Helm itself


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """Objects of a packaged chart as installed under name `ml` in namespace `team-ml`."""
    helm, packaged = toolbox.ensure(["helm"], print)["helm"].path, tmp_path_factory.mktemp("charts")
    chart_packages.package(packaged, print)

    def rendered(name: str, version: str, values: dict | None = None) -> list[dict]:
        chart = packaged / f"{name}-{version}.tgz"
        command = [helm, "template", "ml", chart, "-n", "team-ml", "--include-crds", "-f", "-"]
        done = subprocess.run(
            command, input=json.dumps(values or {}), capture_output=True, text=True
        )
        if done.returncode:
            raise ValueError(done.stderr)
        return [item for item in yaml.safe_load_all(done.stdout) if item]

    return rendered


@pytest.fixture(scope="module")
def render(template):
    """The same by kind and name."""

    def rendered(*chart, **values) -> dict[tuple, dict]:
        objects = template(*chart, **values)
        return {(item["kind"], item["metadata"]["name"]): item for item in objects}

    return rendered


def names(objects: dict[tuple, dict], kind: str) -> set[str]:
    return {name for found, name in objects if found == kind}


@pytest.mark.engine
@pytest.mark.parametrize("version", chart_packages.KAI_VERSIONS)
def test_kai_has_the_deployments_of_its_version(render, version):
    objects = render("kai-scheduler", version)
    release = releases.KAI[version]
    # Where there is an operator it makes the rest, once Helm is done.
    by_chart = set(release.deployments) & {"kai-operator", "scheduler"}
    by_chart |= set() if release.operator_makes_binder else {"binder"}
    desired = by_chart if release.has_operator else set(release.deployments)
    assert names(objects, "Deployment") == desired
    assert "queues.scheduling.run.ai" in names(objects, "CustomResourceDefinition")
    assert names(objects, "Namespace") == {"kai-resource-reservation"}
    assert names(objects, "PriorityClass") == {"train", "build-preemptible", "build", "inference"}
    assert (("Config", "kai-config") in objects) == release.has_operator


@pytest.mark.engine
@pytest.mark.parametrize(
    ("version", "hooks"),
    [
        ("v0.9.3", [None]),
        ("v0.9.8", ["pre-install,pre-upgrade"]),
        ("v0.12.23", [None]),
        ("v0.16.8", [None, "post-delete"]),
    ],
)
def test_uninstalling_leaves_kai_config_behind_in_the_versions_that_do(template, version, hooks):
    configs = [item for item in template("kai-scheduler", version) if item["kind"] == "Config"]
    notes = [item["metadata"].get("annotations", {}) for item in configs]
    assert sorted((each.get("helm.sh/hook") for each in notes), key=str) == hooks
    assert any("hook" in str(each) or "keep" in each.values() for each in notes) == (
        version != "v0.9.3"
    )


@pytest.mark.engine
@pytest.mark.parametrize(
    ("version", "desired"),
    [("v0.9.3", set()), ("v0.16.8", {"default-parent-queue", "default-queue"})],
)
def test_kai_makes_default_queues_from_v0_10_unless_told_not_to(render, version, desired):
    assert names(render("kai-scheduler", version), "Queue") == desired
    off = {"defaultQueue": {"createDefaultQueue": False}}
    assert names(render("kai-scheduler", version, off), "Queue") == set()


@pytest.mark.engine
@pytest.mark.parametrize("mode", [None, "Disabled", "HamiCore"])
def test_v0_18_shares_where_it_is_told_nothing(template, mode):
    values = {"global": {"gpuSharingMode": mode} if mode else {}}
    created = template("kai-scheduler", "v0.18.0", values)
    specs = [item["spec"] for item in created if item["kind"] == "Config"]
    modes = [spec.get("global", {}).get("gpuSharingMode") for spec in specs]
    assert (mode or "NonMemoryEnforced") in modes


@pytest.mark.engine
@pytest.mark.parametrize("version", chart_packages.VCLUSTER_VERSIONS)
def test_a_vcluster_has_the_objects_by_which_it_is_found(render, version):
    values = {
        "controlPlane": {"service": {"spec": {"type": "NodePort"}}},
        "sync": {"fromHost": {"nodes": {"enabled": True, "selector": {"labels": {"a": "b"}}}}},
    }
    objects = render("vcluster", version, values)
    labels = objects["StatefulSet", "ml"]["metadata"]["labels"]
    found = {"app": "vcluster", "release": "ml", "chart": f"vcluster-{version}"}
    assert labels.items() >= found.items()
    service = objects["Service", "ml"]["spec"]
    assert service["type"] == "NodePort"
    assert service["ports"][0]["port"] == 443 and service["ports"][0]["targetPort"] == 8443
    assert objects["Service", "ml-headless"]["spec"]["clusterIP"] == "None"
    assert names(objects, "ServiceAccount") == {"vc-ml"}
    assert names(objects, "ClusterRole") == names(objects, "ClusterRoleBinding")
    assert names(objects, "ClusterRole") == {"vc-ml-v-team-ml"}
    assert "config.yaml" in objects["Secret", "vc-config-ml"]["data"]


@pytest.mark.engine
@pytest.mark.parametrize(
    ("version", "key"), [("0.27.3", "sleep"), ("0.36.1", "sleepMode"), ("0.36.1", "vcluster")]
)
def test_vcluster_refuses_a_key_that_its_version_does_not_have(render, version, key):
    with pytest.raises(ValueError, match=f"additional properties '{key}' not allowed"):
        render("vcluster", version, {key: {}})
