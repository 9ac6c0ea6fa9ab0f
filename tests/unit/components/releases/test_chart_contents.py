"""A package or folder of a chart is the one that its Chart.yaml says, as far as it can be read."""

import io
import tarfile

import pulumi
import pytest
import yaml

from kai_fleet.helm_charts.chart_args import chart_args
from kai_fleet.releases.charts import chart_in
from kai_fleet.releases.sources import MIRROR

HOME = "https://charts.loft.sh"
KAI = "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler"


def package(folder, *files, name="vcluster-0.36.1.tgz"):
    """A package of files: (path, the name and version of a Chart.yaml, or text)."""
    path = folder / name
    with tarfile.open(path, "w:gz") as archive:
        for place, content in files:
            text = content if isinstance(content, str) else yaml.safe_dump(content)
            member = tarfile.TarInfo(place)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def chart(name="vcluster", version="0.36.1"):
    return {"apiVersion": "v2", "name": name, "version": version}


def installed(path, monkeypatch, by_mirror):
    if by_mirror:
        monkeypatch.setenv(MIRROR, str(path.parent))
    args = {} if by_mirror else {"chart": str(path)}
    return chart_args("vcluster", "0.36.1", args, HOME)["chart"]


@pytest.mark.parametrize("by_mirror", [True, False], ids=["KAI_FLEET_CHARTS", "chart"])
@pytest.mark.parametrize(
    "files",
    [
        [("vcluster/Chart.yaml", chart())],
        [("other/Chart.yaml", chart()), ("other/charts/gpu/Chart.yaml", chart("gpu-operator"))],
        [("vcluster/./Chart.yaml", chart(version="v0.36.1")), ("vcluster/values.yaml", "a: 1")],
    ],
)
def test_a_package_of_the_chart_is_installed(tmp_path, monkeypatch, files, by_mirror):
    path = package(tmp_path, *files)
    assert installed(path, monkeypatch, by_mirror) == str(path)


@pytest.mark.parametrize("by_mirror", [True, False], ids=["KAI_FLEET_CHARTS", "chart"])
@pytest.mark.parametrize(
    ("files", "says"),
    [
        ([("vcluster/Chart.yaml", chart("gpu-operator"))], "is gpu-operator 0.36.1"),
        ([("vcluster/Chart.yaml", chart(version="0.35.3"))], "is vcluster 0.35.3"),
        ([("a\\Chart.yaml", chart("gpu-operator"))], "is gpu-operator 0.36.1"),
        ([("a/Chart.yaml", chart()), ("b/Chart.yaml", chart("gpu-operator"))], "not one readable"),
        ([("vcluster/values.yaml", "a: 1")], "not one readable"),
        ([("vcluster/Chart.yaml", "[]")], "not one readable"),
        ([("vcluster/Chart.yaml", "{")], "not one readable"),
    ],
)
def test_a_package_with_another_content_is_refused(tmp_path, monkeypatch, files, says, by_mirror):
    path = package(tmp_path, *files)
    with pytest.raises(pulumi.RunError, match=says):
        installed(path, monkeypatch, by_mirror)


def test_a_folder_is_read_and_what_is_no_archive_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "vcluster"
    folder.mkdir()
    (folder / "Chart.yaml").write_text(yaml.safe_dump(chart()))
    assert installed(folder, monkeypatch, False) == str(folder)
    (folder / "Chart.yaml").write_text(yaml.safe_dump(chart("gpu-operator")))
    with pytest.raises(pulumi.RunError, match="is gpu-operator"):
        installed(tmp_path / ".." / tmp_path.name / "vcluster", monkeypatch, False)
    broken = tmp_path / "vcluster-0.36.1.tgz"
    broken.write_bytes(b"\x1f\x8bno archive")
    with pytest.raises(pulumi.RunError, match="not one readable"):
        installed(broken, monkeypatch, True)


@pytest.mark.parametrize("content", ["kai-scheduler", "evil"])
@pytest.mark.parametrize(
    ("chart", "home"),
    [
        (None, KAI),
        (KAI, KAI),
        ("https://x.example/charts/kai-scheduler-v0.16.8.tgz", KAI),
        (None, "https://x.example/charts"),
    ],
)
def test_a_file_of_the_project_is_installed_in_place_of_no_chart(
    tmp_path, monkeypatch, chart, home, content
):
    """Helm takes `oci://x` for the folder `oci:/x`, if there is one."""
    monkeypatch.delenv(MIRROR, raising=False)
    monkeypatch.chdir(tmp_path)
    args = {"chart": chart} if chart else {}
    account = {"chart_account": {"username": "robot", "password": "x"}}
    assert chart_args("kai-scheduler", "v0.16.8", args, home)
    of_home = home if home.startswith("oci:") else "kai-scheduler"
    folder = tmp_path / (chart or of_home)
    folder.mkdir(parents=True)
    (folder / "Chart.yaml").write_text(yaml.safe_dump({"name": content, "version": "v0.16.8"}))
    for more in ({}, account):
        with pytest.raises(pulumi.RunError, match="would be installed in place of the chart"):
            chart_args("kai-scheduler", "v0.16.8", {**args, **more}, home)


@pytest.mark.parametrize("other", ["oci://x.example/gpu-operator", "loft/k3s", "/x/k3s-1.0.0.tgz"])
def test_a_component_refuses_a_location_of_another_chart(other):
    account = {"username": "robot", "password": "x"}
    for more in ({}, {"chart_account": account}):
        with pytest.raises(
            pulumi.RunError, match=r"is not called vcluster; write oci://…/vcluster"
        ):
            chart_args("vcluster", "0.36.1", {"chart": other, **more}, HOME)


@pytest.mark.parametrize(
    ("location", "found"),
    [
        ("vcluster", ("vcluster", None)),
        ("loft/vcluster", ("vcluster", None)),
        ("./vcluster/", ("vcluster", None)),
        ("oci://x.example:5000/a/vcluster:0.36.1", ("vcluster", "0.36.1")),
        ("oci://x.example/vcluster-1.2.3.tgz", ("vcluster-1.2.3.tgz", None)),
        ("https://x.example/a-1.0.0.tgz?b-2.0.0.tgz", ("a", "1.0.0")),
        ("https://x.example/a/%2e%2e/b-2.0.0.tgz", ("b", "2.0.0")),
        ("https://x.example/a-1.0.0.tgz/..", ("..", None)),
    ],
)
def test_a_location_says_a_name_and_perhaps_a_version(location, found):
    assert chart_in(location) == found
