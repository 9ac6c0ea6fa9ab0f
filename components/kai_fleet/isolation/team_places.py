"""The namespaces of a platform's teams: those that it runs, and those with a stack of their own."""

from __future__ import annotations

from dataclasses import replace

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.guards.guard_policies import GUARD_POLICIES, GuardPolicies
from kai_fleet.guards.queue_guard import QueueGuardArgs
from kai_fleet.host.platform import Platform
from kai_fleet.host.platform_reference import PlatformReference
from kai_fleet.host.team_stack_access import TeamStackAccess
from kai_fleet.isolation import first_isolation, vcluster_role
from kai_fleet.isolation.team_namespace import TeamNamespace, TeamNamespaceArgs
from kai_fleet.isolation.team_rules import of_declared, of_granted
from kai_fleet.monitoring.team_monitoring import TeamMonitoringArgs
from kai_fleet.releases import DEFAULT_VCLUSTER, vcluster
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.guard import GuardMode
from kai_fleet.settings.tenant import Tenant
from kai_fleet.state.deployed_state import DeployedState
from kai_fleet.state.targeting import Declared


def team_namespaces(
    settings: Settings,
    run: Declared,
    platform: Platform | PlatformReference,
    access: TeamStackAccess | None,
    deployed: DeployedState,
    parent: pulumi.Resource | None = None,
) -> dict[str, TeamNamespace]:
    """One for each team of this run; none in a team stack, whose platform has it.

    `access` are the accounts of those with a stack of their own. Raises pulumi.RunError for a team
    stack that holds the namespace itself: it would take it away, and all that is in it.
    """
    if isinstance(settings, Tenant):
        _holds_none(settings, deployed)
        return {}
    if not run.whole and not deployed.has(GUARD_POLICIES, "host-guards"):
        raise pulumi.RunError(
            "this version of kai-fleet declares the guards of all teams in one place, and they are"
            " not there yet, so nothing was done: run make up STACK="
            f"{pulumi.get_stack()}, then the same command again"
        )
    opts = pulumi.ResourceOptions(
        parent=parent,
        provider=platform.provider,
        depends_on=platform.ready,
        transformations=platform.transformations,
    )
    policies = platform.guards
    wanted = {name: of_team(settings, name, platform.access, policies) for name in run.teams}
    accounts = access.accounts if access else {}
    wanted |= {
        name: replace(of_grant(settings, name, platform.access, policies), account=accounts[name])
        for name in run.grants
    }
    judged = {name: args.rules for name, args in wanted.items() if args.isolation.on}
    first_isolation.warn_of_refusals(judged, deployed, platform.access)
    return {name: TeamNamespace(name, args, opts) for name, args in wanted.items()}


def _holds_none(settings: Tenant, deployed: DeployedState) -> None:
    team = settings.team
    if deployed.has("kubernetes:core/v1:Namespace", f"{team}-namespace"):
        raise pulumi.RunError(
            f"this stack holds namespace team-{team}, which is the platform's now, so nothing was"
            f" done: move team {team} to stack {settings.stack} and back. Put it into"
            f" kai-fleet:teams there, and drop its grant; fleet team move {team}; make up"
            f" STACK={settings.stack}; then move it out again (docs/team-stacks.md)"
        )


def of_team(
    settings: Settings, name: str, host: ClusterAccess, policies: GuardPolicies | None = None
) -> TeamNamespaceArgs:
    """The place of a team that the platform's stack runs, by the host's `policies`."""
    team = settings.teams[name]
    mode, of = team.scheduler.mode, settings.vcluster_of(name)
    release = vcluster(of.version or DEFAULT_VCLUSTER, untested=of.untested)
    return TeamNamespaceArgs(
        host,
        settings.isolation_of(name),
        team.gpus,
        of_declared(settings, name),
        gpu_resource=settings.gpu.resource,
        queues=_queues(settings, name, [team.queue] if team.queue else [], policies),
        sees_nodes=mode == "virtual",
        role=vcluster_role.rules(name, release, of.values),
        monitoring=_monitoring(settings, name),
        policies=policies,
    )


def of_grant(
    settings: Settings, name: str, host: ClusterAccess, policies: GuardPolicies | None = None
) -> TeamNamespaceArgs:
    """The place of a team with a stack of its own, whose mode that stack chooses."""
    grant = settings.team_stacks[name]
    queues = [grant.parent_queue] if grant.parent_queue else []
    return TeamNamespaceArgs(
        host,
        settings.isolation_of(name),
        grant.gpus,
        of_granted(settings, name),
        gpu_resource=settings.gpu.resource,
        queues=_queues(settings, name, queues, policies, prefix=f"{name}-"),
        sees_nodes=settings.kai is None,
        monitoring=_monitoring(settings, name),
        policies=policies,
    )


def _queues(
    settings: Settings,
    name: str,
    queues: list[str],
    policies: GuardPolicies | None,
    prefix: str | None = None,
) -> QueueGuardArgs | None:
    """The guard of the queues on a host whose KAI schedules the team's pods."""
    mode = settings.guard.mode
    if not queues or mode == "off":
        return None
    admitted: GuardMode = mode
    sharing = settings.kai is not None and settings.shares_gpus(settings.kai)
    foreign = settings.queues_like(name) if prefix else []
    return QueueGuardArgs(
        name,
        queues,
        f"team-{name}",
        admitted,
        sharing,
        prefix,
        foreign,
        policies=policies,
    )


def _monitoring(settings: Settings, name: str) -> TeamMonitoringArgs | None:
    """What Prometheus is told of a team; of one with a stack of its own, no queues are known."""
    if settings.monitoring is None:
        return None
    isolation, team = settings.isolation_of(name), settings.teams.get(name)
    closed = isolation.on and isolation.network.enabled
    if team is None:
        granted = settings.team_stacks[name].parent_queue
        queues = [granted] if granted else []
        closed = closed and settings.kai is None
        return TeamMonitoringArgs(settings.monitoring, host_queues=queues, closed=closed)
    own_kai = team.scheduler.mode == "virtual"
    return TeamMonitoringArgs(
        settings.monitoring,
        own_kai=own_kai,
        queues=team.queues,
        host_queues=[team.queue] if team.queue else [],
        closed=closed and own_kai,
    )
