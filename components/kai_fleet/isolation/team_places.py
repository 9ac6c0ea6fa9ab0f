"""The namespaces of a platform's teams: those that it runs, and those with a stack of their own."""

from collections.abc import Collection, Iterable
from contextlib import closing
from functools import partial
from typing import Final

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.cluster.existing_objects import ExistingObjects
from kai_fleet.fleet.deployed_state import (
    NAMESPACE,
    TEAM_NAMESPACE,
    DeclaredRun,
    DeployedState,
    expressions,
    named,
)
from kai_fleet.fleet.model import DeclaredTeam, Fleet
from kai_fleet.fleet.taints import closed_pool
from kai_fleet.guards.components import GUARD_POLICIES
from kai_fleet.guards.host_rules import HostRules
from kai_fleet.guards.policies import OF_ALL_TEAMS, as_annotations, policy
from kai_fleet.host.platform import Platform
from kai_fleet.host.team_stack_access import accounts_of_team_stacks
from kai_fleet.isolation.refused_pods import refused
from kai_fleet.isolation.team_namespace import TeamNamespace, TeamNamespaceArgs, is_of_others
from kai_fleet.kube.api import OF_OPERATORS, Api
from kai_fleet.kube.errors import KubeError, complaint
from kai_fleet.kube.kubeconfig import connection
from kai_fleet.kube.objects import in_pool
from kai_fleet.kube.text import plain
from kai_fleet.settings.files.project import update_command

_PODS_NAMED: Final = 40  # of a team; a preview is read by a person
_SECONDS: Final = 20.0  # in which the host answers about one team


def team_namespaces(
    platform: Platform, run: DeclaredRun, parent: pulumi.Resource | None = None
) -> dict[str, TeamNamespace]:
    """One for each team of this run, and the accounts of those with a stack of their own; none in a
    team stack, whose platform has them.

    Raises pulumi.RunError where the guards of all teams are not there yet.
    """
    args = platform.args
    fleet, deployed, existing = args.fleet, args.deployed, args.existing
    if fleet.platform:
        return {}
    if not run.whole and not deployed.has(GUARD_POLICIES, "host-guards"):
        raise pulumi.RunError(
            "this version of kai-fleet declares the guards of all teams in one place, and they are"
            " not there yet, so nothing was done: run"
            f" {update_command(pulumi.get_stack())}, then the same command again"
        )
    accounts = accounts_of_team_stacks(platform, run)
    teams = _with_namespace(fleet, run)
    judged = [team.rules for team in teams if team.isolated and team.rules]
    taken = [team.name for team in teams if is_of_others(team, existing)]
    _warn_of_refusals(judged, deployed, platform.access, taken)
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
            platform.once_ready(parent),
        )
        for team in teams
    }


def refuse_misfits(fleet: Fleet, run: DeclaredRun, existing: ExistingObjects) -> None:
    """Raise pulumi.RunError where a namespace of others has labels that do not fit its team, and
    warn of pools whose taints it does not tolerate.
    """
    if not fleet.platform:
        for team in _with_namespace(fleet, run):
            is_of_others(team, existing)
            warn_of_taints(team, existing)


def warn_of_taints(team: DeclaredTeam, existing: ExistingObjects) -> None:
    """Say which taint keeps a team's pods off all of its nodes, and what to write."""
    nodes = existing.nodes() if team.node_pool else ()
    pool = [it["taints"] for it in nodes if in_pool(it["labels"], team.node_pool)]
    if closed := closed_pool(team, pool):
        pulumi.log.warn(f"nodes of team {team.name}: {closed[0]}; {closed[1]}")


def _with_namespace(fleet: Fleet, run: DeclaredRun) -> list[DeclaredTeam]:
    """The teams of a run that have a namespace by the platform's stack."""
    return [*(fleet.teams[name] for name in run.teams), *(fleet.grants[n] for n in run.grants)]


def _warn_of_refusals(
    rules: Iterable[HostRules],
    deployed: DeployedState,
    host: ClusterAccess,
    taken: Collection[str],
) -> None:
    """Warn of each team whose namespace is there already and whose guard is new or another one, by
    another level or by another version of this program: which of its pods it would refuse.

    Guards judge what is made and changed, so nothing that runs ends by it. A pod that its
    Deployment makes anew later is refused then; the preview says so before anything is changed.
    `rules` are those of the guards that this run declares; `taken` are teams whose namespace others
    made. Asks the host for these teams only: no other run asks it for anything.
    """
    policies_changed = any(
        deployed.policies.get(f"host-guards-{kind}") != expressions(policy(kind)["spec"])
        for kind in OF_ALL_TEAMS
    )
    for of_team in rules:
        team = of_team.team
        if team not in taken and not deployed.has(NAMESPACE, f"{team}-namespace"):
            continue
        wanted = as_annotations(of_team.parameters()).items()
        bounds = deployed.bounds.get(named(TEAM_NAMESPACE, f"{team}-namespace"), {})
        if not deployed.has("kai-fleet:index:HostGuard", f"{team}-host-guard"):
            why = f"team {team} is isolated from this update on."
        elif policies_changed or not wanted <= bounds.items():
            why = f"the guard of team {team} wants other things."
        else:
            continue
        content: pulumi.Output[str | None] = pulumi.Output.from_input(host.kubeconfig)
        content.apply(partial(_warn, of_team, host.context, why))


def _warn(rules: HostRules, context: str | None, why: str, kubeconfig: str | None) -> None:
    lead = f"{why} What runs there goes on, and what is made there is judged by the host's guard."
    space = f"team-{rules.team}"
    try:
        way = connection(kubeconfig, context=context)
        with closing(Api(way, _SECONDS, in_all=_SECONDS, most=OF_OPERATORS)) as api:
            pods = api.list(f"/api/v1/namespaces/{space}/pods")
            nodes = api.list("/api/v1/nodes")
    except KubeError as error:
        pulumi.log.warn(
            f"{lead} Which of its pods would be refused could not be read: {complaint(error)};"
            f" look first: kubectl -n {space} get pods"
        )
        return
    labels = {str(it["metadata"]["name"]): it["metadata"].get("labels") or {} for it in nodes}
    refusals = refused(pods, rules, labels)
    if not refusals:
        pulumi.log.info(f"{lead} All {len(pods)} pods that run there would be let in again.")
        return
    lines = [f"  pod {name}: {plain(reason, 400)}" for name, reason in sorted(refusals.items())]
    if len(lines) > _PODS_NAMED:
        lines[_PODS_NAMED:] = [f"  and {len(lines) - _PODS_NAMED} more"]
    pulumi.log.warn(
        "\n".join(
            [
                f"{lead} {len(refusals)} of its {len(pods)} pods would be refused if they were made"
                " anew; change them where they are made (docs/isolation.md), or write isolation:"
                f" {{level: off}} for the team until they are:",
                *lines,
            ]
        )
    )
