"""The offline plan: what a stack declares, and what the rules say; no engine, no cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pulumi
import pydantic_core

from kai_fleet.finding import Finding, Level
from kai_fleet.settings import Settings, secrets
from kai_fleet.settings.team_stack import FactsOf, platform_of
from kai_fleet.wording import counted
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.plan.picture import as_declared
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies import rules, validation
from kai_fleet_policies.adapters import from_resources, keys

UNSEEN: Final = "Not looked at: the cluster's nodes, GPUs, classes, version, network. Preview does."


@dataclass(frozen=True)
class Plan:
    """The plan of a stack. `exit_code` is 0 fine, 1 refused by a rule, 2 unreadable."""

    stack: str
    resources: tuple[Registered, ...] = ()
    problems: tuple[Finding, ...] = ()
    unreadable: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing stops a preview; advisories do not."""
        return not any(p.level is Level.MANDATORY for p in self.problems)

    @property
    def counts(self) -> str:
        """`27 resources, 0 problems, 1 warning`."""
        refused = sum(p.level is Level.MANDATORY for p in self.problems)
        warned = len(self.problems) - refused
        counts = {"resource": len(self.resources), "problem": refused, "warning": warned}
        return ", ".join(counted(number, thing) for thing, number in counts.items())

    @property
    def exit_code(self) -> int:
        """The exit code, for the shell and for CI."""
        return 2 if self.unreadable else int(not self.ok)

    def json(self) -> str:
        """The same bytes for the same stack file on every machine."""
        record = {
            "stack": self.stack,
            "ok": self.ok,
            "resources": self.resources,
            "problems": [problem.record() for problem in self.problems],
        }
        # Python's own writer is slow where it indents.
        return pydantic_core.to_json(record, indent=2).decode()


def plan(stack: str, file: Path | None = None) -> Plan:
    """The plan of a stack, from its own file or another one.

    The rules run twice: on the settings, where a refusal can name the key to edit, and on the
    declared resources, which is what the policy pack will see.
    """
    try:
        path = file or reading.path_of(stack)
        raw = reading.read(path)
    except UserError as why:
        name = file.name if file else f"Pulumi.{stack}.yaml"
        problem = Finding(Level.MANDATORY, name, "stack", stack, str(why), "", "config-readable")
        return Plan(stack, problems=(problem,), unreadable=True)
    planned = plan_settings(raw, stack, reading.facts_beside(path), secrets.copies(path))
    unread = reading.from_environment(path)
    if unread is None:
        return planned
    if not planned.ok:
        unread = replace(unread, level=Level.MANDATORY)
    # What is missing may be in there.
    others = (each for each in planned.problems if not each.cause.startswith("is missing"))
    return replace(planned, problems=(unread, *others))


def plan_settings(
    raw: Mapping[str, Any],
    stack: str = "plan",
    facts_of: FactsOf = validation.no_platform,
    more: Iterable[Finding] = (),
) -> Plan:
    """The plan of the settings of a stack file: `{"cluster": {…}, "teams": {…}}`.

    `facts_of` gives the facts of a team stack's platform; `more` are findings about the file.
    """
    verdict = validation.validate(raw, facts_of=facts_of, stack=stack, more=more)
    if verdict.refused:
        return Plan(stack, problems=verdict.problems)
    platform = platform_of(raw)
    facts = facts_of(platform).output() if platform else None
    try:
        resources = recorder.record(stack, raw, facts)
    except pulumi.RunError as why:  # what the program itself refuses, as the engine would say it
        problem = Finding(Level.MANDATORY, "", "stack", stack, str(why), check="program")
        return Plan(stack, problems=(*verdict.problems, problem))
    # What the policy pack finds in the resources, without what is known already.
    seen = {(problem.check, problem.subject) for problem in verdict.findings}
    found = (
        replace(problem, path=key_of(problem.path, verdict.settings))
        for problem in rules.check(from_resources.clusters(as_declared(resources)))
        if (problem.check, problem.subject) not in seen and not problem.undecided
    )
    return Plan(stack, tuple(resources), (*verdict.problems, *found))


def key_of(urn: str, settings: Settings | None) -> str:
    """The key of the stack file for what a resource declares; the URN where none has it."""
    if settings is None:
        return keys.key_of(urn, {})
    teams = (*settings.teams, *settings.team_stacks)
    return keys.key_of(urn, {team: settings.team_path(team) for team in teams})
