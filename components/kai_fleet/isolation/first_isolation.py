"""A running team's first guard, or another one: which of its pods that guard would refuse.

Guards judge what is made and changed, so nothing that runs ends by it. A pod that its Deployment
makes anew later is refused then; the preview says so before anything is changed.
"""

from collections.abc import Collection, Mapping
from typing import Final

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.guards.host_rules import HostRules
from kai_fleet.guards.policies import OF_ALL_TEAMS, as_annotations, policy
from kai_fleet.isolation.refused_pods import refused
from kai_fleet.state.deployed_state import NAMESPACE, DeployedState, expressions
from kubectl_fleet.kube.api import OF_OPERATORS, Api
from kubectl_fleet.kube.errors import KubeError, complaint
from kubectl_fleet.kube.text import plain

_NAMED: Final = 40  # pods of a team; a preview is read by a person
_SECONDS: Final = 20.0


def warn_of_refusals(
    rules: Mapping[str, HostRules],
    deployed: DeployedState,
    host: ClusterAccess,
    taken: Collection[str] = (),
) -> None:
    """Warn of each team whose namespace is there already and whose guard is new or another one, by
    another level or by another version of this program.

    `rules` are those of the guards that this run declares, by team; `taken` are teams whose
    namespace others made. Asks the host for these teams
    only: no other run asks it for anything.
    """
    policies = _policies_changed(deployed)
    for team, of_team in rules.items():
        if team not in taken and not deployed.has(NAMESPACE, f"{team}-namespace"):
            continue
        wanted = as_annotations(of_team.parameters()).items()
        if not deployed.has("kai-fleet:index:HostGuard", f"{team}-host-guard"):
            _warn_once_known(team, of_team, host, f"team {team} is isolated from this update on.")
        elif policies or not wanted <= deployed.bounds.get(f"{team}-namespace", {}).items():
            _warn_once_known(team, of_team, host, f"the guard of team {team} wants other things.")


def _policies_changed(deployed: DeployedState) -> bool:
    """Whether the policies that the stack has want other things than those of this version."""
    return any(
        deployed.policies.get(f"host-guards-{kind}") != expressions(policy(kind)["spec"])
        for kind in OF_ALL_TEAMS
    )


def _warn_once_known(team: str, rules: HostRules, host: ClusterAccess, why: str) -> None:
    content: pulumi.Output[str | None] = pulumi.Output.from_input(host.kubeconfig)
    content.apply(lambda kubeconfig: _warn(team, rules, kubeconfig, host.context, why))


def _warn(
    team: str, rules: HostRules, kubeconfig: str | None, context: str | None, why: str
) -> None:
    lead = f"{why} What runs there goes on, and what is made there is judged by the host's guard."
    try:
        pods, refusals = _read(team, rules, kubeconfig, context)
    except KubeError as error:
        pulumi.log.warn(
            f"{lead} Which of its pods would be refused could not be read: {complaint(error)};"
            f" look first: kubectl -n team-{team} get pods"
        )
        return
    if not refusals:
        pulumi.log.info(f"{lead} All {pods} pods that run there would be let in again.")
        return
    lines = [f"  pod {name}: {plain(reason, 400)}" for name, reason in sorted(refusals.items())]
    if len(lines) > _NAMED:
        lines[_NAMED:] = [f"  and {len(lines) - _NAMED} more"]
    pulumi.log.warn(
        "\n".join(
            [
                f"{lead} {len(refusals)} of its {pods} pods would be refused if they were made"
                " anew; change them where they are made (docs/isolation.md), or write isolation:"
                f" {{level: off}} for the team until they are:",
                *lines,
            ]
        )
    )


def _read(
    team: str, rules: HostRules, kubeconfig: str | None, context: str | None
) -> tuple[int, dict[str, str]]:
    """How many pods there are, and those that would be refused. Raises KubeError."""
    limits = {"seconds": _SECONDS, "in_all": _SECONDS, "most": OF_OPERATORS}
    if kubeconfig:
        api = Api.of_kubeconfig(kubeconfig, **limits)
    else:
        api = Api.of_context(None, context, **limits)
    try:
        pods = api.list(f"/api/v1/namespaces/team-{team}/pods")
        nodes = {
            str(node["metadata"]["name"]): node["metadata"].get("labels") or {}
            for node in api.list("/api/v1/nodes")
        }
    finally:
        api.close()
    return len(pods), refused(pods, rules, nodes)
