"""The end of a whole stack: what refuses it, and what goes with each team."""

import shlex
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from kai_fleet.fleet.deployed_state import NAMESPACE, TEAM_NAMESPACE, teams_of
from kai_fleet.wording import counted, listed
from kai_fleet_cli.cluster_reader import ClusterReader, NoAnswerError
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import clusters, resume
from kai_fleet_cli.recovery.state import OF_VCLUSTER, ExportedState, provider_of
from kai_fleet_cli.teams import lookup

_PROVIDER: Final = "$pulumi:providers:kubernetes::"  # before the team's name, for its vCluster
_AT_ONCE: Final = 8


def check(stack: str, now: ExportedState, kubeconfig: str | None) -> None:
    """Raise UserError for what would stop the removal half-way: protection, and team stacks.

    `kubeconfig` is the engine's path to the host, for a provider that names none. A host that
    cannot be asked is only told of.
    """
    if protected := [str(it["urn"]) for it in now.resources if it.get("protect")]:
        raise UserError(
            f"stack {stack} has {counted(len(protected), 'protected resource')}, and Pulumi deletes"
            f" none: {listed([urn.rpartition('::')[2] for urn in protected], 'and')}. Take the"
            f" protection off first: pulumi state unprotect --stack {stack}"
            f" {shlex.quote(protected[0])}"
        )
    running = {}
    for team, resource in _granted(now).items():
        namespace = str(resource["inputs"]["metadata"]["name"])
        try:
            with clusters.api_of(now.providers()[provider_of(resource)], kubeconfig) as host:
                path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"
                held = host.list(path, labelSelector="app=vcluster")
            if held:
                running[team] = f"{team}: namespace {namespace} holds the vCluster {team}"
        except (NoAnswerError, KeyError) as why:
            say(f"warning: whether team {team}'s own stack still runs is not known: {why}")
    if running:
        raise UserError(
            f"team stacks still run on stack {stack} ({'; '.join(running.values())}). Destroy these"
            f" first: {', then '.join(_ends(stack, team) for team in running)}"
        )


def losses(stack: str, now: ExportedState, *, counts: bool) -> Iterator[str]:
    """What goes, a line for each team; `counts`: with its pods and volumes, from its vCluster."""
    yield f"Stack {stack} goes with all that it made: {counted(len(now.resources), 'resource')}"
    teams = sorted(teams_of(now.urns()))
    kubeconfigs = {
        urn.rpartition("::")[2]: str(inputs.get("kubeconfig") or "")
        for urn, inputs in (now.providers() if counts else {}).items()
        if OF_VCLUSTER in urn and _PROVIDER in urn
    }
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        held = pool.map(lambda team: _held(kubeconfigs.get(team, "")), teams)
        for team, what in zip(teams, held, strict=True):
            yield f"  team {team}: its vCluster, {what if counts else 'every pod and every volume'}"


def _held(kubeconfig: str) -> str:
    try:
        if kubeconfig:
            vcluster = ClusterReader(content=kubeconfig)
            pods, volumes = len(vcluster.pods()), len(vcluster.claims())
            return f"{counted(pods, 'pod')} and {counted(volumes, 'volume')} now"
    except NoAnswerError:
        pass
    return "every pod and every volume in it; it does not answer, so they are not counted"


def _granted(now: ExportedState) -> dict[str, Mapping[str, Any]]:
    """The namespaces of teams that have stacks of their own, by team."""
    spaces = {
        str(it.get("parent") or "").rpartition("::")[2]: it
        for it in now.resources
        if f"{TEAM_NAMESPACE}$" in it["urn"] and it["type"] == NAMESPACE
    }
    own = teams_of(now.urns())
    return {team: resource for team, resource in spaces.items() if team not in own}


def _ends(stack: str, team: str) -> str:
    """The command that ends a team's own stack, where its file is here."""
    try:
        place = lookup.platform(stack).team(team)
    except UserError:
        return f"the stack of team {team}, where its file is (fleet destroy there)"
    return resume.destroy(place.stack)
