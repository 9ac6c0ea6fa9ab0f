"""Move a team between stacks, with nothing that others may have written into its state."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pulumi import automation

from kai_fleet import probes
from kai_fleet.fleet.deployed_state import TEAM
from kai_fleet_cli.display.terminal import Say
from kai_fleet_cli.engine import runs
from kai_fleet_cli.recovery import failures, live_cluster, state
from kai_fleet_cli.stack_file.reading import PROJECT, ROOT
from kubectl_fleet.errors import UserError
from kubectl_fleet.wording import on_one_line

_PROVIDERS: Final = "pulumi:providers:"
_COMMAND: Final = "command:local:Command"
_TYPES: Final = re.compile(
    r"(kai-fleet:index:|kubernetes:)\S+|command:local:Command"
    r"|pulumi:providers:(kai-fleet|kubernetes|command)"
)
_TEXTS: Final = ("create", "update", "delete")
_RUNS: Final = re.compile(
    re.escape(probes.command("")) + r" [a-z]+( [a-z-]+)?" + r"|printf %s \"\$CLUSTER\""
)
_VARIABLES: Final = re.compile(r"CLUSTER|(KAI(?!_FLEET)|PODS|PROBE|RECORD|VACANT|VCLUSTER)_[A-Z_]+")
_KUBECONFIG: Final = re.compile(r"\bclusters\b[\"']?\s*:")
# In a kubeconfig, what has a client run a program, or read a file where it runs.
_PROGRAM: Final = re.compile(r"\b(exec|auth-provider|tokenFile)\b[\"']?\s*:")


def taken_along(resources: Sequence[Mapping[str, Any]], team: str) -> list[Mapping[str, Any]]:
    """What a move of the resource `team` takes along: what is below it, and its providers."""
    parents = {str(it["urn"]): str(it.get("parent") or "") for it in resources}

    def below(urn: str) -> bool:
        for _ in parents:  # and no further: somebody may have written a ring
            if urn == team:
                return True
            urn = parents.get(urn, "")
        return False

    own = {str(it["urn"]) for it in resources if below(str(it["urn"]))}
    own |= {state.provider_of(it) for it in resources if it["urn"] in own}
    return [it for it in resources if it["urn"] in own]


def check_moved(resources: Iterable[Mapping[str, Any]], source: str) -> None:
    """Raise UserError for what this program does not declare. Secrets are in clear."""
    for it in resources:
        for why in _foreign(str(it["type"]), state.opened(it.get("inputs") or {})):
            named = on_one_line(str(it["urn"]).rpartition("::")[2])
            raise UserError(
                f"{named} in the state of stack {source} {why}: whoever updates the other stack"
                f" would run it. Where an older version made it, update stack {source} first; else"
                f" take it out with: pulumi state delete --stack {source}"
            )


def kubeconfigs(resources: Iterable[Mapping[str, Any]], dest: str) -> list[str]:
    """Sentences about the kubeconfigs that go along. Secrets are in clear."""
    says = set()
    for it in resources:
        for text in _texts(state.opened(it.get("inputs") or {})):
            of_host = str(it["type"]).startswith(_PROVIDERS) and state.OF_VCLUSTER not in it["urn"]
            if of_host and _KUBECONFIG.search(text):
                says.add(f"its kubeconfig of the host goes along, into the state of stack {dest}")
            if _KUBECONFIG.search(text) and _PROGRAM.search(text):
                says.add(f"a kubeconfig names a program, which this and updates of {dest} run")
    return sorted(says)


def _foreign(kind: str, inputs: Mapping[str, Any]) -> Iterator[str]:
    if not _TYPES.fullmatch(kind):
        yield f"is a {on_one_line(kind)}, which this program does not make"
    elif kind.startswith(_PROVIDERS):
        if inputs.get("pluginDownloadURL") or inputs.get("__internal"):
            yield "says where its plugin comes from"
    elif kind == _COMMAND:
        for key, value in inputs.items():
            if key == "environment" and isinstance(value, Mapping):
                odd = [str(it) for it in value if not _VARIABLES.fullmatch(str(it))]
                yield from (f"sets {on_one_line(it)}" for it in odd)
            elif key in _TEXTS and not _RUNS.fullmatch(str(value)):
                yield f"has another {key} than this program's"
            elif key not in (*_TEXTS, "triggers", "logging"):
                yield f"has {on_one_line(key)}"


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, Mapping) else ():
        yield from _texts(item)
    for item in value if isinstance(value, list) else ():
        yield from _texts(item)


_PROVIDER: Final = "pulumi:providers:"


def move(
    team: str,
    source: str,
    dest: str,
    environment: Mapping[str, str],
    say: Say,
    agree: Callable[[], None],
    directory: Path = ROOT,
) -> None:
    """Take a team with all that it has from one stack's state to another's.

    By `pulumi state move` and `state delete`, which are shown and asked about (`agree`). The next
    update of each stack finds everything as it is declared. Raises UserError.
    """
    if source == dest:
        raise UserError(f"team {team} is to move from {source} to itself; name another stack")
    old = runs.stack(source, environment, directory)
    urn = f"urn:pulumi:{source}::{PROJECT}::{TEAM}::{team}"
    resources = state.exported(old).resources
    here = {str(it["urn"]) for it in resources}
    if urn not in here:
        teams = sorted(u.rpartition("::")[2] for u in here if f"::{TEAM}::" in u)
        has = f"its teams: {', '.join(teams)}" if teams else "it has no team"
        raise UserError(f"stack {source} runs no team {team}; {has}")
    new = runs.stack(dest, environment, directory)
    if f"urn:pulumi:{dest}::{PROJECT}::{TEAM}::{team}" in state.exported(new).urns():
        raise UserError(f"stack {dest} runs a team {team} already; remove the one or the other")
    clear = state.read(old)
    taken = taken_along(clear.resources, urn)
    check_moved(taken, source)
    commands = _commands(resources, urn, source, dest)
    for command in commands:
        say(f"pulumi {' '.join(command)}")
    for sentence in kubeconfigs(taken, dest):
        say(f"warning: {sentence}")
    agree()  # before a kubeconfig of that state is used
    # Who ran the team's own stack wrote Helm's record, on which the other stack is going to act.
    moved = state.ExportedState({"resources": taken})  # no other kubeconfig was told of
    live_cluster.check_records(moved, environment.get("KUBECONFIG"), say)
    for done, command in enumerate(commands):
        try:
            new.workspace.pulumi_command.run([*command], new.workspace.work_dir, {**environment})
        except automation.errors.CommandError as why:
            rest = "; the commands before it are done: run the same command again" if done else ""
            raise UserError(
                f"team {team} stays in stack {source}: `pulumi {' '.join(command[:2])}`:"
                f" {failures.last_words(str(why))}{rest}"
            ) from None
    say(f"team {team} is now in stack {dest}; nothing of it was touched")


def _commands(
    resources: Sequence[Mapping[str, Any]], team: str, source: str, dest: str
) -> list[list[str]]:
    """What takes a team along, for the CLI to run in this order.

    A move copies the providers of what it moves and leaves the old ones behind. Where one is itself
    below what moves, as a vCluster's is, it would be left without its parent, and the CLI refuses
    that. So what needs such a provider goes first, then the old provider, then the rest.
    """
    paths: dict[str, list[str]] = {}  # each resource with what it is below, from the stack on
    for it in resources:  # parents come first
        paths[str(it["urn"])] = [*paths.get(str(it.get("parent")), ()), str(it["urn"])]
    inside = [it for it in resources if team in paths[str(it["urn"])]]
    providers = [str(it["urn"]) for it in inside if str(it["type"]).startswith(_PROVIDER)]
    kept = {urn for provider in providers for urn in paths[provider]}
    first = dict.fromkeys(
        next(urn for urn in paths[str(it["urn"])] if urn not in kept)
        for it in inside
        if not state.needed_by(it).isdisjoint(providers)
    )
    moves = ["state", "move", "--yes", "--source", source, "--dest", dest]
    return [
        *([[*moves, *first]] if first else []),
        *(["state", "delete", "--yes", "--stack", source, urn] for urn in providers),
        [*moves, team],
    ]
