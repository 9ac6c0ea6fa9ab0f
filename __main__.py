"""A GPU cluster for many teams: settings, then the platform, then each team, then the outputs."""

import pulumi

from components.platform import Platform, PlatformArgs
from components.team import Team, TeamArgs
from policies.gate import checked_settings

# Every key typed and every rule asked before anything is declared: mistakes are reported
# together, and stop the preview.
settings = checked_settings()

# The host cluster: its GPU stack, and in host mode KAI and the queue tree.
platform = Platform("host", PlatformArgs(settings))

# Each team: a vCluster on its share of the nodes, its scheduler, its queues.
teams = {
    name: Team(
        name,
        TeamArgs.of(settings, name, host=platform.access),
        opts=pulumi.ResourceOptions(provider=platform.provider, depends_on=platform.ready),
    )
    for name in settings.teams
}

pulumi.export("cluster", settings.cluster.name)
pulumi.export("teams", {name: team.summary for name, team in teams.items()})
pulumi.export("kubeconfigs", {name: team.vcluster.kubeconfig for name, team in teams.items()})
