"""sources-known: what names a chart or an image stays where the platform says, however spelled."""

import json

import pytest

from kai_fleet.releases import KAI, sources
from kai_fleet_stack import validation
from kai_fleet_stack.arguments import Arguments
from kai_fleet_stack.settings.loading import load
from tests.unit.policies.samples import granted, refused_keys

pytestmark = pytest.mark.texts("rules")

NAME = "sources-known"
DIGEST = f"sha256:{'a' * 64}"
CLUSTER = {"name": "lab", "context": "lab"}
TEAM = {
    "scheduler": {"mode": "virtual", "version": "v0.16.8"},
    "nodePool": {"pool": "ml"},
    "gpus": 2,
    "queues": {"top": {"children": {"train": {"gpu": 2}}}},
}
MIRRORED = {"charts": ["oci://mirror.corp/charts"], "images": ["mirror.corp"]}


def at(path, value, **more):
    """A platform's stack file with one value at a dotted path of the team ml, or of the stack."""
    raw = {"cluster": CLUSTER, "teams": {"ml": json.loads(json.dumps(TEAM))}, **more}
    here = raw if path.startswith(("gpu", "kai", "vcluster", "cluster")) else raw["teams"]["ml"]
    *steps, last = path.split(".")
    for step in steps:
        here = here.setdefault(step, {})
    here[last] = value
    return raw


def refused(raw, facts=None):
    return refused_keys(NAME, raw, facts)


ELSEWHERE = [
    "oci://evil.example/kai-scheduler",
    "oci://ghcr.io/nvidia/kai-scheduler-evil/kai-scheduler",
    "oci://ghcr.io/kai-scheduler/kai-scheduler/../../evil/x",
    "oci://ghcr.io//kai-scheduler/kai-scheduler/x",
    "oci://ghcr.io@evil.example/kai-scheduler/kai-scheduler/kai-scheduler",
    "oci://GHCR.io/kai-scheduler/kai-scheduler/kai-scheduler",
    "oci://ghcr.io:8443/kai-scheduler/kai-scheduler/kai-scheduler",
    "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler\n",
    "oci://ghcr.io\\@evil.example/kai-scheduler/kai-scheduler",
    "https://charts.loft.sh.evil.example/vcluster-0.36.1.tgz",
    "https://charts.loft.sh/%2e%2e/vcluster-0.36.1.tgz",
    "https://charts.loft.sh?redirect=evil.example",
    "http://charts.loft.sh/vcluster-0.36.1.tgz",
    "./chart",
    "file:///x.tgz",
]


def refused_chart(key, chart):
    """What is refused where a part's chart is this one."""
    raw = at(f"{key}.chart", chart)
    if key == "kai":
        raw["kai"]["version"] = "v0.16.8"
        raw["teams"] = {}
    part = "teams.ml.scheduler" if key == "scheduler" else key
    return refused(raw)[f"kai-fleet:{part}.chart"]


@pytest.mark.parametrize("chart", ELSEWHERE)
@pytest.mark.parametrize("key", ["vcluster", "scheduler", "gpu", "kai"])
def test_sources_known_refuses_a_chart_from_elsewhere_at_its_key(key, chart):
    assert "kai-fleet:sources.charts" in refused_chart(key, chart).fix


def test_sources_known_refusals_in_words(texts):
    parts = [refused_chart(key, ELSEWHERE[0]) for key in ("vcluster", "scheduler", "kai")]
    charts = [refused_chart("gpu", chart) for chart in ELSEWHERE]
    values = [
        problem
        for part, key, value in flat(VALUES)
        for problem in refused(at(f"{part}.values.{key}", value)).values()
    ]
    texts(*parts, *charts, *values)


def test_sources_known_charts_of_the_tables_places_pass():
    for chart in (
        f"oci://ghcr.io/nvidia/kai-scheduler/kai-scheduler@{DIGEST}",
        "https://charts.loft.sh/charts/vcluster-0.36.1.tgz",
    ):
        assert refused(at("vcluster.chart", chart)) == {}
    places = [sources.chart_place(each) for each in sources.CHARTS]
    assert all(sources.in_any(sources.chart_place(kai.chart), places) for kai in KAI.values())


def test_sources_known_repeats_no_value_which_may_be_a_secret():
    raw = at("vcluster.chart", "oci://user:hunter2@evil.example/vcluster")
    raw["teams"]["ml"]["scheduler"]["values"] = {"global": {"registry": "hunter2.example/kai"}}
    assert len(refused(raw)) == 2
    assert "hunter2" not in str(refused(raw))


REGISTRY, COREDNS = "controlPlane.advanced.defaultImageRegistry", "controlPlane.coredns"
STATEFUL, HELM = "controlPlane.statefulSet", "experimental.deploy.vcluster.helm"
ETCD = "controlPlane.backingStore.etcd.deploy.statefulSet.image"
EVIL = "evil.example/x:1"
VALUES = {
    # One registry for all, and each image by its parts.
    "vcluster": [
        *((REGISTRY, name) for name in ("ghcr.io/loft-sh-evil", "ghcr.io/loft-sh/../evil")),
        (REGISTRY, "user:pw@ghcr.io/loft-sh"),
        (f"{STATEFUL}.image.registry", "evil.example"),
        (f"{STATEFUL}.image.repository", "evil/vcluster"),
        (f"{STATEFUL}.image.tag", "5000/evil:1"),
        (f"{STATEFUL}.initContainers", [{"name": "s", "image": "busybox"}]),
        (f"{STATEFUL}.env", [{"name": "DEFAULT_IMAGE_REGISTRY", "value": "evil.example"}]),
        (f"{ETCD}.registry", ""),
        (f"{COREDNS}.deployment.image", "evil/coredns"),
        (f"{COREDNS}.overwriteManifests", "image: {{ .IMAGE }}: x"),
        (COREDNS, {"image": {"registry": None, "repository": "evil/x"}}),
        ("sync.toHost.pods.translateImage", {"binder": EVIL}),
        ("plugins", {"p": {"image": EVIL}}),
        ("deploy.cni.flannel.initImage", EVIL),
        (HELM, [{"chart": {"name": "x", "repo": "https://evil.example"}}]),
        (HELM, [{"bundle": "H4sIAAAAAAAA"}]),
        ("global.imageRegistry", "evil.example"),
    ],
    # One registry, and names below it.
    "scheduler": [
        *(("global.registry", name) for name in ("evil", "ghcr.io")),
        ("global.registry", "ghcr.io/kai-scheduler/kai-scheduler-evil"),
        ("operator.image.name", "../../evil/operator"),
        ("operator.image.tag", "v1/../x"),
        ("binder.additionalArgs", [f"--resource-reservation-pod-image={EVIL}"]),
        ("binder.additionalArgs", ["-resource-reservation-pod-image", EVIL]),
        ("nodescaleadjuster.additionalArgs", ["--v=2 --scaling-pod-image evil/x"]),
    ],
    # A repository with or without the image, or the whole name in either.
    "gpu": [
        ("operator", {"repository": "", "version": "", "image": EVIL}),
        ("operator.env", [{"name": "DRIVER_IMAGE", "value": EVIL}]),
        ("driver.manager", {"repository": "nvcr.io", "image": "nvidia-evil/x"}),
        ("image.repository", "nvcr.io/nvidia.evil.example/k8s-device-plugin"),
        ("extra", {"DRIVER_IMAGE": EVIL}),
        ("kataManager.config.runtimeClasses", [{"artifacts": {"url": "evil.example/kata:1"}}]),
    ],
}


def flat(values):
    return [(part, *case) for part, every in values.items() for case in every]


@pytest.mark.parametrize(("part", "key", "value"), flat(VALUES))
def test_sources_known_refuses_an_image_or_registry_in_a_value_at_its_key(part, key, value):
    raw = at(f"{part}.values.{key}", value)
    found = refused(raw)
    place = "kai-fleet:teams.ml.scheduler" if part == "scheduler" else f"kai-fleet:{part}"
    assert found
    assert all(path.startswith(f"{place}.values.{key}") for path in found)


RIGHT = {
    "vcluster": [
        (f"{STATEFUL}.image", {"registry": "ghcr.io", "tag": "0.36.1"}),
        (f"{COREDNS}.deployment.image", "coredns/coredns:1.12.1"),
        ("controlPlane.distro.k8s.image.tag", f"v1.34.4@{DIGEST}"),
        (ETCD, {"registry": "registry.k8s.io", "repository": "etcd", "tag": "3.6.4-0"}),
        ("experimental.deploy.vcluster.manifests", "kind: Pod\nspec: {image: users/own}"),
    ],
    "scheduler": [
        ("global.registry", "ghcr.io/nvidia/kai-scheduler"),
        ("global.imagePullSecrets", [{"name": "regcred"}]),
        ("operator.image", {"name": "operator", "tag": "v0.16.8"}),
        ("binder.additionalArgs", ["--v=4"]),
    ],
    "gpu": [
        ("driver", {"image": "driver", "version": "570.124.06", "imagePullSecrets": ["r"]}),
        ("image", {"repository": "nvcr.io/nvidia/k8s-device-plugin", "tag": "v0.20.0"}),
        ("config.map", {"default": "version: v1\nsharing: {}"}),
    ],
}


@pytest.mark.parametrize(("part", "key", "value"), flat(RIGHT))
def test_sources_known_what_the_charts_name_and_what_names_nothing_passes(part, key, value):
    assert refused(at(f"{part}.values.{key}", value)) == {}


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("vcluster", "chart", "oci://mirror.corp/charts/vcluster"),
        ("vcluster", "values.controlPlane.advanced.defaultImageRegistry", "mirror.corp/vc/"),
        ("vcluster", "values.controlPlane.coredns.deployment.image", "mirror.corp/coredns:1"),
        ("scheduler", "values.global.registry", "mirror.corp/kai"),
        ("gpu", "values.validator", {"repository": "mirror.corp/nvidia", "image": "v"}),
    ],
)
def test_sources_known_a_mirror_passes_once_the_platform_names_it(part, key, value):
    assert refused(at(f"{part}.{key}", value))
    assert refused(at(f"{part}.{key}", value, sources=MIRRORED)) == {}


def test_sources_known_a_mirror_is_no_more_than_its_own_paths_and_host():
    for chart in (
        "oci://mirror.corp.evil/charts/x",
        "https://mirror.corp/x",
        "oci://mirror.corp/x",
    ):
        assert refused(at("vcluster.chart", chart, sources=MIRRORED)), chart
    assert refused(at("scheduler.values.global.registry", "mirror.corp:5000/kai", sources=MIRRORED))


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("charts", "/srv/charts"),
        ("charts", "http://mirror.corp"),
        ("charts", "oci://mirror.corp/x:1"),
        ("images", "u:p@mirror.corp"),
    ],
)
def test_sources_a_wrong_one_is_refused_with_what_to_write(kind, source, texts):
    problems = validation.validate({"cluster": CLUSTER, "sources": {kind: [source]}}).refused
    assert problems
    assert all(each.path.startswith(f"kai-fleet:sources.{kind}") for each in problems)
    assert "u:p" not in str(problems)
    texts(*problems)


def test_sources_known_a_node_image_is_kinds_own_or_a_sources():
    raw = {"cluster": {"name": "lab", "kind": {"image": f"kindest/node:v1.34.0@{DIGEST}"}}}
    assert refused(raw) == {}
    raw["cluster"]["kind"]["image"] = "evil/node:v1"
    assert list(refused(raw)) == ["kai-fleet:cluster.kind.image"]


def test_sources_known_a_team_stack_has_its_platforms_and_writes_none(texts):
    facts = granted({"nlp": {"nodePool": {"pool": "nlp"}, "gpus": 2}}, sources=MIRRORED)
    assert facts.sources.images == ["mirror.corp"]
    team = {"name": "nlp"}
    team["scheduler"] = {**TEAM["scheduler"], "chart": "oci://mirror.corp/charts/kai-scheduler"}
    raw = {"platform": {"stack": "prod"}, "team": team}
    assert refused(raw, facts) == {}
    team["vcluster"] = {"chart": "oci://evil.example/vcluster"}
    found = refused(raw, facts)
    texts(found["kai-fleet:team.vcluster.chart"])
    own = validation.validate({**raw, "sources": MIRRORED}, facts_of=lambda _: facts).refused
    assert "kai-fleet:sources" in [p.path for p in own]


def test_arguments_kai_images_are_of_tables_and_sources_and_of_no_teams_values():
    registry = {"global": {"registry": "mirror.corp/kai"}}
    raw = at("scheduler.values", registry, sources={"images": ["mirror.corp/kai"]})
    raw["teamStacks"] = {"nlp": {"nodePool": {"pool": "nlp"}}}
    own = ["ghcr.io/nvidia/kai-scheduler", "ghcr.io/kai-scheduler/kai-scheduler"]

    def known(raw, team):
        return Arguments(load(raw).settings).namespace(team)["kai_images"]

    assert known(raw, "ml") == known(raw, "nlp") == [*own, "mirror.corp/kai"]
    assert known({**raw, "sources": {}}, "ml") == own
