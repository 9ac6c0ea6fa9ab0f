"""Rules about versions of KAI and vCluster: the table, support, steps, and what a version has."""

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from kai_fleet import releases
from kai_fleet.releases.chart_stores import ChartStore
from kai_fleet.releases.chart_values import nested
from kai_fleet.values import UNKNOWN
from kai_fleet_cli.app import app
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.plan.picture import as_declared
from kai_fleet_policies import rules
from kai_fleet_policies.adapters import from_resources
from kai_fleet_policies.finding import Level
from kai_fleet_policies.model.cluster import TeamModel
from kai_fleet_policies.model.installed import Kai
from kai_fleet_stack import validation
from kai_fleet_stack.validation import merge_findings
from tests.unit.policies.samples import (
    cluster,
    found,
    open_question,
    refusal,
    refused_by,
    resource,
    team,
)

pytestmark = pytest.mark.texts("rules")

KNOWN, FEATURE = "kai-version-known", "kai-feature-known"
VCLUSTER_KNOWN = "vcluster-version-known"
LAB = {"cluster": {"name": "c", "context": "c"}}


@pytest.fixture
def on(monkeypatch):
    """Sets the day on which a version is judged."""

    def on(year, month, day):
        fixed = SimpleNamespace(today=lambda: date(year, month, day))
        monkeypatch.setattr(releases, "date", fixed)

    return on


@pytest.mark.parametrize(
    ("version", "written"),
    [
        ("v0.9.4", "v0.9.20"),
        ("v0.20.1", "v"),
        ("v1.2.0", "v0.16.9"),
        ("0.9.3", "v0.9.3"),
        ("latest", "v"),
        (None, "v"),
    ],
)
def test_kai_version_known_refuses_with_the_nearest(version, written, texts):
    problem = refusal(KNOWN, cluster(version=version))
    assert problem.path == "kai-fleet:kai.version"
    assert f"write {written}" in problem.message
    texts(problem)


@pytest.mark.parametrize(("version", "level"), [("v0.18.6", "advisory"), ("v0.15.0", "mandatory")])
def test_kai_version_known_untested_lets_newer_versions_through_and_no_others(version, level):
    right = cluster()
    tried = replace(right, kai=(replace(right.kai[0], version=version, untested=True),))
    (problem,) = found(KNOWN, tried)
    assert problem.level == level


@pytest.mark.parametrize(
    ("version", "day"),
    [
        ("v0.9.3", (2026, 10, 1)),
        ("v0.7.11", (2026, 11, 24)),
        ("v0.16.8", (2040, 1, 1)),
        ("v0.18.0", (2026, 11, 24)),
    ],
)
def test_kai_version_supported_warns_with_the_newest_maintained(on, version, day, texts):
    on(*day)
    (problem,) = found("kai-version-supported", cluster(version=version))
    assert (problem.level, problem.path) == (Level.ADVISORY, "kai-fleet:kai.version")
    texts(problem)


def test_kai_version_supported_passes_on_its_last_day(on):
    on(2026, 9, 30)
    assert found("kai-version-supported", cluster(version="v0.9.3")) == []


def test_vcluster_version_past_its_end_of_life_is_warned_about_once_for_a_key(on, texts):
    key = "kai-fleet:vcluster.version"
    teams = [TeamModel(name, version="v0.34.7", find_key=lambda *_: key) for name in ("ml", "nlp")]
    host = replace(cluster(), teams=(*teams, TeamModel("dev", version="v0.36.1")))
    on(2026, 10, 29)
    assert found(VCLUSTER_KNOWN, host) == []
    on(2026, 10, 30)
    (problem,) = merge_findings(found(VCLUSTER_KNOWN, host))
    assert (problem.path, problem.level) == (key, Level.ADVISORY)
    texts(problem)


@pytest.mark.parametrize("table", [releases.KAI, releases.VCLUSTER])
def test_version_rules_and_the_list_of_releases_say_the_same(table):
    """Where one of them advises against a version, so does the other, in the same words."""
    listed = CliRunner().invoke(app, ["releases"]).stdout.splitlines()
    kind = "KAI" if table is releases.KAI else "vCluster"
    for version in table:
        (line,) = (each for each in listed if each.startswith(f"{kind} {version} "))
        host = cluster(version="v0.16.8")
        if kind == "KAI":
            warned = found("kai-version-supported", cluster(version=version))
        else:
            host = replace(host, teams=(TeamModel("ml", version=version),))
            warned = found(VCLUSTER_KNOWN, host)
        against = "not advised" in line or "out of support" in line or "no support dates" in line
        assert bool(warned) == against, version
        assert all(releases.standing(table, version).words in each.cause for each in warned)
        assert releases.standing(table, version).words in line


def test_version_rules_untested_passes_in_the_program_and_in_the_pack():
    """Both are asked in an update: the gate about the file, the pack about what is declared."""
    team = {
        "scheduler": {"mode": "virtual", "version": "v0.18.6", "untested": True},
        "nodePool": {"pool": "a"},
        "vcluster": {"version": "v0.38.0", "untested": True},
    }
    raw = {**LAB, "teams": {"ml": team}}
    assert validation.validate(raw).refused == []
    declared_again = from_resources.clusters(as_declared(recorder.record("lab", raw)))
    assert [p for p in rules.check(declared_again) if p.level is Level.MANDATORY] == []
    del team["scheduler"]["untested"], team["vcluster"]["untested"]
    refused = validation.validate(raw).refused
    assert {p.check for p in refused} >= {KNOWN, VCLUSTER_KNOWN}


def running(version="v0.36.1", **changes):
    return replace(cluster(), teams=(team("ml", version=version, **changes),))


@pytest.mark.parametrize(("version", "newer"), [("v0.38.0", True), ("0.36.1", False)])
def test_vcluster_version_known_refuses_what_the_table_lacks(version, newer, texts):
    problem = refusal(VCLUSTER_KNOWN, running(version))
    assert problem.path == "kai-fleet:teams.ml.vcluster.version"
    assert ("untested" in problem.message) == newer
    texts(problem)


def test_vcluster_upgrade_goes_one_line_at_a_time(texts):
    assert found("vcluster-upgrade", running(running_version="v0.35.3")) == []
    assert found("vcluster-upgrade", running()) == [], "the first install has no before"
    problem = refusal("vcluster-upgrade", running(running_version="v0.34.7"))
    assert problem.path == "kai-fleet:teams.ml.vcluster.version"
    texts(problem)


KUBERNETES = "vcluster-kubernetes"


def with_kubernetes(written, runs=None, version="v0.36.1", **changes):
    values = nested("controlPlane.distro.k8s.image.tag", written) if written else {}
    return running(version, chart_values=values, running_kubernetes=runs, **changes)


@pytest.mark.parametrize(
    ("written", "runs", "version", "advised"),
    [
        ("v1.26.3", None, "v0.36.1", "v1.36.0"),
        ("v1.29.14", None, "v0.27.3", "v1.33.4"),
        ("v1.99.0", None, "v0.36.1", "v1.36.0"),
        ("v1.34.0", None, "v0.29.3", "v1.33.4"),
        ("v1.26.3", "v1.36.3", "v0.36.1", "v1.36.3"),
        ("v1.99.0", "v1.36.3", "v0.36.1", "v1.36.3"),
        ("v1.99.0", "v1.34.2", "v0.36.1", "v1.35.0"),
        ("v1.36.3", "v1.34.4", "v0.36.1", "v1.35.0 first"),
        ("v1.32.9", "v1.30.2", "v0.36.1", "v1.31.1 first"),
        ("v1.35.9", "v1.36.0", "v0.36.1", "v1.36.0"),
        # Without the key, the chart's own: of a version that was edited, too.
        (None, "v1.36.3", "v0.36.1", "v1.36.3"),
        (None, "v1.31.1", "v0.36.1", "v1.32.1 first"),
    ],
)
def test_vcluster_kubernetes_refuses_with_the_next_one(written, runs, version, advised, texts):
    problem = refusal(KUBERNETES, with_kubernetes(written, runs, version))
    assert problem.path == "kai-fleet:teams.ml.vcluster.kubernetesVersion"
    assert f"write {advised}" in problem.message
    texts(problem)


@pytest.mark.parametrize(
    ("written", "runs", "version"),
    [
        (None, "v1.34.4", "v0.34.7"),
        (None, "v1.35.0", "v0.35.3"),
        (None, None, "v0.27.3"),
        ("v1.36.9", "v1.36.3", "v0.36.1"),
        ("v1.36.3", "v1.35.9", "v0.36.1"),
        ("v1.30.14", None, "v0.36.1"),
        # What runs may stay, whatever its vCluster's own list has.
        ("v1.34.4", "v1.34.0", "v0.29.3"),
        ("v1.28.9", "v1.27.2", "v0.36.1"),
    ],
)
def test_vcluster_kubernetes_passes_one_by_one_in_what_its_vcluster_has(written, runs, version):
    assert found(KUBERNETES, with_kubernetes(written, runs, version)) == []


def test_vcluster_kubernetes_untested_passes_and_never_goes_back(texts):
    assert found(KUBERNETES, with_kubernetes("v1.38.0", version="v0.36.1", untested=True)) == []
    assert found(KUBERNETES, with_kubernetes("v1.38.0", version="v0.99.1")) == []
    texts(refusal(KUBERNETES, with_kubernetes("v1.20.0", "v1.36.0", untested=True)))


@pytest.mark.parametrize("key", ["version", "image.tag"])
def test_vcluster_kubernetes_in_the_charts_values_counts_as_the_key(key):
    values = nested(f"controlPlane.distro.k8s.{key}", "v1.26.3")
    problem = refusal(KUBERNETES, running(chart_values=values, values=values))
    assert problem.path.endswith(f"values.controlPlane.distro.k8s.{key}")
    own = nested(f"controlPlane.distro.k8s.{key}", "mine")
    assert found(KUBERNETES, running(chart_values=own, values=own)) == []


HOST_KUBERNETES = "vcluster-host-kubernetes"


def on_host(version, written, host, runs=None, **changes):
    return replace(with_kubernetes(written, runs, version, **changes), kubernetes=host)


@pytest.mark.parametrize(
    ("version", "inside"),
    [("v0.34.7", "v1.33.4"), ("v0.29.3", None), ("v0.31.3", "v1.32.1")],
)
def test_an_old_kubernetes_on_a_newer_host_is_refused_with_the_way_out(version, inside, texts):
    problem = refusal(HOST_KUBERNETES, on_host(version, inside, "v1.34.1"))
    assert problem.path == "kai-fleet:teams.ml.vcluster.version"
    texts(problem)


@pytest.mark.parametrize(
    ("version", "inside", "host"),
    [
        ("v0.34.7", "v1.33.4", "v1.33.9"),
        ("v0.34.7", "v1.34.0", "v1.36.3"),
        ("v0.35.3", "v1.33.4", "v1.36.3"),
        ("v0.36.1", "v1.30.2", "v1.36.3"),
        ("v0.34.7", "v1.33.4", None),
    ],
)
def test_other_pairs_of_host_and_inner_kubernetes_pass(version, inside, host):
    assert found(HOST_KUBERNETES, on_host(version, inside, host)) == []


def test_a_vcluster_that_runs_not_ready_can_go_up_line_by_line():
    """Refused, it could never reach the version that repairs it."""

    runs = {"running_version": "v0.33.4", "runs": "v1.33.4"}
    (problem,) = found(HOST_KUBERNETES, on_host("v0.34.7", "v1.33.4", "v1.36.3", **runs))
    assert problem.level is Level.ADVISORY


ETCD = ChartStore("etcd", members=3)


def test_the_charts_etcd_passes_through_the_version_before_v3_6(texts):
    step = running("v0.29.3", running_version="v0.28.0", store=ETCD)
    problem = refusal("vcluster-upgrade", step)
    assert "write v0.28.1 first" in problem.message
    texts(problem)
    for before, after in (("v0.28.1", "v0.29.3"), ("v0.29.1", "v0.29.3"), ("v0.27.0", "v0.28.1")):
        passes = running(after, running_version=before, store=ETCD)
        assert found("vcluster-upgrade", passes) == []
    assert found("vcluster-upgrade", running("v0.29.3", running_version="v0.28.0")) == []


KAI_KUBERNETES = "kai-kubernetes"


@pytest.mark.parametrize(
    ("kai", "kubernetes", "advised"),
    [
        ("v0.14.7", "v1.36.0", "move to v0.16.9"),
        ("v0.17.0", "v1.37.0", "look for a newer kai-fleet"),
        ("v0.9.8", "v1.33.4", "move to v0.16.9"),
    ],
)
def test_a_kai_on_a_newer_kubernetes_than_it_was_validated_with_is_a_warning(
    on, kai, kubernetes, advised, texts
):
    on(2026, 11, 24)
    (problem,) = found(KAI_KUBERNETES, cluster(version=kai, kubernetes=kubernetes))
    assert (problem.level, problem.path) == (Level.ADVISORY, "kai-fleet:kai.version")
    assert advised in problem.message
    texts(problem)


def test_a_kai_that_was_seen_on_a_kubernetes_is_no_warning():
    for kai, kubernetes in (("v0.9.3", "v1.36.0"), ("v0.14.7", "v1.35.9"), ("v0.9.3", None)):
        assert found(KAI_KUBERNETES, cluster(version=kai, kubernetes=kubernetes)) == []


def test_the_kubernetes_in_a_vcluster_is_judged_for_its_kai():
    raw = {
        "scheduler": {"mode": "virtual", "version": "v0.14.7"},
        "nodePool": {"pool": "a"},
        "gpus": 1,
    }
    problems = validation.validate({**LAB, "teams": {"ml": raw}}).problems
    (problem,) = (each for each in problems if each.check == KAI_KUBERNETES)
    assert problem.path == "kai-fleet:teams.ml.scheduler.version"


FIRST = {"shards": "v0.10.5", "fairshare": "v0.10.5", "topologies": "v0.12.23"}


def using(version, kind):
    used = {"shards": ("a",), "fairshare": True, "topologies": {"racks": ("rack",)}}
    return cluster(kai=(Kai(version, path="kai-fleet:kai", **{kind: used[kind]}),))


@pytest.mark.parametrize("kind", FIRST)
@pytest.mark.parametrize("version", list(releases.KAI))
def test_kai_feature_known_from_its_line_on(kind, version):
    has = releases.version_key(version) >= releases.version_key(FIRST[kind])
    problems = found(FEATURE, using(version, kind))
    assert [p.path for p in problems] == ([] if has else [f"kai-fleet:kai.{kind}"])


@pytest.mark.parametrize(
    ("rule", "seen"),
    [(KNOWN, cluster(version=UNKNOWN)), (FEATURE, using(UNKNOWN, "shards"))],
    ids=[KNOWN, FEATURE],
)
def test_version_rules_wait_for_a_version(rule, seen, texts):
    texts(open_question(rule, seen))


def test_vcluster_version_known_waits_for_a_version():
    props = {"chart": "vcluster", "version": UNKNOWN}
    judged = from_resources.clusters([resource("kubernetes:helm.sh/v3:Release", "ml", props)])
    questions = [problem for problem in rules.check(judged) if problem.undecided]
    assert VCLUSTER_KNOWN in {question.check for question in questions}
    assert not refused_by(rules.check(judged))


def test_kai_feature_known_refuses_at_its_key_with_a_version_to_write(texts):
    topologies = {"racks": ["kubernetes.io/hostname"]}
    scheduler = {"mode": "virtual", "version": "v0.9.3", "topologies": topologies}
    team = {"scheduler": scheduler, "gpus": 1, "nodePool": {"pool": "ml"}}
    (problem,) = validation.validate({**LAB, "teams": {"ml": team}}).refused
    assert (problem.check, problem.path) == (FEATURE, "kai-fleet:teams.ml.scheduler.topologies")
    texts(problem)


def test_kai_feature_known_of_any_programs_objects():
    props = {"chart": "kai-scheduler", "version": "v0.9.3", "namespace": "kai-scheduler"}
    release = resource("kubernetes:helm.sh/v3:Release", "kai", props)
    spec = {"metadata": {"name": "racks"}, "spec": {"levels": []}}
    topology = resource("kubernetes:kai.scheduler/v1alpha1:Topology", "racks", spec)
    problem = refusal(FEATURE, *from_resources.clusters([release, topology]))
    assert problem.path == release.urn


@pytest.mark.parametrize("key", ["nodeSelector", "imagePullSecrets"])
def test_kai_value_reaches_warns_of_what_stops_at_the_operator(key, texts):
    def of(version):
        kai = Kai(version, path="kai-fleet:kai", values={"global": {key: ["x"]}})
        return found("kai-value-reaches", cluster(kai=(kai,)))

    (problem,) = of("v0.12.23")
    assert (problem.level, problem.path) == (Level.ADVISORY, f"kai-fleet:kai.values.global.{key}")
    assert of("v0.7.11") == []
    texts(problem)
