"""A stack's diff: the plan at a base against the plan of the work tree, with its consequences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kai_fleet.deployed import of_resources
from kai_fleet.settings.secrets import Encrypted, encrypted, moved
from kai_fleet.wording import counted
from kai_fleet_cli.diff.base import Base, planning
from kai_fleet_cli.diff.changes import Change, difference
from kai_fleet_cli.diff.summary import Item, Summary, of_changes
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan import offline
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.stack_file.platform import facts_beside
from kai_fleet_cli.stack_file.reading import ROOT, beside, read
from kai_fleet_policies import validation
from kai_fleet_policies.model.cluster import HOST

UNREADABLE: Final = 2
SECRETS: Final = {
    "added": "has a secret now",
    "changed": "is encrypted anew: only the engine can say if it changed",
    "moved": "has a secret that stood at another key",
    "removed": "has no secret any more",
}
_GONE: Final = (
    "Pulumi.{0}.yaml is gone: nothing of the stack is removed by that. To remove what it made,"
    " run this where the file still is: fleet destroy --stack {0}"
)
_BESIDE: Final = "changes, from which the engine takes more than a plan shows: read it in the file"


@dataclass(frozen=True)
class DiffReport:
    """The result for a reviewer. `now` is None where the work tree has no file for the stack.

    `note` says why there are not two plans to compare. `secrets` are the keys whose secret is not
    the base's, each with a word of SECRETS.
    """

    stack: str
    base: Base
    now: offline.Plan | None
    note: str = ""
    changes: Sequence[Change] = ()
    summary: Summary = field(default_factory=Summary)
    secrets: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0 nothing changes, 1 refused, or no plan at the base, 2 unreadable, 3 differs."""
        if self.now is not None and self.now.exit_code:
            return self.now.exit_code
        differs = self.note or self.secrets or self.summary.parts
        return 1 if self.base.error else 3 if differs else 0

    @property
    def verdict(self) -> str:
        """The result in a few words: `refused`, `nothing changes`, `1 lost, 2 changed`."""
        if self.now is not None and self.now.exit_code:
            return "refused"
        if self.note and not self.base.is_new:
            return "not compared"
        secrets = [counted(len(self.secrets), "secret", "differs")] if self.secrets else []
        return ", ".join(filter(None, [str(self.summary), *secrets])) or "nothing changes"

    def record(self) -> dict[str, Any]:
        """The diff's JSON."""
        return {
            "stack": self.stack,
            "base": {"ref": self.base.ref, "commit": self.base.commit, "error": self.base.error},
            "same": self.exit_code == 0,
            "note": self.note,
            **self.summary.record(),
            "secrets": dict(self.secrets),
            "resources": [change.record() for change in self.changes],
            "problems": [problem.record() for problem in self.now.problems] if self.now else [],
        }


def compare(stack: str, ref: str, root: Path = ROOT) -> DiffReport:
    """The diff of a stack of the project in `root` against a commit of its repository.

    Raises UserError where `ref` is no commit, or neither side has the stack.
    """
    file = root / f"Pulumi.{stack}.yaml"
    with planning(root, ref, stack) as planned:
        now = offline.plan(stack, file) if file.exists() else None
        base = planned()
    if now is None and base.is_new:
        raise UserError(f"there is no Pulumi.{stack}.yaml, neither here nor at {ref}")
    return report(base, now, file)


def report(base: Base, now: offline.Plan | None, file: Path) -> DiffReport:
    """The diff of a base against the plan of a stack file."""
    stack = now.stack if now else file.name.split(".")[1]
    if now is None:
        return DiffReport(stack, base, None, _GONE.format(stack))
    here = encrypted(file)
    now = replace(now, problems=(*now.problems, *moved(base.secrets, here)))
    result = DiffReport(stack, base, now, secrets=_secrets(base.secrets, here, file.name))
    if base.error:
        return replace(result, note=f"There is no plan at {base.at}: {base.error}")
    if not now.resources:
        return replace(result, note="The rules refuse the stack as it is now: there is no plan.")
    note = f"The stack is new: at {base.at} it has no file." if base.is_new else ""
    changes = difference(base.resources, now.resources)
    refused = refusals(stack, file, base.resources) if base.resources and now.ok else []
    summary = of_changes(changes, refused)
    keys = sorted(dict((base.beside or {}).items() ^ beside(file).items()))
    more = tuple(Item(HOST, f"{file.name} {key}", _BESIDE) for key in keys)
    summary = replace(summary, changed=more + summary.changed)
    return replace(result, note=note, changes=changes, summary=summary)


def _secrets(before: Iterable[Encrypted], now: Iterable[Encrypted], file: str) -> dict[str, str]:
    """Each key of a file whose secret differs, and how, by a word of SECRETS."""
    old = {secret.path: secret.content for secret in before if secret.file == file}
    new = {secret.path: secret.content for secret in now}
    differ = {
        **dict.fromkeys(old.keys() - new.keys(), "removed"),
        **dict.fromkeys(new.keys() - old.keys(), "added"),
        **{key: "changed" for key in new.keys() & old.keys() if old[key] != new[key]},
        **{finding.path: "moved" for finding in moved(before, now)},
    }
    return dict(sorted(differ.items()))


def refusals(stack: str, file: Path, resources: Sequence[Registered]) -> list[Item]:
    """Refusals of an update that no plan shows: an update starts from what is deployed.

    The rules judge a stack file where these resources of a plan run now.
    """
    deployed = of_resources((each.urn, each.type, each.inputs) for each in resources)
    verdict = validation.validate(read(file), deployed, facts_beside(file))
    problems = verdict.refused
    problems += validation.removal_findings(verdict, deployed.urns, stack)
    return [Item(HOST, each.subject, f"{each.message} [{each.check}]") for each in problems]
