"""chart-of-its-part: a chart is the one that its section or component is for, however spelled."""

import copy
from dataclasses import replace

import pytest

from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_cli.plan.picture import as_declared, of_clusters
from kai_fleet_policies.adapters.from_resources import clusters
from kai_fleet_policies.finding import Level
from kai_fleet_policies.pack.analyzer import Analyzer
from kai_fleet_policies.rules import check
from kai_fleet_stack import validation
from tests.unit.cli.doctor.doctor_samples import SETTINGS
from tests.unit.policies.samples import granted, refused_keys
from tests.unit.policies.test_pack import reported
from tests.unit.policies.test_sources_known import CLUSTER, DIGEST, TEAM

pytestmark = pytest.mark.texts("rules")

NAME = "chart-of-its-part"
LOFT, NGC = "https://charts.loft.sh", "https://helm.ngc.nvidia.com/nvidia/charts"
KAI = "oci://ghcr.io/kai-scheduler/kai-scheduler"
MIRROR = "mirror.corp/fleet"
SOURCES = {"charts": [f"oci://{MIRROR}", f"https://{MIRROR}"]}


def stack(part, section):
    """A stack whose part has the keys: of all vClusters, the GPU stack, a KAI of team or host."""
    raw = {"cluster": CLUSTER, "teams": {"ml": copy.deepcopy(TEAM)}, "sources": SOURCES}
    if part == "scheduler":
        raw["teams"]["ml"]["scheduler"] |= section
    elif part == "kai":
        raw |= {"teams": {}, "kai": {"version": "v0.16.8", **section}}
    else:
        raw[part] = section
    return raw


def refused(raw, facts=None):
    return refused_keys(NAME, raw, facts)


PLACES = {
    "vcluster": "kai-fleet:vcluster",
    "scheduler": "kai-fleet:teams.ml.scheduler",
    "kai": "kai-fleet:kai",
    "gpu": "kai-fleet:gpu",
}
OPERATOR = {"provider": "operator"}
ANOTHER = [
    ("vcluster", f"{NGC}/gpu-operator-v25.3.0.tgz"),
    ("vcluster", f"oci://{MIRROR}/gpu-operator"),
    ("vcluster", f"oci://{MIRROR}/vcluster/gpu-operator:0.36.1"),
    ("vcluster", f"oci://{MIRROR}/vcluster-0.36.1.tgz"),
    ("vcluster", f"oci://{MIRROR}/vcluster:0.35.3"),
    ("vcluster", f"oci://{MIRROR}/vcluster:0.35.3@{DIGEST}"),
    ("vcluster", f"{LOFT}/charts/vcluster-0.35.3.tgz"),
    ("vcluster", f"{LOFT}/charts/vcluster-pro-0.36.1.tgz"),
    ("vcluster", f"{LOFT}/charts/VCluster-0.36.1.tgz"),
    ("vcluster", f"{LOFT}/charts/vcluster-0.36.1.tgz/"),
    ("vcluster", f"{LOFT}/charts/vcluster-0.36.1.tgz/index"),
    ("vcluster", f"{LOFT}/charts/vcluster"),
    ("vcluster", LOFT),
    ("scheduler", f"{KAI}/kai-resource-isolator"),
    ("scheduler", f"{KAI}/kai-scheduler:v0.9.3"),
    ("scheduler", f"oci://{MIRROR}/vcluster"),
    ("scheduler", f"https://{MIRROR}/kai-scheduler-v0.20.1.tgz"),
    ("kai", f"{NGC}/gpu-operator-v26.7.1.tgz"),
    ("kai", f"oci://{MIRROR}/kai-scheduler:latest"),
    ("gpu", f"oci://{MIRROR}/vcluster"),
    ("gpu", f"oci://{MIRROR}/nvidia-device-plugin"),
    ("gpu", f"{NGC}/gpu-operator-v25.3.0.tgz"),
]


@pytest.mark.parametrize(("part", "chart"), ANOTHER)
def test_chart_of_its_part_refuses_another_of_a_known_place(part, chart, texts):
    more = OPERATOR if part == "gpu" else {}
    ((path, problem),) = refused(stack(part, {"chart": chart, **more})).items()
    assert path == f"{PLACES[part]}.chart"
    texts(problem)


@pytest.mark.parametrize(
    ("part", "chart"),
    [
        ("vcluster", f"{LOFT}/charts/vcluster-0.36.1.tgz"),
        ("vcluster", f"oci://{MIRROR}/gpu-operator/vcluster"),
        ("vcluster", f"oci://{MIRROR}/vcluster:0.36.1@{DIGEST}"),
        ("vcluster", f"oci://{MIRROR}/vcluster@{DIGEST}"),
        ("scheduler", f"{KAI}/kai-scheduler:v0.16.8"),
        ("kai", f"https://{MIRROR}/kai-scheduler-v0.16.8.tgz"),
        ("gpu", f"{NGC}/gpu-operator-v26.7.1.tgz"),
        ("gpu", f"oci://{MIRROR}/gpu-operator"),
    ],
)
def test_chart_of_its_part_passes(part, chart):
    more = OPERATOR if part == "gpu" else {}
    assert not validation.validate(stack(part, {"chart": chart, **more})).refused


@pytest.mark.parametrize("mode", ["virtual", "host", "default"])
def test_chart_of_its_part_is_asked_in_every_mode(mode):
    raw = stack("vcluster", {"chart": f"oci://{MIRROR}/gpu-operator"})
    if mode == "host":
        raw |= {"kai": {"version": "v0.16.8"}, "queues": {"all": {"children": {"ml": {"gpu": 2}}}}}
    queue = {"queue": "ml"} if mode == "host" else {}
    queues = TEAM["queues"] if mode == "virtual" else {}
    own = {"mode": mode} | ({"version": "v0.16.8"} if mode == "virtual" else {})
    raw["teams"]["ml"] = {**TEAM, "scheduler": own, "queues": queues, **queue}
    assert list(refused(raw)) == ["kai-fleet:vcluster.chart"]


def test_chart_of_its_part_refuses_a_package_for_a_team_of_another_version(texts):
    raw = stack("vcluster", {"chart": f"{LOFT}/charts/vcluster-0.36.1.tgz"})
    raw["teams"]["ml"]["vcluster"] = {"version": "v0.35.3"}
    (problem,) = refused(raw).values()
    texts(problem)


def test_chart_of_its_part_is_asked_of_team_stacks_and_mirrors():
    facts = granted({"nlp": {"nodePool": {"pool": "nlp"}, "gpus": 2}}, mirror=MIRROR)
    team = {"name": "nlp", "scheduler": {**TEAM["scheduler"]}}
    raw = {"platform": {"stack": "prod"}, "team": team}
    assert refused(raw, facts) == {}
    team["vcluster"] = {"chart": f"oci://{MIRROR}/charts/gpu-operator"}
    team["scheduler"]["chart"] = f"oci://{MIRROR}/charts/vcluster"
    assert sorted(refused(raw, facts)) == [
        "kai-fleet:team.scheduler.chart",
        "kai-fleet:team.vcluster.chart",
    ]


@pytest.mark.parametrize("key", ["mirror", "chart"])
def test_chart_of_its_part_a_gpu_stack_elsewhere_has_the_tables_version_or_is_untested(key, texts):
    elsewhere = {"chart": f"oci://{MIRROR}/gpu-operator"} if key == "chart" else {}
    gpu = {**OPERATOR, "version": "v25.3.0", **elsewhere}
    raw = stack("gpu", gpu) | {"mirror": MIRROR if key == "mirror" else None}
    problem = refused(raw)["kai-fleet:gpu.version"]
    gpu["untested"] = True
    verdict = validation.validate(raw)
    assert not verdict.refused
    texts(problem, *(each for each in verdict.problems if each.check == NAME))


def test_chart_of_its_part_a_gpu_stack_of_its_own_place_has_any_version():
    assert not validation.validate(stack("gpu", {**OPERATOR, "version": "v25.3.0"})).refused


def test_chart_of_its_part_repeats_nothing_of_a_location():
    raw = stack("vcluster", {"chart": f"https://{MIRROR}/hunter2-1.2.3.tgz"})
    assert "hunter2" not in str(refused(raw)) and refused(raw)


# What is declared


def planned(**of_release):
    """The resources of a plan, with other inputs of some releases."""
    plan = plan_settings(copy.deepcopy(SETTINGS) | {"gpu": OPERATOR})
    return [
        replace(each, props={**each.props, **of_release.get(each.name.replace("-", "_"), {})})
        for each in as_declared(plan.resources)
    ]


@pytest.mark.parametrize(
    "release", ["ml_release", "ml_kai_release", "host_gpu_release"], ids=lambda name: name
)
@pytest.mark.parametrize(
    "chart",
    [
        f"{NGC}/cert-manager-v25.3.0.tgz",
        f"{LOFT}/cert-manager-1.0.0.tgz?of=/vcluster-0.36.1.tgz",
        f"{LOFT}/cert-manager-1.0.0.tgz#/kai-scheduler-v0.16.8.tgz",
        "oci://ghcr.io/x/vcluster/../cert-manager",
        "https://x.example/vcluster/%2e%2e/cert-manager-1.0.0.tgz",
        "https://x.example/cert-manager-1.0.0.tgz/..",
        "https://x.example/vcluster%2f..%2fcert-manager-1.0.0.tgz",
        "OCI://ghcr.io/x/VCLUSTER",
        "/srv/charts/cert-manager-1.0.0.tgz",
        "",
    ],
)
def test_chart_of_its_part_of_components_in_any_program(release, chart):
    found = check(clusters(planned(**{release: {"chart": chart}})))
    (problem,) = [p for p in found if p.check == NAME]
    assert problem.level is Level.MANDATORY
    assert problem.path.startswith("urn:")


def test_chart_of_its_part_of_the_program_passes():
    assert [p for p in check(clusters(planned())) if p.check == NAME] == []


def test_picture_has_the_team_whose_vcluster_is_another_chart():
    rows = of_clusters(clusters(planned())).teams
    other = {"ml_release": {"chart": f"{NGC}/gpu-operator-v25.3.0.tgz"}}
    now = of_clusters(clusters(planned(**other))).teams
    assert [row[0] for row in now] == [row[0] for row in rows]
    (ml,) = [row for row in now if row[0] == "ml"]
    assert "another chart" in ml


@pytest.mark.parametrize("above", ["Team", "Team$shop:index:Tools", "TeamNamespace", "HostGuards"])
def test_chart_of_its_part_any_other_release_in_a_component_is_refused_by_the_pack(above):
    release = planned()[0]
    types = f"kai-fleet:index:{above}$kubernetes:helm.sh/v3:Release"
    urn = f"urn:pulumi:dev::shop::{types}::ray"
    created = replace(
        release,
        urn=urn,
        type="kubernetes:helm.sh/v3:Release",
        name="ray",
        props={"chart": "kuberay-operator", "version": "1.4.0", "namespace": "ray"},
    )
    refusals = [(policy, at) for policy, _, at, _ in reported(Analyzer(), created)]
    assert (NAME, urn) in refusals
    outside = replace(created, urn=urn.replace(f"kai-fleet:index:{above}$", ""))
    assert NAME not in str(reported(Analyzer(), outside))
    named_so = replace(outside, urn=f"{outside.urn}-kai-fleet:index:Team$x", name="x")
    assert NAME not in str(reported(Analyzer(), named_so))
