"""A GPU cluster for many teams: settings, then the platform, then each team, then the outputs.

A team stack is the same program: its platform is another stack's, and it has one team.
"""

import pulumi

from components.focus import declared
from components.outputs import export
from components.own_provider import own_provider
from components.past import read_past
from components.platform import platform_of
from components.platform_reading import read_platform
from components.team import Team, TeamArgs
from components.team_stack_access import let_in
from components.workloads.placement import place
from policies.gate import checked_settings

# Every key typed and every rule asked before anything is declared: mistakes are reported
# together, and stop the preview.
past = read_past()
settings = checked_settings(past, read_platform)

# What makes queue trees and reads Secrets, in every cluster.
own = own_provider()

# The host cluster: its GPU stack, and in host mode KAI and the queue tree.
platform = platform_of(settings, past, pulumi.ResourceOptions(providers=[own]))

# Each team: a vCluster on its share of the nodes, its scheduler, its queues. A command that is
# about one team declares that one, and leaves the others as they are.
run = declared(settings, past)
teams = {
    name: Team(
        name,
        TeamArgs.of(settings, name, host=platform.access, past=past),
        opts=pulumi.ResourceOptions(
            providers=[platform.provider, own],
            depends_on=platform.ready,
            transformations=platform.transformations,
        ),
    )
    for name in run.teams
}

# What runs in the teams' vClusters.
workloads = place(settings, teams)

# What lets team stacks in. No team here waits for it, so it comes after them.
let_in(settings, run, platform)

# What the stack says of itself: to people, to `fleet`, and to its team stacks.
export(settings, run, teams, workloads)
