"""What the state of a team may hold: the engine acts on it, and a team writes its own stack's."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kai_fleet import probes
from kai_fleet.cluster import tenant_kubeconfig
from kai_fleet.fleet.deployed_state import COMMAND, PROVIDERS, RELEASE, STACK
from kai_fleet.provider import QUEUES
from kai_fleet.settings.sections.access import OF_TEAM
from kai_fleet.values import pairs
from kai_fleet.wording import on_one_line
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import state

_TYPES: Final = re.compile(
    r"(kai-fleet:index:|kubernetes:)\S+|command:local:Command"
    r"|pulumi:providers:(kai-fleet|kubernetes|command)"
)
# Of a provider: the cluster, and what `PULUMI_K8S_…` says of how it is spoken to.
_OF_PROVIDER: Final = re.compile(
    r"version|__internal|kubeconfig|context|clusterIdentifier|kubeClientSettings"
    r"|deleteUnreachable|skipUpdateUnreachable|(enable|suppress)[A-Za-z]+"
)
_OF_STACK: Final = (STACK, "pulumi:pulumi:StackReference", "pulumi:providers:pulumi")
_TEXTS: Final = ("create", "update", "delete")
_OF_COMMAND: Final = (*_TEXTS, "environment", "triggers", "logging", "stdout", "stderr")
_RUNS: Final = re.compile(
    re.escape(probes.command(""))
    + r" (pods|record|vcluster|(?P<inside>kai (wait|clean-up)|shards (apply|remove)))"
    + r"|printf %s \"\$CLUSTER\""
)
_VARIABLES: Final = re.compile(r"CLUSTER|(KAI(?!_FLEET)|PODS|PROBE|RECORD|VCLUSTER)_[A-Z_]+")
_SIDES: Final = ("inputs", "outputs")


def check_own(resources: Iterable[Mapping[str, Any]], stack: str, team: str) -> None:
    """Raise UserError for what this program does not declare for the team, in the whole of its own
    stack, which this process is about to run. Secrets are in clear.

    The engine deletes by the state what a program does not declare: a Command by its outputs, an
    object by its id, whatever their inputs say.
    """
    for it in resources:
        if it["type"] in _OF_STACK and _is_of_its_urn(it):
            continue
        for why in _foreign(it, team):
            raise UserError(
                f"{_named(it)} in the state of stack {stack} {why}: this command would run it, with"
                " your rights. Take it out with: pulumi state"
                f" delete --stack {stack}"
            )


def _is_of_its_urn(it: Mapping[str, Any]) -> bool:
    """Whether its type is that of its URN, by which plugins go."""
    return str(it["urn"]).split("::", 3)[2].rpartition("$")[2] == str(it["type"])


def _named(it: Mapping[str, Any]) -> str:
    return on_one_line(str(it["urn"]).rpartition("::")[2])


def _sides(it: Mapping[str, Any]) -> list[Any]:
    return [state.opened(it.get(side)) or {} for side in _SIDES]


def _foreign(it: Mapping[str, Any], team: str) -> Iterator[str]:
    kind, urn = str(it["type"]), str(it["urn"])
    both = _sides(it)
    if not _TYPES.fullmatch(kind):
        yield f"is a {on_one_line(kind)}, which this program does not make"
    elif not _is_of_its_urn(it):
        yield "has another type than its URN"
    elif kind.startswith(PROVIDERS):
        yield from _of_provider(urn, both[0])
    elif kind == COMMAND:
        for properties in both:
            yield from _of_command(properties, team)
    elif kind == QUEUES:
        yield from _of_queues(both, team)
    elif kind.startswith("kubernetes:") and state.OF_VCLUSTER not in state.provider_of(it):
        yield from _of_host(it, both, team)


def _of_provider(urn: str, inputs: Mapping[str, Any]) -> Iterator[str]:
    if inputs.get("pluginDownloadURL") or inputs.get("__internal"):
        yield "says where its plugin comes from"
    yield from (f"has {on_one_line(key)}" for key in inputs if not _OF_PROVIDER.fullmatch(key))
    if state.OF_VCLUSTER in urn:
        if "context" in inputs:
            yield "leads to another cluster than the team's"
        try:
            tenant_kubeconfig.rebuild(str(inputs.get("kubeconfig") or ""))
        except tenant_kubeconfig.TenantKubeconfigError as why:
            yield f"has a kubeconfig that {why}"


def _of_command(properties: Mapping[str, Any], team: str) -> Iterator[str]:
    space = f"team-{team}"
    wanted = {
        "PODS_NAMESPACE": space,
        "PODS_VCLUSTER": team,
        "PROBE_SECRET": f"{space}/vc-{team}",
        "RECORD_RELEASE": f"{space}/{team}",
        "VCLUSTER_NAME": team,
        "VCLUSTER_NAMESPACE": space,
    }
    variables = pairs(properties.get("environment"))
    for key, value in properties.items():
        runs = _RUNS.fullmatch(str(value)) if key in _TEXTS else None
        if key not in _OF_COMMAND or (key == "environment" and value != variables):
            yield f"has {on_one_line(key)}"
        elif key in _TEXTS and not runs:
            yield f"has another {key} than this program's"
        elif runs and runs["inside"] and "PROBE_SECRET" not in variables:
            yield "is about another cluster than the team's"
    for name, value in variables.items():
        if not _VARIABLES.fullmatch(name):
            yield f"sets {on_one_line(name)}"
        elif wanted.get(name, value) != value:
            yield f"has another {name} than team {team}'s"


def _of_queues(both: Sequence[Mapping[str, Any]], team: str) -> Iterator[str]:
    every = {**both[0], **both[1]}
    if any(p.get("tree") != f"{team}-queues" for p in both):
        yield "is the tree of others"
    # With a kubeconfig of its own it has no rights but the team's; else its names are.
    own = "\n" in str(every.get("kubeconfig") or "") and "context" not in every
    names = [str(name) for p in both for name in p.get("queues") or ()]
    if not own and any(name != team and not name.startswith(f"{team}-") for name in names):
        yield "has queues of others"


def _of_host(it: Mapping[str, Any], both: Sequence[Mapping[str, Any]], team: str) -> Iterator[str]:
    kind, space = str(it["type"]), f"team-{team}"
    if kind == RELEASE:
        names = {(p.get("namespace"), p.get("name")) for p in both if p}
        own = f"{state.OF_VCLUSTER}{RELEASE}::" in it["urn"] and names == {(space, team)}
        own = own and it.get("id") == f"{space}/{team}"
    else:
        names = {
            (m.get("namespace"), m.get("name")) for m in (pairs(p.get("metadata")) for p in both)
        }
        place, name = map(str, next(iter(names)))
        known = {
            "kubernetes:core/v1:ConfigMap": name.startswith(f"{team}-oidc-"),
            "kubernetes:core/v1:Secret": name == OF_TEAM,
        }
        own = known.get(kind, False) and names == {(space, name)}
        own = own and it.get("id") == f"{place}/{name}"
    if not own:
        yield f"is {on_one_line(str(it.get('id')))} of the host, which is not team {team}'s"
