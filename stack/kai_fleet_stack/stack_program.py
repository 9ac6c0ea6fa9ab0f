"""The program of a stack: settings, then the host, then the teams, then the outputs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import pulumi

from kai_fleet.declaring.inputs import or_last
from kai_fleet.declaring.options import adding_labels, depending_on, hide_values, source_positions
from kai_fleet.gpu_stack import GpuStack
from kai_fleet.isolation.host_guards import HostGuards
from kai_fleet.isolation.team_namespace import TeamNamespace
from kai_fleet.isolation.team_stack_access import TeamStackAccess
from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.manifests import declare_manifests
from kai_fleet.monitoring.fleet_monitoring import FleetMonitoring
from kai_fleet.names import PACKAGE
from kai_fleet.one_run import failed_teams
from kai_fleet.ownership import deployed
from kai_fleet.queue_tree import QueueTree
from kai_fleet.queues.check import check_queues
from kai_fleet.team import Team
from kai_fleet_stack import existing
from kai_fleet_stack.arguments import Arguments, Connection, team_stacks
from kai_fleet_stack.arguments import host as host_args
from kai_fleet_stack.dead_kubeconfigs import warn_of_dead
from kai_fleet_stack.host_access import host_access
from kai_fleet_stack.project import ROOT
from kai_fleet_stack.removals import DeclaredResources
from kai_fleet_stack.settings import Settings, secrets
from kai_fleet_stack.settings.team_stack import OUTPUT, Facts, read_platform
from kai_fleet_stack.validation import checked_settings


@source_positions()
def program() -> None:
    """Declare the stack, in a running Pulumi program, and export its outputs.

    Nothing is declared before the settings are accepted, and no component before a host that exists
    has answered. Outputs: `cluster`, `teams`, `kubeconfigs`, `ciphertexts` if there are any, and of
    a platform's stack OUTPUT, the facts for team stacks.

    Raises:
        pulumi.RunError: a key is wrong, a rule refuses the settings, the host does not answer, an
            object of others does not fit, or a component refuses its arguments.
        yaml.YAMLError: as `export_teams`.
    """
    state = deployed.read()
    settings = checked_settings(state, read_platform)
    resources = DeclaredResources()

    # The host cluster. Our package's provider creates queue trees and reads Secrets.
    package = pulumi.ProviderResource(PACKAGE, PACKAGE, {})
    connection, on_host = host_access(settings.cluster, package)
    facts = settings.platform_facts
    if facts and facts.secret:
        on_host.transformations = [hide_values]
    foreign = existing.find(settings, connection, state, package)
    host = cast(Connection, connection.properties())
    args = Arguments(settings, host, foreign)

    # The teams: each a namespace with quotas and policies, a vCluster, a scheduler and queues. In a
    # team's own stack the platform's stack declares the namespace and what all teams share.
    if facts is None:
        ready, args = declare_host(settings, args, on_host)
        teams = declare_teams(settings, args, ready, on_host)
        check_unused_queues(settings, args, [*ready, *teams.values()], on_host)
        pulumi.export(OUTPUT, Facts.of(settings).output())
    else:
        stack = deployed.full_name(settings.platform_stack)
        platform = pulumi.StackReference("platform", stack_name=stack)
        teams = declare_teams(settings, args, [platform], on_host)

    # The outputs, for people, `fleet` and team stacks.
    pulumi.export("cluster", settings.cluster.name)
    export_teams(settings, teams, state)
    export_ciphertexts(state)

    # What is no longer declared, which the engine deletes now.
    resources.keep_others_if_one_fails(state)


def declare_teams(
    settings: Settings,
    args: Arguments,
    ready: list[pulumi.Resource],
    on_host: pulumi.ResourceOptions,
) -> dict[str, Team]:
    """Declare the teams, which depend on `ready`, and then the workloads of each.

    A team's workloads depend on its vCluster, its KAI and its queues.

    Args:
        args: after `declare_host`, if this stack declares the host: a team in mode host fails then
            if its queue was refused.
        ready: what has to be there before; in a team's own stack the reference to the platform's.
        on_host: the options that `host_access` returns.

    Returns:
        The teams by name, in the order of the settings.

    Raises:
        pulumi.RunError: a component refuses its arguments.
    """
    teams = dict[str, Team]()
    for name, team in settings.teams.items():
        if name in failed_teams():
            continue
        opts = adding_labels(depending_on(on_host, *ready), team.labels, team.annotations)
        declared = Team(name, args.team(name), opts)
        after_queues = depending_on(declared.vcluster.inside(declared), *declared.ready)
        declare_manifests(name, settings.workloads.get(name, {}), after_queues)
        teams[name] = declared
    return teams


def check_unused_queues(
    settings: Settings,
    args: Arguments,
    dependencies: list[pulumi.Resource],
    on_host: pulumi.ResourceOptions,
) -> None:
    """Declare the check that fails if a queue of the host that no team uses is refused.

    Without queues of the host it is left out.

    Args:
        args: those that `declare_host` returns; without `refused` the check finds nothing.
        dependencies: the resources before it. The teams are among them, so that its failure keeps
            none of them from being updated.
        on_host: the options that `host_access` returns.
    """
    if settings.queues:
        refusals = args.refusals_of_unused_queues()
        opts = depending_on(on_host, *dependencies)
        check_queues("host-queues-unused", [], refusals, opts)


def declare_host(
    settings: Settings, args: Arguments, opts: pulumi.ResourceOptions
) -> tuple[list[pulumi.Resource], Arguments]:
    """Declare what all teams share, and the namespaces of teams with a stack of their own.

    Only in a platform's stack, and after `existing.find`, which refuses the host of another stack.
    `opts` are the options that `host_access` returns.

    Returns:
        The resources on which teams depend: GPU stack, guards, KAI and queues. And the arguments,
        with the refused queues of the host's KAI if it has one.

    Raises:
        pulumi.RunError: a component refuses its arguments.
    """
    on_host = adding_labels(opts, settings.labels, settings.annotations)
    gpu = GpuStack(existing.GPU_STACK, args.gpu_stack(), on_host)
    guards = HostGuards("host-guards", host_args.guards(settings), on_host)
    ready: list[pulumi.Resource] = [gpu, guards]
    if settings.kai is not None:
        kai = KaiScheduler(existing.KAI, args.host_kai(), depending_on(on_host, gpu))
        tree = QueueTree("host-queues", args.host_queues(), depending_on(on_host, kai))
        ready += [kai, tree]
        args = replace(args, refused=tree.refused)
    if settings.monitoring is not None:
        FleetMonitoring("host", host_args.monitoring(settings), depending_on(on_host, *ready))
    if settings.team_stacks:
        accounts = TeamStackAccess("host-team-stacks", team_stacks.accounts(settings), on_host)
        for name, grant in settings.team_stacks.items():
            if name in failed_teams():
                continue
            after_accounts = depending_on(opts, *ready, accounts)
            granted = adding_labels(after_accounts, grant.labels, grant.annotations)
            TeamNamespace(name, args.namespace(name), granted)
    return ready, args


def export_teams(
    settings: Settings,
    teams: Mapping[str, Team],
    state: deployed.Deployed,
) -> None:
    """Export by team a summary, `teams`, and as secrets the kubeconfigs, `kubeconfigs`.

    A summary has `mode`, `scheduler` (the version of the team's own KAI, else None), `namespace`,
    `server`, `gpus` (as KAI counts them) and `queues` (the host's queue that it names, else the
    leaves of its own). If the team's resources failed in an update, server and kubeconfig are those
    of `state`, None without. Warns as `warn_of_dead`.

    Args:
        teams: by name. Teams of the settings that are not among them have what `state` has.
        state: the state of the last update.

    Raises:
        yaml.YAMLError: a kubeconfig of the last update is no YAML.
    """
    summaries = dict[str, Mapping[str, object]]()
    kubeconfigs = dict[str, pulumi.Output[str | None]]()
    for name, declared in settings.teams.items():
        last_summary = state.output("teams", name) or {}
        last_kubeconfig = state.output("kubeconfigs", name)
        if name not in teams:
            summaries[name] = last_summary
            kubeconfigs[name] = pulumi.Output.secret(last_kubeconfig)
            continue
        team = teams[name]
        warn_of_dead(name, last_kubeconfig, team.kubeconfig, team)
        summaries[name] = {
            "mode": declared.scheduler.mode,
            "scheduler": declared.scheduler.version,
            "namespace": team.namespace,
            "server": or_last(team.server, last_summary.get("server")),
            "gpus": declared.gpus_with_slices,
            "queues": [declared.queue] if declared.queue else team.leaves,
        }
        kubeconfig = or_last(team.kubeconfig, last_kubeconfig)
        kubeconfigs[name] = pulumi.Output.secret(kubeconfig)
    pulumi.export("teams", summaries)
    pulumi.export("kubeconfigs", kubeconfigs)


def export_ciphertexts(state: deployed.Deployed) -> None:
    """Export digests of the ciphertexts that each key has had; nothing if there are none.

    The next update finds by them a ciphertext that was moved to another key. Known are those in
    `state`, the state of the last update: without its outputs the history begins anew.
    """
    file = ROOT / f"Pulumi.{pulumi.get_stack()}.yaml"
    known = state.outputs.get(secrets.OUTPUT, {})
    digests = secrets.digests_since(known, file)
    if digests:
        pulumi.export(secrets.OUTPUT, digests)
