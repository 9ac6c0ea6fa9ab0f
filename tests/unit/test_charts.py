"""The stand-in charts: one for every version that is supported, shaped as the real ones."""

import json
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from kai_fleet import releases
from kai_fleet.releases import GPU_PROVIDERS
from sandbox import chart_packages
from sandbox.chart_packages import SOURCES
from sandbox.directory import SandboxError
from sandbox.tools import toolbox

CHARTS = sorted(path.parent.name for path in SOURCES.glob("*/Chart.yaml"))


def test_every_supported_version_has_its_chart():
    files = {chart.file_name for chart in chart_packages.packages()}
    wanted = {f"kai-scheduler-{version}.tgz" for version in releases.KAI}
    wanted |= {f"vcluster-{release.chart_version}.tgz" for release in releases.VCLUSTER.values()}
    wanted |= {
        f"gpu-operator-{GPU_PROVIDERS['operator'].version}.tgz",
        f"nvidia-device-plugin-{GPU_PROVIDERS['device-plugin'].version}.tgz",
    }
    assert wanted <= files


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_says_that_it_is_a_stand_in(name):
    chart = yaml.safe_load((SOURCES / name / "Chart.yaml").read_text())
    assert chart["name"] == name
    assert chart["annotations"] == {"kai-fleet/stand-in": "true"}
    assert "stand-in" in chart["description"] and "sandbox" in chart["description"]


def test_vclusters_schema_knows_the_keys_of_its_version_and_no_others():
    new, old = (
        set(json.loads((SOURCES / "vcluster" / name).read_text())["properties"])
        for name in ("values.schema.json", "values.schema.before-v0.32.json")
    )
    assert old - new == {"external", "sleepMode"}
    assert new - old == {"deletion", "platform", "sleep", "snapshots"}


def test_a_chart_that_cannot_be_written_is_named_with_the_reason(tmp_path):
    (tmp_path / "charts").write_text("a file where the folder should be")
    with pytest.raises(
        SandboxError, match=r"kai-scheduler-v0\.7\.11\.tgz cannot be .*: File exists"
    ):
        chart_packages.package(tmp_path / "charts", lambda _: None)


def test_a_chart_that_is_there_is_not_packaged_again(tmp_path):
    said = []
    for _ in range(2):
        chart_packages.package(tmp_path, said.append)
    assert len(said) == 1
    (tmp_path / "vcluster-0.36.1.tgz").unlink()
    chart_packages.package(tmp_path, said.append)
    assert said[1] == "packaging 1 stand-in charts"


# With Helm itself


@pytest.fixture(scope="module")
def helm():
    return toolbox.ensure(["helm"], print)["helm"].path


@pytest.fixture(scope="module")
def packaged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("charts")
    chart_packages.package(folder, print)
    return folder


@pytest.fixture(scope="module")
def template(helm, packaged):
    """Objects of a packaged chart as installed under name `ml` in namespace `team-ml`."""

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
def test_packages_are_named_as_a_mirror_wants_them(packaged):
    made = {path.name for path in Path(packaged).iterdir()}
    assert made == {chart.file_name for chart in chart_packages.packages()}
    with tarfile.open(packaged / "kai-scheduler-v0.9.3.tgz") as archive:
        text = archive.extractfile("kai-scheduler/Chart.yaml").read()
    assert yaml.safe_load(text)["version"] == "v0.9.3"


@pytest.mark.engine
@pytest.mark.parametrize("version", chart_packages.KAI_VERSIONS)
def test_kai_has_the_deployments_of_its_version(render, version):
    objects = render("kai-scheduler", version)
    release = releases.KAI[version]
    # Where there is an operator it makes the rest, once Helm is done.
    by_chart = set(release.deployments) & {"kai-operator", "scheduler"}
    by_chart |= set() if release.operator_makes_binder else {"binder"}
    wanted = by_chart if release.has_operator else set(release.deployments)
    assert names(objects, "Deployment") == wanted
    assert "queues.scheduling.run.ai" in names(objects, "CustomResourceDefinition")
    assert names(objects, "Namespace") == {"kai-resource-reservation"}
    assert names(objects, "PriorityClass") == {"train", "build-preemptible", "build", "inference"}
    assert (("Config", "kai-config") in objects) == release.has_operator


@pytest.mark.engine
def test_kai_before_its_operator_knows_no_config(render):
    objects = render("kai-scheduler", "v0.7.11")
    assert "configs.kai.scheduler" not in names(objects, "CustomResourceDefinition")
    assert not names(objects, "Config")


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
    annotations = [item["metadata"].get("annotations", {}) for item in configs]
    assert sorted((it.get("helm.sh/hook") for it in annotations), key=str) == hooks
    kept = any(
        "hook" in str(it) or it.get("helm.sh/resource-policy") == "keep" for it in annotations
    )
    assert kept == (version != "v0.9.3")


@pytest.mark.engine
@pytest.mark.parametrize(
    ("version", "wanted"),
    [("v0.9.3", set()), ("v0.16.8", {"default-parent-queue", "default-queue"})],
)
def test_kai_makes_default_queues_from_v0_10_unless_told_not_to(render, version, wanted):
    assert names(render("kai-scheduler", version), "Queue") == wanted
    off = {"defaultQueue": {"createDefaultQueue": False}}
    assert names(render("kai-scheduler", version, off), "Queue") == set()


@pytest.mark.engine
def test_gpu_sharing_reaches_the_part_that_grants_it(template):
    values = {"global": {"gpuSharing": True}}
    old = template("kai-scheduler", "v0.7.11", values)
    (binder,) = [
        it for it in old if (it["kind"], it["metadata"]["name"]) == ("Deployment", "binder")
    ]
    containers = binder["spec"]["template"]["spec"]["containers"]
    assert containers[0]["args"] == ["--gpu-sharing-enabled=true"]
    new = template("kai-scheduler", "v0.16.8", values)
    specs = [item["spec"] for item in new if item["kind"] == "Config"]
    assert True in [spec.get("admission", {}).get("gpuSharing") for spec in specs]


@pytest.mark.engine
@pytest.mark.parametrize("mode", [None, "Disabled", "HamiCore"])
def test_v0_18_shares_where_it_is_told_nothing(template, mode):
    values = {"global": {"gpuSharingMode": mode} if mode else {}}
    made = template("kai-scheduler", "v0.18.0", values)
    specs = [item["spec"] for item in made if item["kind"] == "Config"]
    modes = [spec.get("global", {}).get("gpuSharingMode") for spec in specs]
    assert (mode or "NonMemoryEnforced") in modes


@pytest.mark.engine
def test_queue_crd_is_cluster_scoped_and_takes_the_fields_of_a_queue(render):
    crd = render("kai-scheduler", "v0.9.3")["CustomResourceDefinition", "queues.scheduling.run.ai"]
    assert crd["spec"]["scope"] == "Cluster"
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert set(schema["properties"]) == {
        *("displayName", "parentQueue", "priority", "preemptMinRuntime", "reclaimMinRuntime"),
        "resources",
    }


@pytest.mark.engine
@pytest.mark.parametrize("version", chart_packages.VCLUSTER_VERSIONS)
def test_a_vcluster_has_the_objects_by_which_it_is_found(render, version):
    values = {
        "controlPlane": {"service": {"spec": {"type": "NodePort"}}},
        "sync": {"fromHost": {"nodes": {"enabled": True, "selector": {"labels": {"a": "b"}}}}},
    }
    objects = render("vcluster", version, values)
    labels = objects["StatefulSet", "ml"]["metadata"]["labels"]
    assert (labels["app"], labels["release"], labels["chart"]) == (
        "vcluster",
        "ml",
        f"vcluster-{version}",
    )
    service = objects["Service", "ml"]["spec"]
    assert service["type"] == "NodePort"
    assert service["ports"][0]["port"] == 443 and service["ports"][0]["targetPort"] == 8443
    assert objects["Service", "ml-headless"]["spec"]["clusterIP"] == "None"
    assert names(objects, "ServiceAccount") == {"vc-ml"}
    assert names(objects, "ClusterRole") == names(objects, "ClusterRoleBinding")
    assert names(objects, "ClusterRole") == {"vc-ml-v-team-ml"}
    assert "config.yaml" in objects["Secret", "vc-config-ml"]["data"]


@pytest.mark.engine
def test_a_changed_vcluster_configuration_makes_a_new_pod(render):
    def pod(**values):
        template = render("vcluster", "0.36.1", values)["StatefulSet", "ml"]["spec"]["template"]
        return template["metadata"]["annotations"]["vClusterConfigHash"]

    assert pod() == pod() != pod(telemetry={"enabled": False})


@pytest.mark.engine
@pytest.mark.parametrize(
    ("version", "key"), [("0.27.3", "sleep"), ("0.36.1", "sleepMode"), ("0.36.1", "vcluster")]
)
def test_vcluster_refuses_a_key_that_its_version_does_not_have(render, version, key):
    with pytest.raises(ValueError, match=f"additional properties '{key}' not allowed"):
        render("vcluster", version, {key: {}})


@pytest.mark.engine
def test_the_gpu_operator_brings_its_crd_class_and_plugin(render):
    objects = render("gpu-operator", GPU_PROVIDERS["operator"].version)
    assert names(objects, "CustomResourceDefinition") == {"clusterpolicies.nvidia.com"}
    assert names(objects, "RuntimeClass") == {"nvidia"}
    assert names(objects, "DaemonSet") == {"nvidia-device-plugin-daemonset"}


@pytest.mark.engine
def test_the_device_plugin_runs_on_nodes_with_gpus(render):
    pod = render("nvidia-device-plugin", GPU_PROVIDERS["device-plugin"].version)["DaemonSet", "ml"]
    selector = pod["spec"]["template"]["spec"]["nodeSelector"]
    assert selector == {"nvidia.com/gpu.present": "true"}
