"""The program of a stack: settings, then the platform, then each team, then the outputs.

A team stack is the same program: its platform is another stack's, and it has one team.
"""

from collections.abc import Callable
from typing import TypeAlias

import pulumi

from kai_fleet.cluster.access import own_provider
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.host.platform import Platform, PlatformArgs, existing_of
from kai_fleet.host.platform_reading import read_platform
from kai_fleet.isolation.team_places import refuse_misfits
from kai_fleet.monitoring.components import monitoring_of
from kai_fleet.outputs import export
from kai_fleet.settings import Settings
from kai_fleet.settings.tenant import FactsOf
from kai_fleet.state.deployed_state import DeployedState, read_deployed_state
from kai_fleet.state.source_positions import NEAREST, source_positions
from kai_fleet.state.targeting import Targets, declared
from kai_fleet.teams import teams_of
from kai_fleet.workloads.placement import place

# The settings of the running program from what is deployed, from what a platform's stack tells its
# team stacks, and from whether the run is about the whole stack.
Checked: TypeAlias = Callable[[DeployedState, FactsOf, bool], Settings]


@source_positions(NEAREST)
def program(checked: Checked, targets: Targets | None = None) -> None:
    """Declare the stack. `targets`: what a command about some teams updates; None is everything.

    Raises pulumi.RunError where `checked` refuses the settings.
    """
    # Every key typed and every rule asked before anything is declared: mistakes are reported
    # together, and stop the preview.
    deployed = read_deployed_state()
    fleet = fleet_of(checked(deployed, read_platform, targets is None), deployed)

    # What makes queue trees and reads Secrets, in every cluster.
    own = own_provider()

    # A command that is about one team declares that one, and leaves the others as they are.
    run = declared(fleet.teams, fleet.grants, deployed, targets)

    # What the host has already is used; what of it does not fit is told before anything is made.
    existing = existing_of(fleet, deployed, own)
    refuse_misfits(fleet, run, existing)

    # The host cluster: its GPU stack, and in host mode KAI and the queue tree.
    args = PlatformArgs(fleet, deployed, existing=existing)
    platform = Platform("host", args, pulumi.ResourceOptions(providers=[own]))

    # What Prometheus is told of all of it, where the stack asks for that.
    monitoring_of(fleet, platform)

    # Each team: its namespace on the host with what bounds it there, a vCluster on its share of the
    # nodes, its scheduler, its queues.
    teams = teams_of(fleet, run, platform, deployed, existing, providers=[own])

    # What runs in the teams' vClusters.
    workloads = place(fleet, teams)

    # What the stack says of itself: to people, to `fleet`, and to its team stacks.
    export(fleet, run, teams, workloads)
