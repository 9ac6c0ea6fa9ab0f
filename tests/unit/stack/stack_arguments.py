"""What a stack file declares of one team: the arguments of its components, its chart's values."""

import copy
import json
from collections.abc import Mapping
from typing import Any

from kai_fleet.vcluster.chart_values import vcluster_values
from kai_fleet_policies.model.cluster import TeamModel
from kai_fleet_stack.arguments import Arguments
from kai_fleet_stack.arguments import team as team_arguments
from kai_fleet_stack.declared import host_of
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.loading import Loaded, load
from kai_fleet_stack.settings.team_stack import Facts, load_team_stack
from tests.unit.cli.doctor.doctor_samples import SETTINGS


def stack(team: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A stack file with a team of a vCluster; `team` and `more` are keys of it and of all."""
    ml = {
        "scheduler": {"mode": "virtual", "version": "v0.16.8"},
        "nodePool": {"kai-fleet/pool": "ml"},
        "gpus": 4,
        "queues": {"train": {}},
        **(team or {}),
    }
    return {"cluster": {"name": "lab", "context": "lab"}, "teams": {"ml": ml}, **more}


def vcluster_stack(own: Mapping[str, Any] | None = None, **of_all: Any) -> dict[str, Any]:
    """The stack file of the doctor's samples, with these keys of its vCluster and of all."""
    raw = copy.deepcopy(SETTINGS)
    raw["teams"]["ml"]["vcluster"] = own or {}
    return raw | ({"vcluster": of_all} if of_all else {})


def settings_of(raw: Mapping[str, Any]) -> Settings:
    """The settings of a stack file without mistakes."""
    loaded = load(raw)
    assert loaded.mistakes == ()
    assert loaded.settings is not None
    return loaded.settings


class Lookups(Arguments):
    """The arguments of a stack, with those inside its teams at hand."""

    def vcluster(self, name: str) -> Any:
        return team_arguments.vcluster(self.settings, name)

    def kai(self, name: str) -> Any:
        return team_arguments.kai(self.settings, name)

    def queues(self, name: str) -> Any:
        return team_arguments.queues(self.settings, name)


def arguments(raw: Mapping[str, Any]) -> Lookups:
    return Lookups(settings_of(raw))


def team_of(raw: Mapping[str, Any]) -> TeamModel:
    """Team ml as the rules read it."""
    return next(team for team in host_of(settings_of(raw)).teams if team.name == "ml")


def team_values(raw: Mapping[str, Any]) -> Any:
    """The values of the vCluster of team ml."""
    return vcluster_values("ml", arguments(raw).vcluster("ml"), "team-ml")


def team_stack(
    platform: Mapping[str, Any], name: str = "nlp", grant: Any = None, **team: Any
) -> Loaded:
    """A team's own stack with these keys, and what its platform's outputs have of the grant."""
    granted = {name: {"nodePool": {"kai-fleet/pool": name}, **(grant or {})}}
    facts = Facts.of(settings_of({**platform, "teamStacks": granted}))
    output = json.loads(json.dumps(facts.output()))
    own = {"name": name, "scheduler": {"mode": "default"}, **team}
    raw = {"platform": {"stack": "prod"}, "team": own}
    return load_team_stack(raw, lambda _: Facts.read(output))
