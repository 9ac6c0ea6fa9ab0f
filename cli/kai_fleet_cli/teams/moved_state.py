"""What a move takes along, read as what somebody else may have written: a team stack's state.

The engine deletes what its program does not declare by what the state says of it: it runs the
`delete` of a Command, and fetches the plugin of a provider from where the provider says. So what
comes into another stack is what this program declares, or the move is refused.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kai_fleet import probes
from kai_fleet_cli.recovery import state
from kubectl_fleet.errors import UserError
from kubectl_fleet.wording import on_one_line

_PROVIDER: Final = "pulumi:providers:"
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


def taken(resources: Sequence[Mapping[str, Any]], team: str) -> list[Mapping[str, Any]]:
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


def check(resources: Iterable[Mapping[str, Any]], source: str) -> None:
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
            of_host = str(it["type"]).startswith(_PROVIDER) and state.OF_VCLUSTER not in it["urn"]
            if of_host and _KUBECONFIG.search(text):
                says.add(f"its kubeconfig of the host goes along, into the state of stack {dest}")
            if _KUBECONFIG.search(text) and _PROGRAM.search(text):
                says.add(f"a kubeconfig names a program, which this and updates of {dest} run")
    return sorted(says)


def _foreign(kind: str, inputs: Mapping[str, Any]) -> Iterator[str]:
    if not _TYPES.fullmatch(kind):
        yield f"is a {on_one_line(kind)}, which this program does not make"
    elif kind.startswith(_PROVIDER):
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
