"""A command about one team: what of the stack it leaves alone, and what it says of the others."""

import pulumi
import pytest

from components.focus import Focus, declared, only
from components.past import Past
from components.settings import load
from fleet import neighbours
from fleet.recording import record

TEAM = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "a"}, "gpus": 1}
SETTINGS = {
    "cluster": {"name": "lab", "context": "lab"},
    "teams": {name: {**TEAM, "nodePool": {"pool": name}} for name in ("ml", "ml-two", "dev")},
}
LEAD = "urn:pulumi:lab::kai-fleet::"
HOST = f"{LEAD}kai-fleet:index:Platform::host"


def team(name):
    """The URNs of a team: itself, its vCluster, and a namespace below that."""
    top = f"{LEAD}kai-fleet:index:Team::{name}"
    vcluster = f"{LEAD}kai-fleet:index:Team$kai-fleet:index:VirtualCluster::{name}"
    space = (
        f"{LEAD}kai-fleet:index:Team$kai-fleet:index:VirtualCluster$k:v1:Namespace::{name}-space"
    )
    stack = f"{LEAD}pulumi:pulumi:Stack::kai-fleet-lab"
    return [
        {"urn": top, "parent": stack},
        {"urn": vcluster, "parent": top},
        {"urn": space, "parent": vcluster},
    ]


STATE = [{"urn": HOST}, *team("ml"), *team("ml-two"), *team("dev")]
SEEN = frozenset(it["urn"] for it in STATE)
OUTPUTS = {
    "teams": {name: {"gpus": 1} for name in ("ml", "ml-two", "dev")},
    "kubeconfigs": {name: f"{name}'s" for name in ("ml", "ml-two", "dev")},
    "workloads": {"a": {"team": "ml"}, "b": {"team": "dev"}},
}


def settings():
    return load(SETTINGS).settings


def test_everything_of_the_other_teams_is_left_alone_and_nothing_else():
    alone = neighbours.of_resources(STATE, ["ml"])
    theirs = [it["urn"] for it in (*team("ml-two"), *team("dev"))]
    assert sorted(alone.excluded) == sorted(theirs)
    assert alone.focus == Focus(frozenset({"ml"}), SEEN)


def test_a_removal_leaves_the_platform_alone_as_well():
    stack = {"urn": f"{LEAD}pulumi:pulumi:Stack::kai-fleet-lab"}
    alone = neighbours.all_but([stack, *STATE], "ml")
    theirs = [it["urn"] for it in (*team("ml-two"), *team("dev"))]
    assert sorted(alone.excluded) == sorted([HOST, *theirs])
    assert alone.focus == Focus(frozenset({"ml"}), SEEN | {stack["urn"]})


ACCESS = f"{LEAD}kai-fleet:index:Platform$kai-fleet:index:TeamStackAccess"


def granting(*teams):
    """A platform that lets teams in with stacks of their own."""
    granted = {name: {"nodePool": {"pool": name}, "gpus": 1} for name in teams}
    return {"cluster": SETTINGS["cluster"], "teamStacks": granted}


def grants(*teams):
    """What the platform's program declares for them."""
    found = [it for it in record("lab", granting(*teams)) if "TeamStackAccess" in it.urn]
    top = f"{ACCESS}::host-team-stacks"
    return [{"urn": it.urn, "parent": HOST if it.urn == top else top} for it in found]


def names(urns):
    return sorted(urn.rpartition("::")[2].removeprefix("host-team-stacks-") for urn in urns)


@pytest.mark.parametrize("neighbour", ["nlp", "vision-bounds", "vis", "host"])
def test_with_a_team_goes_what_its_own_stack_was_granted_and_no_others(neighbour):
    state = [{"urn": HOST}, *grants("vision", neighbour)]
    alone = neighbours.all_but(state, "vision")
    gone = {it["urn"] for it in state} - set(alone.excluded)
    parts = ["account", "binding", "bounds", "bounds-binding", "role"]
    assert names(gone) == [f"vision-{part}" for part in parts]
    alone_on_it = names(it["urn"] for it in grants("vision"))
    assert alone_on_it == sorted(["host-team-stacks", "namespace", "role", *names(gone)])


def test_with_the_last_grant_goes_what_all_of_them_had():
    state = [{"urn": HOST}, *grants("vision")]
    assert neighbours.all_but(state, "vision").excluded == (HOST,)
    assert len(neighbours.all_but(state, "nlp").excluded) == len(state)


def test_a_grant_is_left_alone_unless_the_command_is_about_its_team():
    shared = ["host-team-stacks", "namespace", "role"]
    state = [{"urn": HOST}, *grants("vision", "nlp"), *team("ml")]
    whole = names(it["urn"] for it in grants("vision", "nlp"))
    for about in ("vision", "ml"):
        excluded = neighbours.of_resources(state, [about]).excluded
        left = names(urn for urn in excluded if "TeamStackAccess" in urn)
        with only(Focus(frozenset({about}), frozenset())):
            declares = names(it["urn"] for it in grants("vision", "nlp"))
        assert sorted([*left, *declares]) == whole, "each is left alone, or declared"
        theirs = [name for name in declares if name not in shared]
        assert {name.partition("-")[0] for name in theirs} == {about} - {"ml"}


def test_a_grant_that_came_meanwhile_ends_the_run_as_well():
    past = Past(urns=SEEN | {it["urn"] for it in grants("late")}, outputs=OUTPUTS)
    with (
        only(Focus(frozenset({"ml"}), SEEN)),
        pytest.raises(pulumi.RunError, match="another update changed this stack meanwhile"),
    ):
        declared(settings(), past)


def test_the_history_tells_whom_an_update_was_about():
    changed = neighbours.of_resources(STATE, ["ml"]).message
    removed = neighbours.all_but(STATE, "ml-two").message
    assert [neighbours.was_about(changed, name) for name in ("ml", "ml-two")] == [True, False]
    assert [neighbours.was_about(removed, name) for name in ("ml", "ml-two")] == [False, True]
    assert neighbours.was_about("", "ml")


def test_only_the_named_team_is_declared_beside_the_platform():
    whole = {it.name for it in record("lab", SETTINGS)}
    with only(Focus(frozenset({"ml"}), SEEN)):
        part = {it.name for it in record("lab", SETTINGS)}
    assert {"host", "ml", "ml-release"} <= part < whole
    assert not [name for name in part if name.startswith(("ml-two", "dev"))]
    assert {it.name for it in record("lab", SETTINGS)} == whole  # and all of them afterwards


def test_the_outputs_still_tell_of_the_others():
    past = Past(urns=SEEN, outputs=OUTPUTS)
    with only(Focus(frozenset({"ml"}), SEEN)):
        run = declared(settings(), past)
    assert run.teams == ("ml",)
    assert set(run.summaries) == set(run.kubeconfigs) == {"ml-two", "dev"}
    assert run.workloads == {"b": {"team": "dev"}}
    assert all(isinstance(it, pulumi.Output) for it in run.kubeconfigs.values())
    assert "ml-two's" not in repr(run)


def test_all_teams_are_declared_where_no_command_is_about_some():
    run = declared(settings(), Past(urns=SEEN, outputs=OUTPUTS))
    assert run.teams == ("ml", "ml-two", "dev")
    assert (run.summaries, run.kubeconfigs, run.workloads) == ({}, {}, {})


def test_a_team_that_came_meanwhile_ends_the_run_before_anything_is_removed():
    new = [it["urn"] for it in team("late")]
    past = Past(urns=SEEN | set(new), outputs=OUTPUTS)
    with (
        only(Focus(frozenset({"ml"}), SEEN)),
        pytest.raises(pulumi.RunError, match="another update changed this stack meanwhile"),
    ):
        declared(settings(), past)
