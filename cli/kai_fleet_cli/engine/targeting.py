"""What an update declares and touches: the stack's program, for all or for some teams."""

import runpy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from threading import Thread
from typing import Any, Final

from kai_fleet.fleet import deployed_state as deployed
from kai_fleet.fleet.deployed_state import PROVIDERS, STACK, TEAM, TEAM_NAMESPACE, Targets
from kai_fleet.settings.files.project import update_command
from kai_fleet.wording import counted
from kai_fleet_cli.recovery.state import needed_by
from kai_fleet_cli.stack_file.reading import ROOT

PLATFORM: Final = "kai-fleet:index:Platform"
_PLATFORM: Final = f"**::{PLATFORM}**"  # also what an edit adds to it
_LEAD: Final = "only team "
_BUT: Final = "all but team "
# What the program declares for itself; the project's file may declare more beside it.
_OWN: Final = (PLATFORM, TEAM, TEAM_NAMESPACE, STACK)


@dataclass(frozen=True)
class Targeting:
    """What an update is about: for the program, and for the engine as patterns of URNs.

    `others` is everything else, where the engine has to be told of that in place of `urns`.
    """

    targets: Targets
    urns: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Which teams the update is about, for the stack's history."""
        lead = _BUT if self.targets.left_out else _LEAD
        return lead + ", ".join(sorted(self.targets.teams))

    def told(self, stack: str) -> str:
        """The same for a person, with what it takes and what to do about everything else."""
        how = f"with {counted(len(self.urns), '--target pattern')} and --target-dependents"
        if self.others:
            how = f"with --exclude of {counted(len(self.others) - 1, 'resource')} and the platform"
        return (
            f"{self.message.capitalize()} is updated: pulumi up {how}. What else was edited in"
            f" the stack file waits for: {update_command(stack)}"
        )


def of_teams(
    teams: Collection[str],
    state: Sequence[Mapping[str, Any]],
    *,
    grants: bool,
    removes: bool = False,
) -> Targeting | None:
    """An update of these teams only, in a stack whose state has these resources; None where it has
    none: everything is to be made then.

    The engine takes along what is below a targeted resource or depends on it
    (`--target-dependents`), and deletes nothing else, whatever has come into the state meanwhile.
    `grants`: also what teams with stacks of their own were granted. That is on the platform, below
    one component for all, which is targeted only where the first grant comes or the last one goes.

    `removes`: one of the teams goes. With `--target` the engine asks first what would be replaced
    together with each resource that goes, and ends the plugin of a provider that would, while it
    still needs it ("the client connection is closing": v3.190.0 to v3.259.0, `Registry.Diff`). With
    `--exclude` it does not ask. The program sees to it that nothing goes that is not in `state`.
    """
    urns = [str(it["urn"]) for it in state]
    if not urns:
        return None
    patterns = [f"**::{of}::{team}" for team in sorted(teams) for of in (TEAM, TEAM_NAMESPACE)]
    shared = grants and {team for urn in urns if (team := deployed.granted_to(urn))} <= set(teams)
    if shared:
        patterns.append(f"**${deployed.ACCESS}::{deployed.HOST}")
    elif grants:
        patterns += [
            f"**${deployed.ACCESS}${kind}::{deployed.HOST}-{team}-{part}"
            for team in sorted(teams)
            for kind, part in deployed.PARTS.items()
        ]
    if not removes:
        return Targeting(Targets(frozenset(teams), shared), tuple(patterns))
    along = _along(patterns, state)
    targets = Targets(frozenset(teams), shared, known=frozenset(urns))
    return Targeting(targets, tuple(patterns), (_PLATFORM, *sorted(set(urns) - along)))


def without(teams: Collection[str], state: Sequence[Mapping[str, Any]]) -> Targeting:
    """An update of everything but these teams, which are left as they are in the state.

    What the project's file declares beside the program waits with them: of that this knows nothing.
    """
    patterns = [f"**::{of}::{team}" for team in sorted(teams) for of in (TEAM, TEAM_NAMESPACE)]
    tops: dict[str, str] = {}
    for resource in state:
        urn, kind = str(resource["urn"]), str(resource["type"])
        above = tops.get(str(resource.get("parent")), STACK)
        tops[urn] = kind if above == STACK else above
    others = {urn for urn, top in tops.items() if not (top in _OWN or top.startswith(PROVIDERS))}
    targets = Targets(frozenset(teams), known=frozenset(tops), left_out=True)
    return Targeting(targets, (), tuple(sorted(_along(patterns, state) | others)))


def _along(patterns: Sequence[str], state: Sequence[Mapping[str, Any]]) -> set[str]:
    """What the patterns hit, what is below that, or depends on it."""
    ends = tuple(pattern.removeprefix("**") for pattern in patterns)
    along: set[str] = set()
    for resource in state:  # each comes after what it depends on
        urn = str(resource["urn"])
        if urn.endswith(ends) or not along.isdisjoint(needed_by(resource)):
            along.add(urn)
    return along


def was_about(message: str, team: str) -> bool:
    """Whether an update with this message in the history was about a team."""
    if message.startswith(_BUT):
        return team not in message.removeprefix(_BUT).split(", ")
    return not message.startswith(_LEAD) or team in message.removeprefix(_LEAD).split(", ")


def load() -> None:
    """Begin to import what the program declares, half a second's work, while the CLI starts."""
    Thread(target=import_module, args=["kai_fleet.program"], daemon=True).start()


def program(targets: Targets | None = None) -> None:
    """Declare the stack as Pulumi's Python host does, with all that the project's file declares.

    With `targets` only the teams that they name; the engine leaves alone what is no target.
    """
    main = ROOT / "__main__.py"
    if targets is None and main.is_file():
        runpy.run_path(str(main), run_name="__main__")
        return
    from kai_fleet.program import program as declare
    from kai_fleet_policies.validation import checked_settings

    declare(checked_settings, targets)
