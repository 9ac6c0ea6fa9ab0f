"""The program of a stack: settings, then the platform, then each team, then the outputs.

A team stack is the same program: its platform is another stack's, and it has one team.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import pulumi

from kai_fleet.cluster.access import own_provider
from kai_fleet.fleet.deployed_state import (
    DeclaredRun,
    DeployedState,
    Targets,
    declared,
    read_deployed_state,
)
from kai_fleet.fleet.model import Fleet
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.host.platform import Platform, PlatformArgs, existing_of
from kai_fleet.isolation.team_places import refuse_misfits
from kai_fleet.monitoring.components import monitoring_of
from kai_fleet.settings import Settings
from kai_fleet.settings.team_stack import OUTPUT, FactsOf, read_platform
from kai_fleet.team import Team, teams_of
from kai_fleet.values import value_at
from kai_fleet.workloads import declare_manifests

# The settings of the running program from what is deployed, from what a platform's stack tells its
# team stacks, and from whether the run is about the whole stack.
Checked: TypeAlias = Callable[[DeployedState, FactsOf, bool], Settings]

# Six frames are the SDK's own; the next one is the declaring line.
NEAREST: Final = 7
NONE: Final = 1


@contextmanager
def source_positions(frames: int) -> Iterator[None]:
    """Of each resource that is declared in it, note no more frames than these.

    The SDK sends the whole call stack with each resource, and the engine (from v3.195 on) keeps it
    in the state, shows it nowhere, and writes all of it anew twice for each resource that changes:
    of 15 teams with 20 resources each the state was twice as large and an update took twice as
    long. The SDK (3.272) has no option for it: Python's own limit for call stacks bounds it.
    """
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = frames if before is None else min(frames, before)
    try:
        yield
    finally:
        del sys.tracebacklimit
        if before is not None:
            sys.tracebacklimit = before


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
    monitoring_of(platform)

    # Each team: its namespace on the host with what bounds it there, a vCluster on its share of the
    # nodes, its scheduler, its queues.
    teams = teams_of(platform, run, providers=[own])

    # What runs in the teams' vClusters.
    for name, team in teams.items():
        declare_manifests(name, fleet.workloads.get(name, {}), team)

    # What the stack says of itself: to people, to `fleet`, and to its team stacks.
    export(fleet, run, teams, deployed)


def export(
    fleet: Fleet,
    run: DeclaredRun,
    teams: Mapping[str, Team],
    deployed: DeployedState,
) -> None:
    """Say what a stack has: the teams of this run, and what was said of those it leaves alone.

    Of a team whose steps failed, what was said of it last stays.
    """
    if fleet.facts is not None:
        pulumi.export(OUTPUT, fleet.facts.output())
    pulumi.export("cluster", fleet.cluster.name)
    said = deployed.output("teams")
    summaries = {
        name: team.summary | {"server": _or(team.vcluster.server, value_at(said, f"{name}.server"))}
        for name, team in teams.items()
    }
    kept = deployed.output("kubeconfigs")
    kubeconfigs = {
        name: pulumi.Output.secret(_or(team.vcluster.kubeconfig, kept.get(name)))
        for name, team in teams.items()
    }
    pulumi.export("teams", {**run.summaries, **summaries})
    pulumi.export("kubeconfigs", {**run.kubeconfigs, **kubeconfigs})


def _or(value: pulumi.Output[Any], last: Any) -> pulumi.Output[Any]:
    """The value; after an update in which nothing gave one, the last."""
    if pulumi.runtime.is_dry_run():
        return value

    async def known() -> Any:
        return await value.future() if await value.is_known() else last

    return pulumi.Output.from_input(known())
