"""A GPU cluster for many teams: settings, then the platform, then each team, then the outputs."""

import pulumi

from components.past import read_past
from components.platform import Platform, PlatformArgs
from components.team import Team, TeamArgs
from components.workloads.placement import place
from policies.gate import checked_settings

# Every key typed and every rule asked before anything is declared: mistakes are reported
# together, and stop the preview.
past = read_past()
settings = checked_settings(past)

# The host cluster: its GPU stack, and in host mode KAI and the queue tree.
platform = Platform("host", PlatformArgs(settings, past))

# Each team: a vCluster on its share of the nodes, its scheduler, its queues.
teams = {
    name: Team(
        name,
        TeamArgs.of(settings, name, host=platform.access, past=past),
        opts=pulumi.ResourceOptions(
            provider=platform.provider,
            depends_on=platform.ready,
            transformations=platform.transformations,
        ),
    )
    for name in settings.teams
}

# What runs in the teams' vClusters.
workloads = place(settings, teams)

pulumi.export("cluster", settings.cluster.name)
pulumi.export("teams", {name: team.summary for name, team in teams.items()})
pulumi.export("kubeconfigs", {name: team.vcluster.kubeconfig for name, team in teams.items()})
if workloads:
    pulumi.export("workloads", workloads)
