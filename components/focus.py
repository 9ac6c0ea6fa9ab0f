"""The teams that a run declares: all of its stack, or only those that a command changes.

`fleet team …` has the engine leave everything of the other teams as it is (`--exclude`): nothing of
theirs is declared, asked about or written anew, however many they are. What the stack's outputs
tell of them is taken over from the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pulumi

from components.team_stack_grant import ACCESS

if TYPE_CHECKING:
    from components.past import Past
    from components.settings import Settings
    from components.settings.team_stack import Grant

TEAM: Final = "kai-fleet:index:Team"


@dataclass(frozen=True)
class Focus:
    """What a command is about. `seen` is every URN that the state had when it excluded what the
    other teams have: the engine would delete one that came later, being neither declared nor
    excluded. `past` is what was read then, as long as nobody has written since.
    """

    teams: frozenset[str]
    seen: frozenset[str]
    past: Callable[[], Past | None] = field(default=lambda: None, repr=False, compare=False)


@dataclass(frozen=True)
class Declared:
    """The teams to declare by name, the grants of those with stacks of their own, and the outputs
    of the teams that are left as they are.
    """

    teams: tuple[str, ...]
    grants: Mapping[str, Grant] = field(default_factory=dict)
    summaries: Mapping[str, Any] = field(default_factory=dict)
    kubeconfigs: Mapping[str, pulumi.Output[str]] = field(default_factory=dict, repr=False)
    workloads: Mapping[str, Any] = field(default_factory=dict)


# Of this process, which runs the engine: no environment of a later run can leave teams out.
_focus: list[Focus] = []


@contextmanager
def only(focus: Focus | None) -> Iterator[None]:
    """Have the program that runs meanwhile declare the teams of a focus; None: all of them."""
    before = list(_focus)
    _focus[:] = [focus] if focus else []
    try:
        yield
    finally:
        _focus[:] = before


def known_past() -> Past | None:
    """The stack's past, where the command knows it without asking the engine."""
    return _focus[0].past() if _focus else None


def declared(settings: Settings, past: Past) -> Declared:
    """What this run is about.

    Raises pulumi.RunError where the stack has got something that the command did not know of.
    """
    if not _focus:
        return Declared(tuple(settings.teams), settings.team_stacks)
    focus = _focus[0]
    new = sorted(urn for urn in past.urns - focus.seen if _of_a_team(urn))
    if new:
        raise pulumi.RunError(
            f"another update changed this stack meanwhile ({new[0].rpartition('::')[2]} is new), so"
            " nothing was done; run the same command again"
        )
    kubeconfigs = _output(past, "kubeconfigs")
    return Declared(
        tuple(name for name in settings.teams if name in focus.teams),
        {name: it for name, it in settings.team_stacks.items() if name in focus.teams},
        {n: told for n, told in _output(past, "teams").items() if n not in focus.teams},
        {n: pulumi.Output.secret(it) for n, it in kubeconfigs.items() if n not in focus.teams},
        {n: w for n, w in _output(past, "workloads").items() if w["team"] not in focus.teams},
    )


def _of_a_team(urn: str) -> bool:
    return any(f"{kind}$" in urn for kind in (TEAM, ACCESS))


def _output(past: Past, name: str) -> Mapping[str, Any]:
    found = past.outputs.get(name)
    return found if isinstance(found, Mapping) else {}
