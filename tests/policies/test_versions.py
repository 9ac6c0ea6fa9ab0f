"""Rules about versions of KAI and vCluster: the table, support, steps, and what a version has."""

from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from kai_fleet import releases
from kai_fleet.releases.chart_values import nested
from kai_fleet.values import UNKNOWN
from kai_fleet_cli.app import app
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.plan.picture import as_declared
from kai_fleet_policies import rules
from kai_fleet_policies.adapters import from_resources
from kai_fleet_policies.finding import Level
from kai_fleet_policies.model.cluster import Team
from kai_fleet_policies.model.installed import Kai
from kai_fleet_stack import validation
from kai_fleet_stack.validation import merge_findings
from tests.policies.samples import (
    cluster,
    found,
    open_question,
    refusal,
    refused_by,
    resource,
    team,
)

KNOWN, FEATURE = "kai-version-known", "kai-feature-known"
LAB = {"cluster": {"name": "c", "context": "c"}}


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("v0.9.4", "write v0.9.20"),
        ("v0.20.1", "is retracted (its chart is that of v0.10.2); write v"),
        ("v1.2.0", f"write {releases.advised(releases.KAI)}, or add untested"),
        ("0.9.3", "write v0.9.3 (all: "),
        ("latest", "which is not supported here; write "),
        (None, "has no version"),
    ],
)
def test_other_versions_are_refused_with_the_nearest(version, says):
    problem = refusal(KNOWN, cluster(version=version))
    assert (problem.subject, problem.path) == ("KAI of host", "kai-fleet:kai.version")
    assert says in problem.message


@pytest.mark.parametrize(("version", "level"), [("v0.18.6", "advisory"), ("v0.15.0", "mandatory")])
def test_untested_lets_newer_versions_through_and_no_others(version, level):
    right = cluster()
    tried = replace(right, kai=(replace(right.kai[0], version=version, untested=True),))
    (problem,) = found(KNOWN, tried)
    assert problem.level == level


@pytest.fixture
def on(monkeypatch):
    """What a rule says of a cluster on a day."""

    def on(day, rule, host):
        monkeypatch.setattr(releases, "date", SimpleNamespace(today=lambda: day))
        return found(rule, host)

    return on


@pytest.mark.parametrize(
    ("version", "day", "says"),
    [
        ("v0.9.3", date(2026, 9, 30), None),
        ("v0.9.3", date(2026, 10, 1), "is out of support since 2026-09-30; move to v0.16.9 (supp"),
        ("v0.7.11", date(2026, 11, 24), "no support dates are published for line v0.7"),
        ("v0.16.8", date(2040, 1, 1), "look for a newer kai-fleet"),
        (
            "v0.18.0",
            date(2026, 11, 24),
            "not advised: v0.18.1 repairs vulnerabilities of it; write v0.16.9 (supported",
        ),
    ],
)
def test_a_line_out_of_support_is_warned_about_with_the_newest_maintained(on, version, day, says):
    problems = on(day, "kai-version-supported", cluster(version=version))
    assert len(problems) == bool(says)
    assert all(says in problem.message for problem in problems)


def test_a_vcluster_line_past_its_end_of_life_is_warned_about_once_for_a_key(on):
    key = "kai-fleet:vcluster.version"
    teams = [Team(name, version="v0.34.7", find_key=lambda *_: key) for name in ("ml", "nlp")]
    host = replace(cluster(), teams=(*teams, Team("dev", version="v0.36.1")))
    rule = "vcluster-version-known"
    assert on(date(2026, 10, 29), rule, host) == []
    (problem,) = merge_findings(on(date(2026, 10, 30), rule, host))
    assert (problem.path, problem.level) == (key, Level.ADVISORY)
    assert "to v0.36.1 (supported until 2027-01-22)" in problem.message


@pytest.mark.parametrize("table", [releases.KAI, releases.VCLUSTER])
def test_a_rule_and_the_list_of_releases_say_the_same_of_every_version(table):
    """Where one of them advises against a version, so does the other, in the same words."""
    listed = CliRunner().invoke(app, ["releases"]).stdout.splitlines()
    kind = "KAI" if table is releases.KAI else "vCluster"
    for version in table:
        (line,) = (each for each in listed if each.startswith(f"{kind} {version} "))
        host = cluster(version="v0.16.8")
        if kind == "KAI":
            warned = found("kai-version-supported", cluster(version=version))
        else:
            host = replace(host, teams=(Team("ml", version=version),))
            warned = found("vcluster-version-known", host)
        against = "not advised" in line or "out of support" in line or "no support dates" in line
        assert bool(warned) == against, version
        assert all(releases.standing(table, version).words in each.cause for each in warned)
        assert releases.standing(table, version).words in line


def test_a_newer_version_passes_by_its_word_in_the_program_and_in_the_pack():
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
    assert {p.check for p in refused} >= {"kai-version-known", "vcluster-version-known"}


def running(version="v0.36.1", **changes):
    return replace(cluster(), teams=(team("ml", version=version, **changes),))


def test_only_vcluster_versions_of_the_table():
    rule = "vcluster-version-known"
    assert "write v0.36.1, or add untested: true" in refusal(rule, running("v0.38.0")).message
    assert "untested" not in refusal(rule, running("0.36.1")).message


def test_a_vcluster_goes_one_line_at_a_time():
    assert found("vcluster-upgrade", running(running_version="v0.35.3")) == []
    assert found("vcluster-upgrade", running()) == [], "the first install has no before"
    problem = refusal("vcluster-upgrade", running(running_version="v0.34.7"))
    assert "write v0.35.3 first" in problem.message
    assert problem.path == "kai-fleet:teams.ml.vcluster.version"


KUBERNETES = "vcluster-kubernetes"


def with_kubernetes(written, runs=None, version="v0.36.1", **changes):
    values = nested("controlPlane.distro.k8s.image.tag", written) if written else {}
    return running(version, chart_values=values, running_kubernetes=runs, **changes)


@pytest.mark.parametrize(
    ("written", "runs", "version", "write"),
    [
        ("v1.26.3", None, "v0.36.1", "write v1.36.0"),
        ("v1.29.14", None, "v0.27.3", "write v1.33.4"),
        ("v1.99.0", None, "v0.36.1", "write v1.36.0, or add untested: true"),
        ("v1.34.0", None, "v0.29.3", "write v1.33.4, or add"),
        ("v1.26.3", "v1.36.3", "v0.36.1", "write v1.36.3"),
        ("v1.99.0", "v1.36.3", "v0.36.1", "write v1.36.3, or add"),
        ("v1.99.0", "v1.34.2", "v0.36.1", "write v1.35.0, or add"),
        ("v1.36.3", "v1.34.4", "v0.36.1", "write v1.35.0 first"),
        ("v1.32.9", "v1.30.2", "v0.36.1", "write v1.31.1 first"),
        ("v1.35.9", "v1.36.0", "v0.36.1", "write v1.36.0"),
        # Without the key, the chart's own: of a version that was edited, too.
        (None, "v1.36.3", "v0.36.1", "write v1.36.3"),
        (None, "v1.31.1", "v0.36.1", "write v1.32.1 first"),
        (None, "v1.34.4", "v0.34.7", None),
        (None, "v1.35.0", "v0.35.3", None),
        (None, None, "v0.27.3", None),
        ("v1.36.9", "v1.36.3", "v0.36.1", None),
        ("v1.36.3", "v1.35.9", "v0.36.1", None),
        ("v1.30.14", None, "v0.36.1", None),
        # What runs may stay, whatever its vCluster's own list has.
        ("v1.34.4", "v1.34.0", "v0.29.3", None),
        ("v1.28.9", "v1.27.2", "v0.36.1", None),
    ],
)
def test_kubernetes_inside_goes_up_one_by_one_in_what_its_vcluster_has(
    written, runs, version, write
):
    problems = found(KUBERNETES, with_kubernetes(written, runs, version))
    assert [write in problem.message for problem in problems] == [True] * bool(write)
    assert all("kubernetesVersion" in problem.path for problem in problems)


def test_a_vcluster_of_the_future_may_have_a_newer_kubernetes_by_its_word():
    assert found(KUBERNETES, with_kubernetes("v1.38.0", version="v0.36.1", untested=True)) == []
    assert found(KUBERNETES, with_kubernetes("v1.38.0", version="v0.99.1")) == []
    problem = refusal(KUBERNETES, with_kubernetes("v1.20.0", "v1.36.0", untested=True))
    assert "does not read what a newer one wrote" in problem.message


@pytest.mark.parametrize("key", ["version", "image.tag"])
def test_a_version_in_the_values_of_the_chart_counts_as_that_of_the_key(key):
    values = nested(f"controlPlane.distro.k8s.{key}", "v1.26.3")
    problem = refusal(KUBERNETES, running(chart_values=values, values=values))
    assert problem.path.endswith(f"values.controlPlane.distro.k8s.{key}")
    own = nested(f"controlPlane.distro.k8s.{key}", "mine")
    assert found(KUBERNETES, running(chart_values=own, values=own)) == []


FIRST = {"shards": "v0.10.5", "fairshare": "v0.10.5", "topologies": "v0.12.23"}


def using(version, kind):
    used = {"shards": ("a",), "fairshare": True, "topologies": {"racks": ("rack",)}}
    return cluster(kai=(Kai(version, path="kai-fleet:kai", **{kind: used[kind]}),))


@pytest.mark.parametrize("kind", FIRST)
@pytest.mark.parametrize("version", list(releases.KAI))
def test_each_version_has_a_feature_from_its_line_on(kind, version):
    has = releases.version_key(version) >= releases.version_key(FIRST[kind])
    problems = found(FEATURE, using(version, kind))
    assert [p.path for p in problems] == ([] if has else [f"kai-fleet:kai.{kind}"])


def test_a_version_that_is_not_known_yet_is_an_open_question():
    assert "version is known" in open_question(KNOWN, cluster(version=UNKNOWN)).message
    assert "the KAI version is known" in open_question(FEATURE, using(UNKNOWN, "shards")).message


def test_a_vcluster_version_that_is_not_known_yet_is_an_open_question():
    props = {"chart": "vcluster", "version": UNKNOWN}
    judged = from_resources.clusters([resource("kubernetes:helm.sh/v3:Release", "ml", props)])
    questions = [problem for problem in rules.check(judged) if problem.undecided]
    assert "vcluster-version-known" in {question.check for question in questions}
    assert not refused_by(rules.check(judged))


def test_a_feature_is_refused_at_its_key_with_a_version_to_write():
    topologies = {"racks": ["kubernetes.io/hostname"]}
    scheduler = {"mode": "virtual", "version": "v0.9.3", "topologies": topologies}
    team = {"scheduler": scheduler, "gpus": 1, "nodePool": {"pool": "ml"}}
    (problem,) = validation.validate({**LAB, "teams": {"ml": team}}).refused
    assert (problem.check, problem.path) == (FEATURE, "kai-fleet:teams.ml.scheduler.topologies")
    assert "needs KAI v0.12 or newer, and the version is v0.9.3" in problem.message
    assert "write version: v0.16.9" in problem.message


def test_objects_of_any_program_are_features_too():
    props = {"chart": "kai-scheduler", "version": "v0.9.3", "namespace": "kai-scheduler"}
    release = resource("kubernetes:helm.sh/v3:Release", "kai", props)
    spec = {"metadata": {"name": "racks"}, "spec": {"levels": []}}
    topology = resource("kubernetes:kai.scheduler/v1alpha1:Topology", "racks", spec)
    problem = refusal(FEATURE, *from_resources.clusters([release, topology]))
    assert problem.path == release.urn


@pytest.mark.parametrize("key", ["nodeSelector", "imagePullSecrets"])
def test_values_that_stop_at_the_operator_are_warned_about(key):
    def of(version):
        kai = Kai(version, path="kai-fleet:kai", values={"global": {key: ["x"]}})
        return found("kai-value-reaches", cluster(kai=(kai,)))

    (problem,) = of("v0.12.23")
    assert (problem.level, problem.path) == (Level.ADVISORY, f"kai-fleet:kai.values.global.{key}")
    assert of("v0.7.11") == []
