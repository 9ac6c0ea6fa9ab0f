"""The program of a stack: settings, then the host, then each team, then the outputs."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import pulumi

from kai_fleet import deployed, existing
from kai_fleet.arguments import Arguments
from kai_fleet.deployed import PACKAGE, Deployed
from kai_fleet.gpu_stack import GpuStack
from kai_fleet.host_access import host_access
from kai_fleet.host_guards import HostGuards
from kai_fleet.kai_scheduler import KaiScheduler
from kai_fleet.monitoring import FleetMonitoring
from kai_fleet.options import NEAREST, after, noted, source_positions
from kai_fleet.queue_tree import QueueTree
from kai_fleet.settings import Settings
from kai_fleet.settings.team_stack import OUTPUT, Facts, FactsOf, read_platform
from kai_fleet.team import Team
from kai_fleet.team_namespace import TeamNamespace
from kai_fleet.team_stack_access import TeamStackAccess
from kai_fleet.workloads import declare_manifests

# The settings of the running program, from what is deployed and from what a platform's stack tells
# its team stacks. Raises pulumi.RunError where a rule refuses them.
Check: TypeAlias = Callable[[Deployed, FactsOf], Settings]

# Teams that the run in this process leaves as they are: their own clusters stopped the one before.
# The engine is told to exclude them. No variable, so that no other run can leave a team out.
LEFT_OUT: Final[set[str]] = set()


@source_positions(NEAREST)
def program(check: Check) -> None:
    """Declare the stack. Raises pulumi.RunError where `check` refuses the settings."""
    # Every key typed and every rule asked before anything is declared.
    state = deployed.read()
    settings = check(state, read_platform)

    # The host cluster. A provider of the stack's own makes queue trees and reads Secrets.
    own = pulumi.ProviderResource(PACKAGE, PACKAGE, {})
    host = host_access(settings.cluster)
    on_host = pulumi.ResourceOptions(
        providers=[host.provider, own], transformations=[*host.transformations]
    )
    found = existing.find(settings, host.connection, state, own)
    args = Arguments(settings, host.connection.properties(), found)
    if settings.platform_facts is None:
        ready = declare_host(settings, args, on_host)
    else:  # a team stack: its namespace and everything around it are the platform's
        stack = deployed.full_name(settings.platform_stack)
        ready = [pulumi.StackReference("platform", stack_name=stack)]

    # Each team: its namespace with what bounds it, a vCluster, its scheduler, its queues.
    teams = {
        name: Team(
            name, args.team(name), noted(after(on_host, *ready), own.labels, own.annotations)
        )
        for name, own in settings.teams.items()
        if name not in LEFT_OUT
    }
    for name, team in teams.items():
        declare_manifests(name, settings.workloads.get(name, {}), team)

    # What the stack tells people, `fleet` and its team stacks.
    if settings.platform_facts is None:
        pulumi.export(OUTPUT, Facts.of(settings).output())
    pulumi.export("cluster", settings.cluster.name)
    export_teams(settings, teams, state)


def declare_host(
    settings: Settings, args: Arguments, opts: pulumi.ResourceOptions
) -> list[pulumi.Resource]:
    """What all teams share, and the places of teams with a stack of their own."""
    on_host = noted(opts, settings.labels, settings.annotations)
    gpu = GpuStack(existing.GPU_STACK, args.gpu_stack(), on_host)
    guards = HostGuards("host-guards", {"host_kai": settings.kai is not None}, on_host)
    ready: list[pulumi.Resource] = [gpu, guards]
    if settings.kai is not None:
        kai = KaiScheduler(existing.KAI, args.host_kai(), after(on_host, gpu))
        ready += [kai, QueueTree("host-queues", args.host_queues(), after(on_host, kai))]
    if settings.monitoring is not None:
        FleetMonitoring("host", args.monitoring(), after(on_host, *ready))
    if settings.team_stacks:
        accounts = TeamStackAccess("host-team-stacks", args.accounts(), on_host)
        for name, grant in settings.team_stacks.items():
            place = noted(after(opts, *ready, accounts), grant.labels, grant.annotations)
            TeamNamespace(name, args.namespace(name), place)
    return ready


def export_teams(settings: Settings, teams: Mapping[str, Team], state: Deployed) -> None:
    """Export where each team is; of one whose steps failed, what was known of it last."""
    summaries, kubeconfigs = dict[str, Any](), dict[str, Any]()
    for name, team in teams.items():
        own, before = settings.teams[name], state.output("teams", name) or {}
        summaries[name] = {
            "mode": own.scheduler.mode,
            "scheduler": own.scheduler.version,
            "namespace": team.namespace,
            "server": _or_last(team.server, before.get("server")),
            "gpus": own.counted,
            "queues": [own.queue] if own.queue else team.leaves,
        }
        last = _or_last(team.kubeconfig, state.output("kubeconfigs", name))
        kubeconfigs[name] = pulumi.Output.secret(last)
    for name in LEFT_OUT:
        if (last := state.output("teams", name)) is not None:
            summaries[name] = last
            kubeconfigs[name] = pulumi.Output.secret(state.output("kubeconfigs", name))
    pulumi.export("teams", summaries)
    pulumi.export("kubeconfigs", kubeconfigs)


def _or_last(value: pulumi.Output[Any], last: Any) -> pulumi.Output[Any]:
    """The value; after an update in which nothing gave one, the last."""
    if pulumi.runtime.is_dry_run():
        return value

    async def known() -> Any:
        return await value.future() if await value.is_known() else last

    return pulumi.Output.from_input(known())
