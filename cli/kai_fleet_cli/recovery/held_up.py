"""What a team's own cluster did to a run: whose it is, what there refused, and the repair.

A tenant is administrator of its vCluster, so what is there may refuse whatever is declared in it.
It holds up that team alone: the engine goes on with what does not depend on the step that failed.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kai_fleet.fleet.chart_stores import store_of
from kai_fleet.fleet.deployed_state import RELEASE, STACK, TEAM, TEAM_NAMESPACE
from kai_fleet.kube.text import plain
from kai_fleet.wording import listed
from kai_fleet_cli.cluster_reader import NoAnswerError
from kai_fleet_cli.display.events import named
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.recovery.live_cluster import LiveCluster
from kai_fleet_cli.recovery.state import OF_VCLUSTER, ExportedState, provider_of

_NAME: Final = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?"  # it goes into a command
_OBJECT: Final = re.compile(rf"{_NAME}/{_NAME}")
_OWN: Final = f"{OF_VCLUSTER}pulumi:providers:kubernetes::"  # before the team's name
_LONGEST: Final = 300  # of the engine's own words
_OF_TEAMS: Final = (TEAM, TEAM_NAMESPACE)


@dataclass(frozen=True)
class HoldUp:
    """`words` stand in the engine's error; `cause` and `mend`, a command, may name what they catch.

    They may name `{config}`, too, the kind and name of the object that has the webhook `hook`;
    `mend_kai` is for one of KAI's. `{held}` are the objects that finalizers keep.
    """

    words: str
    cause: str
    mend: str
    mend_kai: str = ""


_DELETE: Final = "{login} && {kubectl} delete "
# Queues and running pods stay, and everything else of KAI is made anew.
_KAI: Final = "{login} && {kubectl} delete namespace kai-scheduler && {again}"
_LET_GO: Final = 'patch {held} --type merge -p \'{{"metadata":{{"finalizers":null}}}}\''
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
    HoldUp(
        r"timed out waiting for the condition"
        r"|still there after \d+ s: (?P<queues>[a-z0-9., -]+)\. Look",
        "finalizers keep {held}",
        "{of_it} " + _LET_GO,
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
    lead: str,
    stack: str,
    teams: Mapping[str, Mapping[str, str]],
    known: ExportedState,
    kubeconfig: str | None = None,
) -> str:
    """A line for each team: what failed of it, why, and the command that mends it.

    `known` is the stack's state with its secrets, `kubeconfig` the path to the host for a provider
    that names none.
    """
    names = listed([f"team {it}" for it in sorted(teams)], "and")
    lines = [
        f"team {team}: {_cause(stack, team, urn, message, known, kubeconfig)}, then run the same"
        " command again"
        for team, errors in sorted(teams.items())
        for urn, message in errors.items()
    ]
    return "\n".join([f"{lead} {names}", *dict.fromkeys(lines)])


def _cause(
    stack: str, team: str, urn: str, message: str, known: ExportedState, kubeconfig: str | None
) -> str:
    resource = next((it for it in known.resources if it["urn"] == urn), {"urn": urn})
    file = f"{team}.kubeconfig"
    fill = {
        "team": team,
        "stack": stack,
        "workload": _workload(team, known),
        "again": resume.up(stack),
        "login": f"{resume.FLEET} team kubeconfig {team} --stack {stack} --output {file}",
        "kubectl": f"kubectl --kubeconfig {file}",
    }
    fill["of_it"] = "{login} && {kubectl}".format(**fill) if _inside(resource) else "kubectl"
    for hold_up in HOLD_UPS:
        found = re.search(hold_up.words, message.replace('\\"', '"'), re.DOTALL)
        if found is None:
            continue
        filled, mend = fill | found.groupdict(), hold_up.mend
        with suppress(NoAnswerError, KeyError):
            if "hook" in filled:
                filled["config"], of_kai = _vcluster(team, known).webhook(filled["hook"])
                if not _OBJECT.fullmatch(filled["config"]):
                    continue
                mend = hold_up.mend_kai if of_kai and hold_up.mend_kai else mend
            if "{held}" in mend:
                filled["held"] = _held(resource, filled["queues"], known, kubeconfig)
            return f"{hold_up.cause.format(**filled)}. Mend it with: {mend.format(**filled)}"
    give_up = f"Put that right, or give the team up: {_GIVE_UP.format(**fill)}"
    return f"{named(urn)}: {plain(message, _LONGEST)}. {give_up}"


def _inside(resource: Mapping[str, Any]) -> bool:
    """Whether it is in a vCluster: by its provider, or by what it is deleted with."""
    return OF_VCLUSTER in f"{provider_of(resource)} {resource.get('deletedWith')}"


def _vcluster(team: str, known: ExportedState) -> LiveCluster:
    """Raises NoAnswerError, and KeyError where the state does not know it."""
    ways = {urn.rpartition("::")[2]: it for urn, it in known.providers().items() if _OWN in urn}
    return LiveCluster(ways[team])


def _held(
    resource: Mapping[str, Any], queues: str | None, known: ExportedState, kubeconfig: str | None
) -> str:
    """What finalizers keep, as kubectl names it. Raises NoAnswerError, KeyError."""
    where = ""
    if queues:
        held = [f"queue/{name}" for name in queues.split(", ")]
    else:
        kind, metadata = resource["inputs"]["kind"], resource["inputs"]["metadata"]
        held = [f"{kind.lower()}/{metadata['name']}"]
        if kind == "Namespace":
            where = f" -n {metadata['name']}"
            cluster = LiveCluster(known.providers()[provider_of(resource)], kubeconfig)
            held = cluster.held_in(metadata["name"])
    if not held or not all(map(_OBJECT.fullmatch, held)):
        raise KeyError("held")
    return f"{' '.join(held)}{where}"


def _workload(team: str, known: ExportedState) -> str:
    """What kubectl calls a vCluster's control plane: a Deployment where it has no volume."""
    for resource in known.resources:
        if str(resource["urn"]).endswith(f"{OF_VCLUSTER}{RELEASE}::{team}-release"):
            return store_of((resource.get("inputs") or {}).get("values")).workload
    return "statefulset"
