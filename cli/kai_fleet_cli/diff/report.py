"""A stack's diff: the plan at a base against the plan of the work tree, and what it means."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kai_fleet.fleet.deployed_state import deployed_state_of
from kai_fleet.settings.secrets import Encrypted, encrypted, moved
from kai_fleet.wording import agreeing, counted
from kai_fleet_cli.diff.base import Base, BaseState, planning
from kai_fleet_cli.diff.changes import Difference, difference, without_echoes
from kai_fleet_cli.diff.consequences import Hazard, Part, Sentence, by_hazard
from kai_fleet_cli.diff.sentences import sentences, untouched
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan import offline
from kai_fleet_cli.plan.picture import picture
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.stack_file.platform import facts_beside
from kai_fleet_cli.stack_file.reading import ROOT, beside, read
from kai_fleet_policies import validation

UNREADABLE: Final = 2
SECRETS: Final = {
    "added": "has a secret now",
    "changed": "is encrypted anew: only the engine can say if it changed",
    "moved": "has a secret that stood at another key",
    "removed": "has no secret any more",
}
_SAME: Final = 0
_PROBLEMS: Final = 1
_DIFFERS: Final = 3

_GONE: Final = (
    "Pulumi.{stack}.yaml is gone: nothing of the stack is removed by that. To remove what it made,"
    " run this where the file still is: fleet destroy --stack {stack}"
)
_REFUSED: Final = "The rules refuse the stack as it is now, so there is no plan to compare."
_BESIDE: Final = "changes, from which the engine takes more than a plan shows: read it in the file"
_DECLARED: Final = "This is what the work tree declares:"
_NOTES: Final = {
    BaseState.PLANNED: "",
    BaseState.NO_STACK: "The stack is new: at {at} there is no Pulumi.{stack}.yaml.",
    BaseState.NO_PLAN: "{at} is from before the project had plans, so there is nothing to compare"
    f" with. {_DECLARED}",
    BaseState.REFUSED: "At {at} the rules refuse the stack's file, so there is no plan to compare"
    " with: what is deployed comes from an earlier commit. Compare with the last one that was"
    f" fine. {_DECLARED}",
    BaseState.FAILED: "The code at {at} does not run here ({error}); it may need other packages."
    " Compare with a later commit, or run `fleet plan` there in its own environment."
    f" {_DECLARED}",
}


class DiffReport:
    """What a reviewer is shown. `now` is None where the work tree has no file for the stack.

    `refusals` are what the rules have against an update from the base, `secrets` the ciphertexts of
    the stack file, `beside` what no plan shows of it.

    `compared`: there are two plans, where a stack that is new is compared with nothing. Where there
    are not, `note` says why, and with `shows_stack` the stack itself is shown. `shown` is the
    `difference` without what only repeats the names of queues, of which `left_out` speaks.
    `sentences` say what is refused, and what happens to the host and to each team. `secrets` are
    keys whose secret is not the base's, each with a word of SECRETS. `exit_code` is 0 same, 1
    problems in the work tree or at the base, 2 unreadable, 3 differs; `verdict` the whole in a few
    words: `refused`, `nothing changes`, `2 created, 1 replaced`.
    """

    def __init__(
        self,
        stack: str,
        base: Base,
        now: offline.Plan | None,
        secrets: Sequence[Encrypted] = (),
        refusals: Sequence[Sentence] = (),
        beside: Mapping[str, str] | None = None,
    ) -> None:
        self.stack, self.base, self.now = stack, base, now
        resources = now.resources if now else ()
        refused = now is not None and not now.ok and not now.resources
        has_base = base.state in (BaseState.PLANNED, BaseState.NO_STACK)
        self.compared = has_base and now is not None and not refused
        self.shows_stack = now is not None and not refused and not self.compared
        self.problems = now.problems if now else ()
        differ = _secrets(base.secrets, secrets, f"Pulumi.{stack}.yaml") if now else {}
        self.secrets = dict(sorted(differ.items()))
        self.before, self.after = picture(base.resources), picture(resources)
        self.difference = self.shown = Difference()
        self.sentences: list[Sentence] = []
        self._of_the_file: list[Sentence] = []
        self.untouched: list[str] = []
        if self.compared:
            self.difference = difference(base.resources, resources)
            trees = [*self.before.trees().values(), *self.after.trees().values()]
            names = {str(queue.name) for queues in trees for queue in queues}
            self.shown = without_echoes(self.difference, names)
            pictures, file = (self.before, self.after), f"Pulumi.{stack}.yaml"
            keys = sorted(dict(base.beside.items() ^ (beside or {}).items()))
            self._of_the_file = [Sentence(file, (Part(f"{key} {_BESIDE}"),)) for key in keys]
            about = sentences(stack, *pictures, self.shown)
            self.sentences = [*refusals, *self._of_the_file, *about]
            self.untouched = untouched(*pictures, self.shown)
        repeat = len(self.difference.changed) - len(self.shown.changed)
        guards = f"{counted(repeat, 'guard')} {agreeing(repeat, 'repeats')} the queues' new names"
        self.left_out = guards if repeat else ""
        note = _GONE if now is None else _REFUSED if refused else _NOTES[base.state]
        at = f"{base.ref} ({base.short})"
        self.note = note.format(at=at, stack=stack, error=base.error)
        quiet = not self.secrets and not self._of_the_file
        same = self.compared and self.difference.same and quiet
        if now is not None and now.exit_code:
            self.exit_code = now.exit_code
        elif base.state in (BaseState.REFUSED, BaseState.FAILED):
            self.exit_code = _PROBLEMS
        else:
            self.exit_code = _SAME if same and base.state is BaseState.PLANNED else _DIFFERS
        self.verdict = self._verdict()

    def _verdict(self) -> str:
        if self.now is None:
            return "its file is gone"
        if self.now.exit_code:
            return "refused"
        if self.exit_code == _SAME:
            return "nothing changes"
        if not self.compared:
            return "not compared"
        counts = [f"{len(part)} {kind}" for kind, part in self.difference.parts.items() if part]
        if Hazard.REFUSED in by_hazard(self.sentences):
            counts.insert(0, "the update is refused")
        if self.secrets:
            number = len(self.secrets)
            counts.append(f"{counted(number, 'secret')} {agreeing(number, 'differs')}")
        if self._of_the_file:
            counts.append(f"{counted(len(self._of_the_file), 'key')} beside the plan")
        return ", ".join(counts)

    def record(self) -> dict[str, Any]:
        """The diff's JSON."""
        parts = self.difference.parts
        return {
            "stack": self.stack,
            "base": {
                "ref": self.base.ref,
                "commit": self.base.commit,
                "state": self.base.state.value,
                "problems": [problem.record() for problem in self.base.problems],
            },
            "compared": self.compared,
            "same": self.exit_code == _SAME,
            "ok": self.now is None or self.now.ok,
            "note": self.note,
            "summary": [item.record() for item in self.sentences],
            "untouched": self.untouched,
            **{name: [change.record() for change in part] for name, part in parts.items()},
            "secrets": self.secrets,
            "problems": [problem.record() for problem in self.problems],
        }


def compare(stack: str, ref: str, root: Path = ROOT) -> DiffReport:
    """The diff of a stack of the project in `root` against a commit of its repository.

    Raises UserError where `ref` is no commit, or neither side has the stack.
    """
    file = root / f"Pulumi.{stack}.yaml"
    with planning(root, ref, stack) as planned:
        now = offline.plan(stack, file) if file.exists() else None
        base = planned()
    if now is None and base.state in (BaseState.NO_STACK, BaseState.NO_PLAN):
        raise UserError(f"there is no Pulumi.{stack}.yaml, neither here nor at {ref}")
    here = encrypted(file)
    if now is not None:
        wrong = validation.as_findings(moved(base.secrets, here))
        now = replace(now, problems=(*now.problems, *wrong))
    refused = refusals(stack, file, base.resources) if now is not None and now.ok else []
    return DiffReport(stack, base, now, here, refused, beside(file))


def _secrets(before: Iterable[Encrypted], now: Iterable[Encrypted], file: str) -> dict[str, str]:
    """Each key of a file whose secret differs, and how, by a word of SECRETS."""
    old = {it.path: it.content for it in before if it.file == file}
    new = {it.path: it.content for it in now}
    return {
        **dict.fromkeys(old.keys() - new.keys(), "removed"),
        **dict.fromkeys(new.keys() - old.keys(), "added"),
        **{key: "changed" for key in new.keys() & old.keys() if old[key] != new[key]},
        **{it.path: "moved" for it in moved(before, now)},
    }


def refusals(stack: str, file: Path, resources: Sequence[Registered]) -> list[Sentence]:
    """What an update refuses that a plan has nothing against: it starts from what is deployed.

    That is what the rules say of a stack file where these resources of a plan run now. Raises
    UserError where the file cannot be read.
    """
    deployed = deployed_state_of((it.urn, it.type, it.inputs) for it in resources)
    verdict = validation.validate(read(file), deployed, facts_beside(file))
    problems = verdict.refused
    if verdict.settings is not None:
        problems += validation.removal_findings(verdict, deployed.teams, stack)
    return [
        Sentence(it.subject, (Part(f"{it.message} [{it.check}]", Hazard.REFUSED),))
        for it in problems
    ]
