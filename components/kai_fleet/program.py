"""The program of a stack: settings, then the host, then each team, then the outputs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pulumi

from kai_fleet import deployed, existing
from kai_fleet.arguments import Arguments
from kai_fleet.gpu_stack import GpuStack
from kai_fleet.host_access import host_access
from kai_fleet.host_guards import HostGuards
from kai_fleet.inputs import or_last
from kai_fleet.kai_scheduler import KaiScheduler
from kai_fleet.monitoring import FleetMonitoring
from kai_fleet.names import PACKAGE
from kai_fleet.options import after, hide_values, noted, source_positions
from kai_fleet.queue_tree import QueueTree, check_queues
from kai_fleet.settings import Settings, secrets
from kai_fleet.settings.files.project import ROOT
from kai_fleet.settings.team_stack import OUTPUT, Facts, FactsOf, read_platform
from kai_fleet.team import Team, declare_manifests
from kai_fleet.team_namespace import TeamNamespace
from kai_fleet.team_stack_access import TeamStackAccess
from kai_fleet.vcluster_kubeconfig import warn_of_dead


@source_positions()
def program(check: Callable[[deployed.Deployed, FactsOf], Settings]) -> None:
    """Declare the stack.

    `check` gives the settings of the running stack, from its deployed state and, in a team stack,
    the outputs of the platform's stack. It raises pulumi.RunError where a rule refuses them.
    """
    # Every key typed and every rule asked before anything is declared.
    state = deployed.read()
    settings = check(state, read_platform)

    # The host cluster. The package's own provider makes queue trees and reads Secrets.
    package = pulumi.ProviderResource(PACKAGE, PACKAGE, {})
    host, on_host = host_access(settings.cluster, package)
    facts = settings.platform_facts
    if facts and facts.secret:
        on_host.transformations = [hide_values]
    foreign = existing.find(settings, host, state, package)
    args = Arguments(settings, host.properties(), foreign)
    if facts is None:
        ready, args = declare_host(settings, args, on_host)
    else:  # a team stack: its namespace and everything around it are the platform's
        stack = deployed.full_name(settings.platform_stack)
        ready = [pulumi.StackReference("platform", stack_name=stack)]

    # Each team: a namespace with its quotas and policies, a vCluster, a scheduler and queues.
    teams = dict[str, Team]()
    for name, declared in settings.teams.items():
        opts = noted(after(on_host, *ready), declared.labels, declared.annotations)
        teams[name] = Team(name, args.team(name), opts)
        declare_manifests(name, settings.workloads.get(name, {}), teams[name])
    if facts is None and settings.queues:
        # Last, so that a queue that no team uses keeps nobody from being updated.
        last = after(on_host, *ready, *teams.values())
        check_queues("host-queues-unused", [], args.refusals_of_nobody(), last)

    # Outputs, for people, `fleet` and team stacks.
    if facts is None:
        pulumi.export(OUTPUT, Facts.of(settings).output())
    pulumi.export("cluster", settings.cluster.name)
    export_teams(settings, teams, state)
    export_ciphertexts(state)


def declare_host(
    settings: Settings, args: Arguments, opts: pulumi.ResourceOptions
) -> tuple[list[pulumi.Resource], Arguments]:
    """Declare what all teams share, and the namespaces of teams with a stack of their own.

    Return what teams depend on, and the arguments with what is known of the host's queues.
    """
    on_host = noted(opts, settings.labels, settings.annotations)
    gpu = GpuStack(existing.GPU_STACK, args.gpu_stack(), on_host)
    guards = HostGuards("host-guards", args.host_guards(), on_host)
    ready: list[pulumi.Resource] = [gpu, guards]
    if settings.kai is not None:
        kai = KaiScheduler(existing.KAI, args.host_kai(), after(on_host, gpu))
        tree = QueueTree("host-queues", args.host_queues(), after(on_host, kai))
        ready += [kai, tree]
        args = replace(args, refused=tree.refused)
    if settings.monitoring is not None:
        FleetMonitoring("host", args.monitoring(), after(on_host, *ready))
    if settings.team_stacks:
        accounts = TeamStackAccess("host-team-stacks", args.accounts(), on_host)
        for name, grant in settings.team_stacks.items():
            granted = noted(after(opts, *ready, accounts), grant.labels, grant.annotations)
            TeamNamespace(name, args.namespace(name), granted)
    return ready, args


def export_teams(settings: Settings, teams: Mapping[str, Team], state: deployed.Deployed) -> None:
    """Export each team's summary and kubeconfig; the last ones of a team whose resources failed."""
    summaries, kubeconfigs = dict[str, Any](), dict[str, Any]()
    for name, team in teams.items():
        declared = settings.teams[name]
        last, kubeconfig = state.output("teams", name), state.output("kubeconfigs", name)
        warn_of_dead(name, kubeconfig, team.kubeconfig, team)
        summaries[name] = {
            "mode": declared.scheduler.mode,
            "scheduler": declared.scheduler.version,
            "namespace": team.namespace,
            "server": or_last(team.server, (last or {}).get("server")),
            "gpus": declared.counted,
            "queues": [declared.queue] if declared.queue else team.leaves,
        }
        kubeconfigs[name] = pulumi.Output.secret(or_last(team.kubeconfig, kubeconfig))
    pulumi.export("teams", summaries)
    pulumi.export("kubeconfigs", kubeconfigs)


def export_ciphertexts(state: deployed.Deployed) -> None:
    """Export where each ciphertext of the stack's file stands and stood, for the next update."""
    file = ROOT / f"Pulumi.{pulumi.get_stack()}.yaml"
    if known := secrets.known_since(state.outputs.get(secrets.OUTPUT, {}), file):
        pulumi.export(secrets.OUTPUT, known)
