from dataclasses import replace
from datetime import date

import pytest

from components import releases
from policies.model import UNKNOWN
from policies.rules import kai_version_supported
from tests.policies.samples import cluster, found, open_question, refusal

KNOWN = "kai-version-known"


@pytest.mark.parametrize("version", list(releases.KAI))
def test_versions_of_the_table_pass(version):
    assert found(KNOWN, cluster(version=version)) == []


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("v0.9.4", "write v0.9.3 or v0.9.8"),
        ("v0.20.1", "is retracted (its chart is that of v0.10.2); write v0.17.0"),
        ("0.9.3", "keep their v; write v0.9.3"),
        ("latest", "which is not supported here; write "),
        (None, "has no version, and the highest published one (v0.20.1) is retracted"),
    ],
)
def test_other_versions_are_refused_with_the_nearest(version, says):
    problem = refusal(KNOWN, cluster(version=version))
    assert (problem.subject, problem.path) == ("KAI of host", "kai-fleet:kai.version")
    assert says in problem.message


@pytest.mark.parametrize(("version", "level"), [("v0.18.0", "advisory"), ("v0.15.0", "mandatory")])
def test_untested_lets_newer_versions_through_and_no_others(version, level):
    right = cluster()
    tried = replace(right, kai=(replace(right.kai[0], version=version, untested=True),))
    (problem,) = found(KNOWN, tried)
    assert problem.level == level


def test_an_unknown_version_is_told():
    assert "version is known" in open_question(KNOWN, cluster(version=UNKNOWN)).message


def messages(version, day):
    return [p.message for p in kai_version_supported.check(cluster(version=version), day)]


def test_a_line_out_of_support_is_warned_about_with_its_end_and_the_nearest_maintained():
    assert messages("v0.9.3", date(2026, 9, 30)) == []
    (message,) = messages("v0.9.3", date(2026, 10, 1))
    assert "line v0.9 is out of support since 2026-09-30" in message
    assert "the nearest maintained one is v0.12.23 (until 2026-12-31)" in message


def test_a_line_that_no_list_names_is_warned_about():
    (message,) = messages("v0.7.11", date(2026, 1, 1))
    assert "a line that KAI's support list does not name" in message
    assert "v0.9." in message


def test_when_every_line_has_ended_it_says_so():
    (message,) = messages("v0.16.8", date(2040, 1, 1))
    assert "look for a newer kai-fleet" in message
