"""The namespaces of a platform's teams: those that it runs, and those with a stack of their own."""

import pulumi

from kai_fleet.cluster.existing_objects import ExistingObjects
from kai_fleet.fleet.model import DeclaredTeam, Fleet
from kai_fleet.fleet.taints import closed_pool
from kai_fleet.guards.guard_policies import GUARD_POLICIES
from kai_fleet.host.platform import Platform
from kai_fleet.host.platform_reference import ReferencedPlatform
from kai_fleet.host.team_stack_access import TeamStackAccess
from kai_fleet.isolation import first_isolation
from kai_fleet.isolation.namespace_metadata import is_of_others
from kai_fleet.isolation.team_namespace import TeamNamespace, TeamNamespaceArgs
from kai_fleet.state.deployed_state import NAMESPACE, NAMESPACE_PATCH, DeployedState
from kai_fleet.state.targeting import DeclaredRun
from kubectl_fleet.live.objects import in_pool


def team_namespaces(
    fleet: Fleet,
    run: DeclaredRun,
    platform: Platform | ReferencedPlatform,
    access: TeamStackAccess | None,
    deployed: DeployedState,
    existing: ExistingObjects,
    parent: pulumi.Resource | None = None,
) -> dict[str, TeamNamespace]:
    """One for each team of this run; none in a team stack, whose platform has it.

    `access` are the accounts of those with a stack of their own. Raises pulumi.RunError for a team
    stack that holds the namespace itself: it would take it away, and all that is in it.
    """
    if fleet.platform:
        _hold_none(fleet, deployed)
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
    accounts = access.accounts if access else {}
    teams = _placed(fleet, run)
    judged = {team.name: team.rules for team in teams if team.isolated and team.rules}
    taken = [team.name for team in teams if is_of_others(team, existing)]
    first_isolation.warn_of_refusals(judged, deployed, platform.access, taken)
    return {
        team.name: TeamNamespace(
            team.name,
            TeamNamespaceArgs(
                platform.access,
                team,
                policies=platform.guards,
                account=accounts[team.name] if team.granted else None,
                monitoring=fleet.host.monitoring,
                existing=existing,
            ),
            opts,
        )
        for team in teams
    }


def refuse_misfits(fleet: Fleet, run: DeclaredRun, existing: ExistingObjects) -> None:
    """Raise pulumi.RunError where a namespace of others has labels that do not fit its team, and
    warn of pools whose taints it does not tolerate.
    """
    if not fleet.platform:
        for team in _placed(fleet, run):
            is_of_others(team, existing)
            warn_of_taints(team, existing)


def warn_of_taints(team: DeclaredTeam, existing: ExistingObjects) -> None:
    """Say which taint keeps a team's pods off all of its nodes, and what to write."""
    nodes = existing.nodes() if team.node_pool else ()
    pool = [it["taints"] for it in nodes if in_pool(it["labels"], team.node_pool)]
    if closed := closed_pool(team, pool):
        pulumi.log.warn(f"nodes of team {team.name}: {closed[0]}; {closed[1]}")


def _placed(fleet: Fleet, run: DeclaredRun) -> list[DeclaredTeam]:
    """The teams of a run that have a namespace by the platform's stack."""
    return [*(fleet.teams[name] for name in run.teams), *(fleet.grants[n] for n in run.grants)]


def _hold_none(fleet: Fleet, deployed: DeployedState) -> None:
    team = fleet.own_team
    if any(deployed.has(kind, f"{team}-namespace") for kind in (NAMESPACE, NAMESPACE_PATCH)):
        raise pulumi.RunError(
            f"this stack holds namespace team-{team}, which is the platform's now, so nothing was"
            f" done: move team {team} to stack {fleet.platform} and back. Put it into"
            f" kai-fleet:teams there, and drop its grant; fleet team move {team}; make up"
            f" STACK={fleet.platform}; then move it out again (docs/team-stacks.md)"
        )
