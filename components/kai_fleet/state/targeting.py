"""The teams that a run declares: all of its stack, or only those that a command is about.

`fleet team …` has the engine update these alone (`--target`). Nothing of the other teams is
declared or read, however many they are, and whether or not their clusters answer. What the
stack's outputs tell of them is taken over from the state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

from kai_fleet.state.deployed_state import DeployedState, granted_to


@dataclass(frozen=True)
class Targets:
    """What a command is about. `shared_grants`: also what all grants of team stacks share, since
    the first of them comes or the last one goes. `known`: where a team goes, the URNs of the state
    that the command read; the engine would remove what has come into it since.
    """

    teams: frozenset[str]
    shared_grants: bool = False
    known: frozenset[str] | None = None


@dataclass(frozen=True)
class DeclaredRun:
    """The teams to declare by name, the grants of those with stacks of their own, and the outputs
    of the teams that are left as they are. `whole`: everything of the stack is declared.
    """

    teams: tuple[str, ...]
    grants: tuple[str, ...] = ()
    summaries: Mapping[str, Any] = field(default_factory=dict)
    kubeconfigs: Mapping[str, pulumi.Output[str]] = field(default_factory=dict, repr=False)
    workloads: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False


def declared(
    teams: Iterable[str],
    grants: Iterable[str],
    deployed: DeployedState,
    targets: Targets | None,
) -> DeclaredRun:
    """What a run declares of these teams and grants; `targets` None is everything.

    Raises pulumi.RunError where the state cannot be read, and where it has got what the command did
    not know of and would remove: a grant, where what all grants share goes with the last one, or
    anything, where a team goes. The engine holds the stack's lock by now: nothing comes after this.
    """
    if targets is None:
        return DeclaredRun(tuple(teams), tuple(grants), whole=True)
    if not deployed.urns:
        raise pulumi.RunError(
            "the stack's state cannot be read, so its outputs of the other teams are not known;"
            " run the same command again"
        )
    if targets.shared_grants and (new := _granted(deployed) - targets.teams):
        raise pulumi.RunError(
            f"another update granted team {min(new)} a stack meanwhile, so nothing was done; run"
            " the same command again"
        )
    if targets.known is not None and (late := deployed.urns - targets.known):
        raise pulumi.RunError(
            f"another update made {min(late)} meanwhile, so nothing was done; run the same command"
            " again"
        )
    kubeconfigs = _output(deployed, "kubeconfigs")
    return DeclaredRun(
        tuple(name for name in teams if name in targets.teams),
        tuple(name for name in grants if name in targets.teams),
        {n: told for n, told in _output(deployed, "teams").items() if n not in targets.teams},
        {n: pulumi.Output.secret(it) for n, it in kubeconfigs.items() if n not in targets.teams},
        {n: w for n, w in _output(deployed, "workloads").items() if w["team"] not in targets.teams},
    )


def _granted(deployed: DeployedState) -> set[str]:
    return {team for urn in deployed.urns if (team := granted_to(urn))}


def _output(deployed: DeployedState, name: str) -> Mapping[str, Any]:
    output = deployed.outputs.get(name)
    return output if isinstance(output, Mapping) else {}
