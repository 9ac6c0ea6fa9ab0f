"""A whole fleet in one component, of all the settings of a platform's stack file."""

from __future__ import annotations

import pulumi

from kai_fleet.fleet.queues import leaves
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.host.platform import Platform, PlatformArgs
from kai_fleet.monitoring.fleet_monitoring import monitoring_of
from kai_fleet.package.construct.request import Request, Result
from kai_fleet.state.targeting import declared
from kai_fleet.teams import teams_of
from kai_fleet.workloads.placement import place


def platform(asked: Request) -> Result:
    """The host, then its teams and what they run, all below the one component."""
    asked.arguments()
    settings = asked.settings(asked.given.raw, {})
    kubeconfig = asked.given.input("cluster", "kubeconfig")
    fleet = fleet_of(settings, asked.deployed)
    args = PlatformArgs(fleet, asked.deployed, kubeconfig)
    made = Platform(asked.name, args, asked.opts)
    monitoring_of(fleet, made)
    run = declared(fleet.teams, fleet.grants, asked.deployed, None)
    teams = teams_of(fleet, run, made, asked.deployed, parent=made)
    workloads = place(fleet, teams)
    return made, {
        "version": settings.kai.version if settings.kai else None,
        "queues": leaves(fleet.host.queues),
        "teams": {name: team.summary for name, team in teams.items()},
        "kubeconfigs": pulumi.Output.secret(
            {name: team.vcluster.kubeconfig for name, team in teams.items()}
        ),
        "urls": {name: it["url"] for name, it in workloads.items() if "url" in it},
    }
