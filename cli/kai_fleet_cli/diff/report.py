"""A stack's diff: the plan at a base against the plan of the work tree, and what it means."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from kai_fleet.state.deployed_state import deployed_state_of
from kai_fleet_cli.diff.base import Base, BaseState, planning
from kai_fleet_cli.diff.changes import Difference, difference, without_echoes
from kai_fleet_cli.diff.hazards import Hazard, Part, Sentence, by_hazard
from kai_fleet_cli.diff.sentences import sentences, untouched
from kai_fleet_cli.plan import offline
from kai_fleet_cli.plan.picture import Picture, picture
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.platform import facts_beside
from kai_fleet_cli.stack_file.reading import ROOT, beside, encrypted, encrypted_anew
from kai_fleet_policies import validation
from kubectl_fleet.errors import UserError
from kubectl_fleet.wording import agreeing, counted

SAME: Final = 0
PROBLEMS: Final = 1
UNREADABLE: Final = 2
DIFFERS: Final = 3


@dataclass(frozen=True)
class DiffReport:
    """What a reviewer is shown. `now` is None where the work tree has no file for the stack.

    `refusals` are what the rules have against an update from the base. `beside` is what no plan
    shows of the stack's file.
    """

    stack: str
    base: Base
    now: offline.Plan | None
    encrypted: Mapping[str, str] = field(default_factory=dict)
    refusals: Sequence[Sentence] = ()
    beside: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def compared(self) -> bool:
        """Whether there are two plans to compare; a stack that is new is compared with nothing."""
        base = self.base.state in (BaseState.PLANNED, BaseState.NO_STACK)
        return base and self.now is not None and not self._refused

    @property
    def _refused(self) -> bool:
        return self.now is not None and not self.now.ok and not self.now.resources

    @cached_property
    def difference(self) -> Difference:
        """Resource by resource; empty where nothing can be compared."""
        if not self.compared or self.now is None:
            return Difference()
        return difference(self.base.resources, self.now.record()["resources"])

    @cached_property
    def shown(self) -> Difference:
        """The difference without what only repeats the names of queues."""
        trees = [*self.before.trees().values(), *self.after.trees().values()]
        names = {str(queue.name) for queues in trees for queue in queues}
        return without_echoes(self.difference, names)

    @property
    def left_out(self) -> str:
        """What is said in place of the guards that are not shown; "" for none."""
        number = len(self.difference.changed) - len(self.shown.changed)
        if not number:
            return ""
        return f"{counted(number, 'guard')} {agreeing(number, 'repeats')} the queues' new names"

    @cached_property
    def before(self) -> Picture:
        """The stack as the base has it."""
        return picture(self.base.resources)

    @cached_property
    def after(self) -> Picture:
        """The stack as the work tree has it."""
        return picture(self.now.record()["resources"] if self.now else ())

    @cached_property
    def sentences(self) -> list[Sentence]:
        """What the rules refuse, and what happens to the host and to each team."""
        if not self.compared:
            return []
        about = sentences(self.stack, self.before, self.after, self.shown)
        return [*self.refusals, *self._of_the_file, *about]

    @cached_property
    def _of_the_file(self) -> list[Sentence]:
        """The keys beside the plan that differ."""
        keys = sorted(dict(self.base.beside.items() ^ self.beside.items()))
        says = "changes, from which the engine takes more than a plan shows: read it in the file"
        return [Sentence(f"Pulumi.{self.stack}.yaml", (Part(f"{key} {says}"),)) for key in keys]

    @cached_property
    def untouched(self) -> list[str]:
        """The teams to which nothing happens."""
        return untouched(self.before, self.after, self.shown) if self.compared else []

    @cached_property
    def encrypted_anew(self) -> list[str]:
        """The keys whose ciphertext differs: only the engine can tell whether the value does."""
        return encrypted_anew(self.base.encrypted, self.encrypted)

    @cached_property
    def problems(self) -> list[dict[str, str]]:
        """What the rules say about the work tree."""
        return [problem.record() for problem in self.now.problems] if self.now else []

    @property
    def exit_code(self) -> int:
        """0 same, 1 problems in the work tree or at the base, 2 unreadable, 3 differs."""
        if self.now is not None and self.now.exit_code:
            return self.now.exit_code
        if self.base.state in (BaseState.REFUSED, BaseState.FAILED):
            return PROBLEMS
        quiet = not self.encrypted_anew and not self._of_the_file
        same = self.compared and self.difference.same and quiet
        return SAME if same and self.base.state is BaseState.PLANNED else DIFFERS

    @cached_property
    def note(self) -> str:
        """What is to be said about the comparison itself; "" where there are simply two plans."""
        at = f"{self.base.ref} ({self.base.short})"
        if self.now is None:
            return (
                f"Pulumi.{self.stack}.yaml is gone: nothing of the stack is removed by that. To"
                " remove what it made, run this where the file still is: fleet destroy"
                f" --stack {self.stack}"
            )
        if self._refused:
            return "The rules refuse the stack as it is now, so there is no plan to compare."
        match self.base.state:
            case BaseState.NO_STACK:
                return f"The stack is new: at {at} there is no Pulumi.{self.stack}.yaml."
            case BaseState.NO_PLAN:
                return (
                    f"{at} is from before the project had plans, so there is nothing to compare"
                    " with. This is what the work tree declares:"
                )
            case BaseState.REFUSED:
                return (
                    f"At {at} the rules refuse the stack's file, so there is no plan to compare"
                    " with: what is deployed comes from an earlier commit. Compare with the last"
                    " one that was fine. This is what the work tree declares:"
                )
            case BaseState.FAILED:
                return (
                    f"The code at {at} does not run here ({self.base.error}); it may need other"
                    " packages. Compare with a later commit, or run `fleet plan` there in its own"
                    " environment. This is what the work tree declares:"
                )
        return ""

    @property
    def verdict(self) -> str:
        """The whole in a few words: `refused`, `nothing changes`, `2 created, 1 replaced`."""
        if self.now is None:
            return "its file is gone"
        if self.now.exit_code:
            return "refused"
        if self.exit_code == SAME:
            return "nothing changes"
        if not self.compared:
            return "not compared"
        counts = [f"{len(part)} {kind}" for kind, part in self.difference.parts.items() if part]
        if Hazard.REFUSED in by_hazard(self.sentences):
            counts.insert(0, "the update is refused")
        if self.encrypted_anew:
            counts.append(f"{counted(len(self.encrypted_anew), 'value')} encrypted anew")
        if self._of_the_file:
            counts.append(f"{counted(len(self._of_the_file), 'key')} beside the plan")
        return ", ".join(counts)

    @property
    def shows_stack(self) -> bool:
        """Whether the stack itself is shown, as there is nothing to compare it with."""
        return self.now is not None and not self._refused and not self.compared

    def record(self) -> dict[str, Any]:
        """The diff's JSON."""
        parts = self.difference.parts
        return {
            "stack": self.stack,
            "base": {
                "ref": self.base.ref,
                "commit": self.base.commit,
                "state": self.base.state.value,
                "problems": [dict(problem) for problem in self.base.problems],
            },
            "compared": self.compared,
            "same": self.exit_code == SAME,
            "ok": self.now is None or self.now.ok,
            "note": self.note,
            "summary": [item.record() for item in self.sentences],
            "untouched": self.untouched,
            **{name: [change.record() for change in part] for name, part in parts.items()},
            "encryptedAnew": self.encrypted_anew,
            "problems": self.problems,
        }

    def json(self) -> str:
        """The record as text."""
        return json.dumps(self.record(), indent=2, ensure_ascii=False)


def report(stack: str, ref: str, root: Path = ROOT) -> DiffReport:
    """The diff of a stack of the project in `root` against a commit of its repository.

    Raises UserError where `ref` is no commit, or neither side has the stack.
    """
    file = root / f"Pulumi.{stack}.yaml"
    with planning(root, ref, stack) as planned:
        now = offline.plan(stack, file) if file.exists() else None
        base = planned()
    refused = refusals(stack, file, base.resources) if now is not None and now.ok else []
    if now is None and base.state in (BaseState.NO_STACK, BaseState.NO_PLAN):
        raise UserError(f"there is no Pulumi.{stack}.yaml, neither here nor at {ref}")
    return DiffReport(stack, base, now, encrypted(file), refused, beside(file))


def refusals(stack: str, file: Path, resources: Sequence[Mapping[str, Any]]) -> list[Sentence]:
    """What an update refuses that a plan has nothing against: it starts from what is deployed.

    That is what the rules say of a stack file where these resources of a plan run now. Raises
    UserError where the file cannot be read.
    """
    deployed = deployed_state_of((it["urn"], it["type"], it.get("inputs", {})) for it in resources)
    verdict = validation.validate(reading.read(file), deployed, facts_beside(file))
    problems = verdict.refused
    if verdict.settings is not None:
        problems += validation.removal_problems(verdict, deployed.teams, stack)
    return [
        Sentence(it.subject, (Part(f"{it.message} [{it.rule}]", Hazard.REFUSED),))
        for it in problems
    ]
