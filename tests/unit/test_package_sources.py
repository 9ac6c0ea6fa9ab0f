"""Components of the package keep to the places of charts and images, as a stack file does."""

import copy
import re

import pulumi
import pytest

from kai_fleet.options import chart_args
from kai_fleet.package import pages
from kai_fleet.provider import PluginError
from kai_fleet.releases.sources import MIRROR
from kai_fleet_cli.plan import recorder
from tests.unit.package_requests import constructed

MIRRORED = {"charts": ["oci://mirror.corp/charts"], "images": ["mirror.corp"]}
FLAGS = {"apiServer": {"extraArgs": ["--authorization-mode=AlwaysAllow"]}}
EVIL = {"controlPlane": {"advanced": {"defaultImageRegistry": "evil.example"}}}
OWN = {"controlPlane": {"advanced": {"defaultImageRegistry": "mirror.corp"}}}
# Where each component takes a chart and values.
PLACES = {
    "Platform": ("gpu", "kai", "vcluster", "teams.ml.vcluster", "teams.ml.scheduler"),
    "Team": ("vcluster", "scheduler", "kai"),
    "VirtualCluster": ("",),
    "KaiScheduler": ("",),
    "GpuStack": ("",),
}
EVERY = [(kind, place) for kind, places in PLACES.items() for place in places]


def declared(kind, place, **given):
    """What is declared for an example of a page with some inputs more, at a place of them."""
    name, inputs = pages.EXAMPLES[kind]
    inputs = copy.deepcopy(dict(inputs))
    sources = given.pop("sources", None)
    here = inputs
    for step in filter(None, place.split(".")):
        here = here.setdefault(step, {"version": "v0.16.8"} if step == "kai" else {})
    here |= given
    if sources:
        inputs["sources"] = sources

    def program():
        opts = pulumi.ResourceOptions()
        constructed(kind, name, inputs, opts)

    return recorder.record("lab", {}, program=program)


def refusal(*asked, **given):
    with pytest.raises((PluginError, pulumi.RunError)) as refused:
        declared(*asked, **given)
    return str(refused.value)


@pytest.mark.parametrize(("kind", "place"), EVERY)
@pytest.mark.parametrize("chart", ["oci://evil.example/x", "./chart", "oci://mirror.corp.evil/x"])
def test_a_chart_from_elsewhere_is_refused_at_its_input(kind, place, chart):
    said = refusal(kind, place, chart=chart, sources=MIRRORED)
    where = f"{place}.chart".lstrip(".")
    assert re.search(rf"^  {re.escape(where)}: has chart", said, re.M), said
    assert "evil" not in said, "an input may be a secret"


@pytest.mark.parametrize(("kind", "place"), [it for it in EVERY if it[1] != "kai"])
def test_a_chart_of_the_sources_is_taken(kind, place):
    chart = "oci://mirror.corp/charts/x"
    assert declared(kind, place, chart=chart, sources=MIRRORED)
    refusal(kind, place, chart=chart)


def test_images_and_flags_in_the_values_of_a_vcluster_alone_are_refused():
    said = refusal("VirtualCluster", "", values=EVIL)
    assert "values.controlPlane.advanced.defaultImageRegistry: has" in said
    assert declared("VirtualCluster", "", values=OWN, sources=MIRRORED)
    said = refusal("VirtualCluster", "", values={"controlPlane": {"distro": {"k8s": FLAGS}}})
    assert "--authorization-mode" in said


def test_a_vcluster_in_a_place_of_the_platform_keeps_what_isolates_it():
    values = {"exportKubeConfig": {"secret": {"name": "x", "namespace": "default"}}}
    said = refusal("VirtualCluster", "", values=values, prepared=True)
    assert "values.exportKubeConfig.secret.namespace: has" in said
    assert declared("VirtualCluster", "", values=values)


def test_a_file_beside_the_program_is_not_installed_in_place_of_a_chart(tmp_path, monkeypatch):
    monkeypatch.delenv(MIRROR, raising=False)
    monkeypatch.chdir(tmp_path)
    asked = ("vcluster", "0.36.1")
    assert chart_args(*asked, override=None, repository="https://charts.loft.sh")
    (tmp_path / "vcluster").mkdir()
    with pytest.raises(pulumi.RunError, match=r"vcluster beside Pulumi\.yaml would be installed"):
        chart_args(*asked, override=None, repository="https://charts.loft.sh")
