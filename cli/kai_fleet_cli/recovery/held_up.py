"""What a team's own cluster did to a run: whose it is, what there refused, and the repair.

A tenant is administrator of its vCluster, so what is there may refuse whatever is declared in it.
It holds up that team alone: the engine goes on with what does not depend on the step that failed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kai_fleet.fleet.deployed_state import RELEASE, STACK, TEAM, TEAM_NAMESPACE
from kai_fleet.fleet.installed import store_of
from kai_fleet.kube.text import plain
from kai_fleet.wording import listed
from kai_fleet_cli.cluster_reader import NoAnswerError
from kai_fleet_cli.display.events import named
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.recovery.live_cluster import LiveCluster
from kai_fleet_cli.recovery.state import OF_VCLUSTER, ExportedState

_NAME: Final = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"  # it goes into a command
_LONGEST: Final = 300  # of the engine's own words
_OF_TEAMS: Final = (TEAM, TEAM_NAMESPACE)


@dataclass(frozen=True)
class HoldUp:
    """`words` stand in the engine's error; `cause` and `mend`, a command, may name what they catch.

    They may name `{config}`, too, the kind and name of the object that has the webhook `hook`;
    `mend_kai` is for one of KAI's.
    """

    words: str
    cause: str
    mend: str
    mend_kai: str = ""


_DELETE: Final = "{login} && {kubectl} delete "
# Queues and running pods stay, and everything else of KAI is made anew.
_KAI: Final = "{login} && {kubectl} delete namespace kai-scheduler && {again}"
_GIVE_UP: Final = f"{resume.FLEET} team remove {{team}} --stack {{stack}}"
_HOST: Final = "kubectl -n team-{team} "
_RESTART: Final = _HOST + "rollout restart {workload} {team}"
HOLD_UPS: Final = (
    HoldUp(
        rf"(?P<kind>\w+AdmissionPolicy) '(?P<name>{_NAME})' with binding '(?P<binding>{_NAME})'",
        "{kind} {name} in its vCluster refuses it",
        _DELETE + "{kind}/{name} {kind}Binding/{binding}",
    ),
    HoldUp(
        rf'admission webhook "(?P<hook>{_NAME})" denied',
        "webhook {hook} of {config} in its vCluster refuses it",
        _DELETE + "{config}",
    ),
    HoldUp(
        rf'failed calling webhook "(?P<hook>{_NAME})".*x509',
        "webhook {hook} of {config} in its vCluster is not trusted",
        _DELETE + "{config}",
    ),
    HoldUp(
        rf'failed calling webhook "(?P<hook>{_NAME})"',
        "webhook {hook} of {config} in its vCluster does not answer",
        _DELETE + "{config}",
        _KAI,
    ),
    HoldUp(r"KAI v\S+ is not ready after", "its KAI does not get ready", _KAI),
    HoldUp(
        r"knows no Queues|no matches for kind",
        "kinds of its KAI are gone",
        _KAI,
    ),
    HoldUp(
        r"(?P<secret>Secret vc-\S+ of namespace \S+) is not there",
        "somebody deleted {secret}",
        _RESTART,
    ),
    HoldUp(
        r"(?P<secret>Secret vc-\S+ of namespace \S+) (?:has|holds) ",
        "somebody else than its vCluster wrote {secret}",
        f"{_HOST}delete secret vc-{{team}} && {_RESTART}",
    ),
    HoldUp(
        r"exceeded quota: (?P<quota>[a-z0-9.-]*[a-z0-9])",
        "ResourceQuota {quota} in its vCluster leaves no room",
        _DELETE + "resourcequota -A --field-selector metadata.name={quota}",
    ),
    HoldUp(
        r"database space exceeded|database or disk is full|readonly database|no space",
        "the store of its vCluster is full",
        _GIVE_UP,
    ),
    HoldUp(
        r"an earlier run of this stack left: (?P<left>[^.]*)\.",
        "an earlier run left {left}",
        "{again}",
    ),
    HoldUp(
        r"unreachable|does not answer|bad provider state|the API answers|cannot be listed|refused"
        r"|connection reset|Client.Timeout|deadline exceeded|unable to handle the request",
        "the API of its vCluster does not answer as Kubernetes does",
        _RESTART,
    ),
)


def team_of(urn: str, parents: Mapping[str, str]) -> str:
    """The team that a resource is a part of; "" for all others."""
    while urn:
        types, _, name = urn.rpartition("::")
        if types.rpartition("::")[2].rpartition("$")[2] in _OF_TEAMS:
            return name
        urn = parents.get(urn, "")
    return ""


def by_team(errors: Mapping[str, str], parents: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The errors of each team, by URN; none where something else failed, too.

    What is said of the stack itself is that it failed, or it is said again without these teams.
    """
    found: dict[str, dict[str, str]] = {}
    for urn, message in errors.items():
        if urn and f"::{STACK}::" not in urn:
            found.setdefault(team_of(urn, parents), {})[urn] = message
    return {} if "" in found else found


def explain(
    lead: str, stack: str, teams: Mapping[str, Mapping[str, str]], known: ExportedState
) -> str:
    """A line for each team: what failed of it, why, and the command that mends it."""
    names = listed([f"team {it}" for it in sorted(teams)], "and")
    lines = [
        f"team {team}: {cause}. {mend}, then run the same command again"
        for team, errors in sorted(teams.items())
        for cause, mend in _causes(stack, team, errors, known)
    ]
    return "\n".join([f"{lead} {names}", *dict.fromkeys(lines)])


def _causes(
    stack: str, team: str, errors: Mapping[str, str], known: ExportedState
) -> Iterator[tuple[str, str]]:
    file = f"{team}.kubeconfig"
    fill = {
        "team": team,
        "stack": stack,
        "workload": _workload(team, known),
        "again": resume.up(stack),
        "file": file,
        "login": f"{resume.FLEET} team kubeconfig {team} --stack {stack} --output {file}",
        "kubectl": f"kubectl --kubeconfig {file}",
    }
    for urn, message in errors.items():
        for hold_up in HOLD_UPS:
            found = re.search(hold_up.words, message.replace('\\"', '"'), re.DOTALL)
            if found is None:
                continue
            filled, mend = {**fill, **found.groupdict()}, hold_up.mend
            if "hook" in filled:
                config, of_kai = _webhook(team, filled["hook"], known)
                filled["config"] = config
                mend = hold_up.mend_kai if of_kai and hold_up.mend_kai else mend
            yield hold_up.cause.format(**filled), f"Mend it with: {mend.format(**filled)}"
            break
        else:
            cause = f"{named(urn)}: {plain(message, _LONGEST)}"
            yield cause, f"Put that right, or give the team up: {_GIVE_UP.format(**fill)}"


def _webhook(team: str, hook: str, known: ExportedState) -> tuple[str, bool]:
    """What has the webhook of that name in a team's vCluster, and whether it is KAI's."""
    for urn, inputs in known.providers().items():
        if OF_VCLUSTER in urn and urn.endswith(f"::{team}"):
            try:
                return LiveCluster(inputs).webhook(hook)
            except NoAnswerError:
                break
    return "validatingwebhookconfigurations --all", False


def _workload(team: str, known: ExportedState) -> str:
    """What kubectl calls a vCluster's control plane: a Deployment where it has no volume."""
    for resource in known.resources:
        if str(resource["urn"]).endswith(f"{OF_VCLUSTER}{RELEASE}::{team}-release"):
            return store_of((resource.get("inputs") or {}).get("values")).workload
    return "statefulset"
