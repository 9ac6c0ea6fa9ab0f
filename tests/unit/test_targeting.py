"""A command about one team: what the engine may touch, and what the stack says of the others."""

import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pulumi
import pytest

from kai_fleet.fleet.deployed_state import DeclaredRun, DeployedState, Targets, declared
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.host.platform import PlatformArgs
from kai_fleet.isolation.team_places import team_namespaces
from kai_fleet.settings import load
from kai_fleet_cli.engine import targeting
from kai_fleet_cli.plan.recorder import record

TEAM = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "a"}, "gpus": 1}
SETTINGS = {
    "cluster": {"name": "lab", "context": "lab"},
    "teams": {name: {**TEAM, "nodePool": {"pool": name}} for name in ("ml", "ml-two", "dev")},
}
ML = Targets(frozenset({"ml"}))
OUTPUTS = {
    "teams": {name: {"gpus": 1} for name in ("ml", "ml-two", "dev", "gone")},
    "kubeconfigs": {name: f"{name}'s" for name in ("ml", "ml-two", "dev", "gone")},
    "cluster": "an older name",
}
HOST = "host-team-stacks"


def granting(*teams):
    """A platform that lets teams in with stacks of their own."""
    granted = {name: {"nodePool": {"pool": name}, "gpus": 1} for name in teams}
    return {"cluster": SETTINGS["cluster"], "teamStacks": granted}


def resources(settings):
    """The state that an update leaves: parents come first."""
    found = sorted(record("lab", settings), key=lambda it: (bool(it.parent), it.urn.count("$")))
    return [{"urn": it.urn, "parent": it.parent} for it in found]


def urns(settings):
    return {it["urn"] for it in resources(settings)}


def matched(found, state):
    """The names of what the patterns hit, by the engine's rules: `**` is anything."""
    assert all("*" in pattern for pattern in found.urns), "else a missing one is an error"
    texts = ["[^:]*".join(map(re.escape, p.replace("**", "\0").split("*"))) for p in found.urns]
    any_of = re.compile("|".join(text.replace("\0", ".*") for text in texts))
    return {urn.rpartition("::")[2] for urn in state if any_of.fullmatch(urn)}


def said(monkeypatch, settings, deployed, targets):
    """What the program exports."""
    found = {}
    with monkeypatch.context() as patch:
        patch.setattr(pulumi, "export", found.__setitem__)
        patch.setattr("kai_fleet.program.read_deployed_state", lambda: deployed)
        program = partial(targeting.program, targets)
        names = {it.name for it in record("lab", settings, program=program)}
    return found, names


def test_an_update_of_a_team_targets_that_one_team():
    found = targeting.of_teams(["ml"], resources(SETTINGS), grants=False)
    assert not found.others
    assert matched(found, urns(SETTINGS)) == {"ml"}, "not ml-two; what is below goes along"
    assert found.targets == ML
    told = found.told("lab")
    assert "pulumi up with 2 --target patterns and --target-dependents." in told
    assert told.endswith("waits for: make up STACK=lab")


def test_a_stack_without_anything_gets_all_of_it():
    assert targeting.of_teams(["ml"], (), grants=False) is None


@pytest.mark.parametrize("neighbour", ["nlp", "vision-bounds", "vis", "hosts"])
def test_a_grant_is_an_account_and_a_namespace_and_none_of_another_grant(neighbour):
    granted = granting("vision", neighbour)
    found = targeting.of_teams(["vision"], resources(granted), grants=True)
    parts = ["account", "binding", "role"]
    assert matched(found, urns(granted)) == {"vision", *(f"{HOST}-vision-{part}" for part in parts)}
    assert not found.targets.shared_grants


@pytest.mark.parametrize("before", [(), ("vision",)], ids=["first", "last"])
def test_with_the_first_or_the_last_grant_comes_or_goes_what_all_share(before):
    granted = granting("vision")
    known = resources(granted if before else SETTINGS)
    found = targeting.of_teams(["vision"], known, grants=True)
    assert matched(found, urns(granted)) == {HOST, "vision"}
    assert found.targets.shared_grants


def test_a_grant_that_came_meanwhile_ends_the_run_before_all_are_taken_back():
    deployed = DeployedState(urns=frozenset(urns(granting("late"))), outputs=OUTPUTS)
    fleet = fleet_of(load(SETTINGS).settings)
    only = Targets(frozenset({"ml"}), shared_grants=True)
    with pytest.raises(pulumi.RunError, match="another update granted team late a stack"):
        declared(fleet.teams, fleet.grants, deployed, only)
    assert declared(fleet.teams, fleet.grants, deployed, ML).teams == ("ml",)


def test_a_removal_names_everything_that_stays():
    whole = urns(SETTINGS)
    release = next(urn for urn in whole if urn.endswith("::ml-release"))
    beside, after = (f"urn:pulumi:lab::kai-fleet::a:b:C::{name}" for name in ("beside", "after"))
    more = [{"urn": beside}, {"urn": after, "dependencies": [release]}]
    state = [*resources(SETTINGS), *more]
    found = targeting.of_teams(["ml"], state, grants=False, removes=True)
    platform, *stays = found.others
    gone = {urn.rpartition("::")[2] for urn in whole - set(stays)}
    assert {"ml", "ml-namespace", "ml-release"} < gone
    assert not [name for name in gone if name != "ml" and not name.startswith("ml-")]
    assert not [name for name in gone if name.startswith("ml-two")]
    assert beside in stays
    assert after not in stays, "it cannot stay without what it depends on"
    assert platform == "**::kai-fleet:index:Platform**", "what an edit adds there waits"
    told = found.told("lab")
    assert f"pulumi up with --exclude of {len(stays)} resources and the platform." in told
    assert "urn:" not in told, "of a hundred resources nobody reads the names"
    assert found.targets.known == {it["urn"] for it in state}


def test_an_update_without_a_team_leaves_it_as_it_is_and_says_what_it_said(monkeypatch):
    beside = "urn:pulumi:lab::kai-fleet::a:b:C::beside"
    state = [
        {"type": it["urn"].split("::")[2].rpartition("$")[2], **it} for it in resources(SETTINGS)
    ]
    found = targeting.without({"ml": {}}, [*state, {"urn": beside, "type": "a:b:C"}])
    left = {urn.rpartition("::")[2] for urn in found.others}
    assert {"ml", "ml-namespace", "ml-release", "beside"} < left
    assert not [name for name in left if name.startswith(("ml-two", "dev", "host"))]
    assert not [urn for urn in found.others if "pulumi:providers" in urn and "ml" not in urn]
    about = [targeting.was_about(found.message, name) for name in ("ml", "ml-two", "dev")]
    assert about == [False, True, True]
    deployed = DeployedState(urns=frozenset(urns(SETTINGS)), outputs=OUTPUTS)
    outputs, names = said(monkeypatch, SETTINGS, deployed, replace(found.targets, known=None))
    assert {"host", "ml-two", "dev-release"} < names
    assert not {"ml", "ml-release"} & names
    assert set(outputs["kubeconfigs"]) == set(outputs["teams"]) == {"ml", "ml-two", "dev"}
    assert outputs["teams"]["ml"] == {"gpus": 1}


def test_what_came_meanwhile_ends_a_run_that_would_remove_it():
    fleet = fleet_of(load(SETTINGS).settings)
    known = frozenset(urns(SETTINGS))
    came = "urn:pulumi:lab::kai-fleet::a:b:C::came"
    deployed = DeployedState(urns=known | {came}, outputs=OUTPUTS)
    gone = Targets(frozenset({"ml"}), known=known)
    with pytest.raises(pulumi.RunError, match=f"another update made {came} meanwhile"):
        declared(fleet.teams, fleet.grants, deployed, gone)
    assert declared(fleet.teams, fleet.grants, replace(deployed, urns=known), gone).teams == ("ml",)


def test_a_state_that_cannot_be_read_does_not_forget_the_others():
    with pytest.raises(pulumi.RunError, match="the stack's state cannot be read"):
        declared(SETTINGS["teams"], (), DeployedState(), ML)


def test_the_history_tells_whom_an_update_was_about():
    found = targeting.of_teams(["ml", "dev"], resources(SETTINGS), grants=False)
    about = [targeting.was_about(found.message, name) for name in ("ml", "dev", "ml-two")]
    assert about == [True, True, False]
    assert targeting.was_about("", "ml")


def test_only_the_named_team_is_declared_beside_the_platform(monkeypatch):
    whole = {it.name for it in record("lab", SETTINGS)}
    deployed = DeployedState(urns=frozenset(urns(SETTINGS)), outputs=OUTPUTS)
    _, part = said(monkeypatch, SETTINGS, deployed, ML)
    assert {"host", "ml", "ml-release"} <= part < whole
    assert not [name for name in part if name.startswith(("ml-two", "dev"))]


def test_the_outputs_still_tell_of_the_others_and_no_more_of_who_has_gone(monkeypatch):
    deployed = DeployedState(urns=frozenset(urns(SETTINGS)), outputs=OUTPUTS)
    gone = Targets(frozenset({"gone"}))
    found, _ = said(monkeypatch, SETTINGS, deployed, gone)
    assert set(found["teams"]) == set(found["kubeconfigs"]) == {"ml", "ml-two", "dev"}
    assert found["teams"]["ml"] == {"gpus": 1}
    assert found["cluster"] == "lab"
    assert set(found["platform"]["teams"]) == {"ml", "ml-two", "dev"}, "for the team stacks"
    assert all(isinstance(it, pulumi.Output) for it in found["kubeconfigs"].values())
    assert "dev's" not in repr(found["kubeconfigs"])
    whole, _ = said(monkeypatch, SETTINGS, deployed, None)
    assert whole["platform"] == found["platform"]


def test_a_command_about_one_team_asks_for_the_guards_of_this_version_first():
    """They are of all teams: an update of one team leaves them as they are."""
    args = PlatformArgs(fleet_of(load(SETTINGS).settings))
    with pytest.raises(pulumi.RunError, match="not there yet, so nothing was done: run make up"):
        team_namespaces(SimpleNamespace(args=args), DeclaredRun(("ml",)))
