"""What the state of a team may hold: the engine acts on it, and a team writes its own stack's."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kai_fleet import probes
from kai_fleet.cluster import tenant_kubeconfig
from kai_fleet.cluster.plain_yaml import OddYamlError, document
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
# In a kubeconfig, what has a client run a program, or read a file where it runs.
_PROGRAM: Final = ("exec", "auth-provider", "tokenfile")
_SIDES: Final = ("inputs", "outputs")
_KUBECONFIGS: Final = ("kubeconfig", "PROBE_KUBECONFIG")
_CONTEXTS: Final = ("context", "PROBE_CONTEXT")


def taken_along(resources: Sequence[Mapping[str, Any]], team: str) -> list[Mapping[str, Any]]:
    """What a move of the resource `team` takes along: what is below it, and its providers."""
    children: dict[str, list[str]] = {}
    for it in resources:  # of one that is there twice, each has its parent
        children.setdefault(str(it.get("parent") or ""), []).append(str(it["urn"]))
    own, found = {team}, [team]
    while found:
        below = [urn for urn in children.get(found.pop(), ()) if urn not in own]
        own.update(below)
        found += below
    own |= {state.provider_of(it) for it in resources if it["urn"] in own}
    return [it for it in resources if it["urn"] in own]


def check_own(resources: Iterable[Mapping[str, Any]], stack: str, team: str) -> None:
    """As `check_moved`, for the whole of a team's own stack, which this process is about to run."""
    own = [it for it in resources if not (it["type"] in _OF_STACK and _is_of_its_urn(it))]
    _check(own, stack, team, "this command would run it, with your rights")


def check_moved(resources: Iterable[Mapping[str, Any]], source: str, team: str) -> None:
    """Raise UserError for what this program does not declare for the team. Secrets are in clear.

    The engine deletes by the state what a program does not declare: a Command by its outputs, an
    object by its id, whatever their inputs say.
    """
    _check(resources, source, team, "whoever updates the other stack would run it")


def _check(resources: Iterable[Mapping[str, Any]], stack: str, team: str, runs_it: str) -> None:
    for it in resources:
        for why in _foreign(it, team):
            raise UserError(
                f"{_named(it)} in the state of stack {stack} {why}: {runs_it}. Where an older"
                f" version made it, update stack {stack} first; else take it out with: pulumi state"
                f" delete --stack {stack}"
            )


def check_came(
    came: Iterable[Mapping[str, Any]], seen: Sequence[Mapping[str, Any]], dest: str
) -> None:
    """Raise UserError where the state that was left has been written since it was looked at."""
    known = [_content(it) for it in seen]
    for it in came:
        if it["type"] != STACK and _content(it) not in known:
            raise UserError(
                f"{_named(it)} is in the state of stack {dest} by now and was not looked at: the"
                " state that it comes from was written meanwhile. Take it out before an update:"
                f" pulumi state delete --stack {dest}"
            )


def _is_of_its_urn(it: Mapping[str, Any]) -> bool:
    """Whether its type is that of its URN, by which plugins go."""
    return str(it["urn"]).split("::", 3)[2].rpartition("$")[2] == str(it["type"])


def _content(it: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the engine acts on; URNs change by a move, but for type and name."""
    _, _, kind, name = (*str(it["urn"]).split("::", 3), "", "", "")[:4]
    keys = ("type", "id", "delete", *_SIDES)
    return (kind.rpartition("$")[2], name, *(it.get(key) for key in keys))


def _named(it: Mapping[str, Any]) -> str:
    return on_one_line(str(it["urn"]).rpartition("::")[2])


def ways_along(
    resources: Iterable[Mapping[str, Any]], dest: str, there: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Sentences about the ways to clusters that go along. Secrets are in clear.

    `there` is what the other stack has: its contexts are known.
    """
    says, known = set[str](), {name for it in there for name in _texts(_sides(it), _CONTEXTS)}
    for it in resources:
        for text in _texts(_sides(it), _KUBECONFIGS):
            try:
                read = document(text)
            except OddYamlError:
                read = {"exec": ""}  # or whatever its reader makes of it
            of_host = str(it["type"]).startswith(PROVIDERS) and state.OF_VCLUSTER not in it["urn"]
            if of_host and isinstance(read, Mapping):
                says.add(f"its kubeconfig of the host goes along, into the state of stack {dest}")
            if any(key.lower() in _PROGRAM for key, _ in _items(read)):
                says.add(f"a kubeconfig names a program, which this and updates of {dest} run")
        for name in _texts(_sides(it), _CONTEXTS):
            if known and name not in known:
                says.add(f"context {on_one_line(name)} goes along, which is none of stack {dest}'s")
    return sorted(says)


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


def _texts(value: Any, keys: Container[str]) -> Iterator[str]:
    """The texts at keys of these names, at any depth."""
    return (it for key, it in _items(value) if key in keys and isinstance(it, str) and it)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """The keys with their values, at any depth."""
    if isinstance(value, Mapping):
        yield from value.items()
        value = [*value.values()]
    for item in value if isinstance(value, list) else ():
        yield from _items(item)
