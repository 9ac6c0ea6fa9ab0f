from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import pytest

from kai_fleet import releases
from kai_fleet.finding import Level
from kai_fleet.values import UNKNOWN
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.plan.picture import as_declared
from kai_fleet_policies import rules, validation
from kai_fleet_policies.adapters import from_resources
from kai_fleet_policies.model.cluster import Team
from kai_fleet_policies.validation import together
from tests.policies.samples import cluster, found, open_question, refusal

KNOWN = "kai-version-known"


@pytest.mark.parametrize("version", list(releases.KAI))
def test_versions_of_the_table_pass(version):
    assert found(KNOWN, cluster(version=version)) == []


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("v0.9.4", "write v0.9.3 or v0.9.8"),
        (
            "v0.20.1",
            f"is retracted (its chart is that of v0.10.2); write {releases.advised(releases.KAI)}",
        ),
        ("v1.2.0", f"write {releases.advised(releases.KAI)}, or add untested"),
        ("0.9.3", "write v0.9.3"),
        ("latest", "which is not supported here; write "),
        (None, "has no version, and the highest published one (v0.20.1) is retracted"),
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


def test_an_unknown_version_is_told():
    assert "version is known" in open_question(KNOWN, cluster(version=UNKNOWN)).message


@pytest.fixture
def on(monkeypatch):
    """What a rule says of a cluster on a day."""

    def on(day, rule, host):
        monkeypatch.setattr(releases, "date", SimpleNamespace(today=lambda: day))
        return found(rule, host)

    return on


@pytest.fixture
def messages(on):
    return lambda version, day: [
        it.message for it in on(day, "kai-version-supported", cluster(version=version))
    ]


def test_a_line_out_of_support_is_warned_about_with_its_end_and_the_newest_maintained(messages):
    assert messages("v0.9.3", date(2026, 9, 30)) == []
    (message,) = messages("v0.9.3", date(2026, 10, 1))
    assert "line v0.9 is out of support since 2026-09-30" in message
    assert "move to v0.16.9 (supported until 2027-06-30)" in message


def test_a_line_that_no_list_names_is_warned_about(messages):
    (message,) = messages("v0.7.11", date(2026, 11, 24))
    assert "no support dates are published for line v0.7" in message
    assert "move to v0.16.9" in message


def test_when_every_line_has_ended_it_says_so(messages):
    (message,) = messages("v0.16.8", date(2040, 1, 1))
    assert "look for a newer kai-fleet" in message


def test_a_vcluster_line_past_its_end_of_life_is_warned_about_once_for_a_key(on):
    key = "kai-fleet:vcluster.version"
    teams = [Team(name, version="v0.34.7", where=lambda *_: key) for name in ("ml", "nlp")]
    host = replace(cluster(), teams=(*teams, Team("dev", version="v0.36.1")))
    rule = "vcluster-version-known"
    assert on(date(2026, 10, 29), rule, host) == []
    (problem,) = together(on(date(2026, 10, 30), rule, host))
    assert (problem.path, problem.level) == (key, Level.ADVISORY)
    assert problem.subject == "vClusters ml and nlp"
    assert "line v0.34 is out of support since 2026-10-29" in problem.message
    assert "to v0.36.1 (supported until 2027-01-22)" in problem.message
    said = {it.message for it in on(date(2040, 1, 1), rule, host)}
    assert all("look for a newer kai-fleet" in message for message in said) and len(said) == 2


def test_a_newer_version_passes_by_its_word_in_the_program_and_in_the_pack():
    """Both are asked in an update: the gate about the file, the pack about what is declared."""
    team = {
        "scheduler": {"mode": "virtual", "version": "v0.18.6", "untested": True},
        "nodePool": {"pool": "a"},
        "vcluster": {"version": "v0.38.0", "untested": True},
    }
    raw = {"cluster": {"name": "c", "context": "c"}, "teams": {"ml": team}}
    assert validation.validate(raw).refused == []
    declared_again = from_resources.clusters(as_declared(recorder.record("lab", raw)))
    said = [p for p in rules.check(declared_again) if p.level is Level.MANDATORY]
    assert said == []
    del team["scheduler"]["untested"], team["vcluster"]["untested"]
    assert {p.check for p in validation.validate(raw).refused} >= {
        "kai-version-known",
        "vcluster-version-known",
    }
