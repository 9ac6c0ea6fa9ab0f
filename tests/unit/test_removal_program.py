"""What the stack says once a team has left it: of the others what it said, of that one nothing."""

import pulumi
import pytest

from components.focus import Focus, only
from components.past import Past
from components.settings import load
from fleet import removal_program
from fleet.recording import record

TEAM = {"scheduler": {"mode": "default"}, "gpus": 1}
SETTINGS = {
    "cluster": {"name": "lab", "context": "lab"},
    "teams": {name: {**TEAM, "nodePool": {"pool": name}} for name in ("ml", "dev")},
}
THEIRS = "urn:pulumi:lab::kai-fleet::kai-fleet:index:Team$k:v1:Namespace::"
SEEN = frozenset({f"{THEIRS}ml", f"{THEIRS}dev", f"{THEIRS}gone"})
PAST = Past(
    urns=SEEN,
    outputs={
        "teams": {name: {"gpus": 1} for name in ("ml", "dev", "gone")},
        "kubeconfigs": {name: f"{name}'s" for name in ("ml", "dev", "gone")},
        "workloads": {"a": {"team": "gone"}},
        "cluster": "an older name",
    },
)


@pytest.fixture
def said(monkeypatch):
    """What the program exports, run for the removal of team `gone`."""
    found = {}
    monkeypatch.setattr(pulumi, "export", found.__setitem__)
    monkeypatch.setattr(removal_program, "read_past", lambda: PAST)
    settings = load(SETTINGS).settings
    monkeypatch.setattr(removal_program, "checked_settings", lambda *_: settings)
    with only(Focus(frozenset({"gone"}), SEEN)):
        removal_program.run()
    return found


def test_the_others_are_told_of_as_they_were(said):
    assert said["teams"] == {"ml": {"gpus": 1}, "dev": {"gpus": 1}}
    assert set(said["kubeconfigs"]) == {"ml", "dev"}
    assert said["cluster"] == "lab"


def test_their_kubeconfigs_stay_secret(said):
    assert all(isinstance(it, pulumi.Output) for it in said["kubeconfigs"].values())
    assert "ml's" not in repr(said["kubeconfigs"])


def test_nothing_is_said_of_workloads_once_the_last_has_gone(said):
    assert "workloads" not in said


def test_team_stacks_are_told_that_the_name_and_the_pool_are_free(said):
    assert set(said["platform"]["teams"]) == {"ml", "dev"}


def test_the_whole_program_says_the_same_names(said, monkeypatch):
    whole = {}
    monkeypatch.setattr(pulumi, "export", whole.__setitem__)
    assert record("lab", SETTINGS)
    assert set(whole) == set(said)
    assert whole["platform"] == said["platform"]


def test_a_team_that_came_meanwhile_is_not_removed(monkeypatch):
    late = Past(urns=SEEN | {f"{THEIRS}late"}, outputs=PAST.outputs)
    monkeypatch.setattr(removal_program, "read_past", lambda: late)
    monkeypatch.setattr(removal_program, "checked_settings", lambda *_: load(SETTINGS).settings)
    with (
        only(Focus(frozenset({"gone"}), SEEN)),
        pytest.raises(pulumi.RunError, match="another update changed this stack meanwhile"),
    ):
        removal_program.run()
