"""The teams of a platform: their places on the host, and themselves."""

from collections.abc import Sequence

import pulumi

from kai_fleet.cluster.existing_objects import ExistingObjects
from kai_fleet.fleet.model import Fleet
from kai_fleet.host.platform import Platform
from kai_fleet.host.team_stack_access import let_in
from kai_fleet.isolation.team_places import team_namespaces
from kai_fleet.state.deployed_state import DeployedState
from kai_fleet.state.targeting import DeclaredRun
from kai_fleet.team import Team, TeamArgs


def teams_of(
    fleet: Fleet,
    run: DeclaredRun,
    platform: Platform,
    deployed: DeployedState,
    existing: ExistingObjects,
    providers: Sequence[pulumi.ProviderResource] = (),
    parent: pulumi.Resource | None = None,
) -> dict[str, Team]:
    """Declare the teams of a run, below `parent` or the stack itself.

    Each has a namespace on the host with what bounds it there, and teams with a stack of their own
    have accounts. A team stack has neither: they are its platform's.
    """
    access = let_in(fleet, run, platform)
    namespaces = team_namespaces(fleet, run, platform, access, deployed, existing, parent)
    return {
        name: Team(
            name,
            TeamArgs(fleet.teams[name], platform.access, deployed),
            opts=pulumi.ResourceOptions(
                parent=parent,
                providers=[platform.provider, *providers],
                depends_on=namespaces[name].ready if name in namespaces else platform.ready,
                transformations=platform.transformations,
            ),
        )
        for name in run.teams
    }
