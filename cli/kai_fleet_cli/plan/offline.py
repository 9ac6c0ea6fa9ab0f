"""The offline plan: the resources that a stack declares, and the findings of the rules.

It needs no engine, no cluster and no network.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pulumi
import pydantic_core

from kai_fleet.wording import number_with_noun
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.plan.picture import as_declared
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies import rules
from kai_fleet_policies.adapters import from_resources, keys
from kai_fleet_policies.finding import Finding, Level
from kai_fleet_stack import validation
from kai_fleet_stack.settings import Settings, secrets
from kai_fleet_stack.settings.team_stack import FactsOf, platform_of

UNSEEN = "Not looked at: the cluster's nodes, GPUs, classes, version, network. Preview does."


@dataclass(frozen=True)
class Plan:
    """The plan of a stack.

    `resources` are empty where a rule about settings or the program refuses the settings, or where
    the file cannot be read (`unreadable`). `problems` are the findings, with advisory ones among
    them.
    """

    stack: str
    resources: tuple[Registered, ...] = ()
    problems: tuple[Finding, ...] = ()
    unreadable: bool = False

    @property
    def ok(self) -> bool:
        """Whether no finding is mandatory: a preview would pass. Advisories do not count."""
        return not any(problem.level is Level.MANDATORY for problem in self.problems)

    @property
    def counts(self) -> str:
        """The sizes of the plan: `27 resources, 0 problems, 1 warning`.

        Problems are the mandatory findings, warnings all others.
        """
        mandatory = sum(problem.level is Level.MANDATORY for problem in self.problems)
        resources = number_with_noun(len(self.resources), "resource")
        problems = number_with_noun(mandatory, "problem")
        warnings = number_with_noun(len(self.problems) - mandatory, "warning")
        return f"{resources}, {problems}, {warnings}"

    @property
    def exit_code(self) -> int:
        """The exit code of `fleet plan`: 0 fine, 1 refused, 2 unreadable."""
        if self.unreadable:
            return 2
        return 0 if self.ok else 1

    def json(self) -> str:
        """The plan as JSON, indented, with the keys `stack`, `ok`, `resources` and `problems`.

        The same on every machine for the same stack file; but rules about the support of versions
        read today's date.
        """
        record = {
            "stack": self.stack,
            "ok": self.ok,
            "resources": self.resources,
            "problems": [problem.record() for problem in self.problems],
        }
        # Python's own writer is slow where it indents.
        return pydantic_core.to_json(record, indent=2).decode()


def plan(stack: str, file: Path | None = None) -> Plan:
    """The plan of a stack, from `Pulumi.STACK.yaml` or from another file.

    If `stack` is no stack's name, which does not matter with a `file`, or if `reading.read` refuses
    the file, the plan is unreadable, with one mandatory finding. If the file takes values from
    Pulumi ESC, which only the engine reads, a finding says so: advisory, or mandatory where
    something else is wrong. Missing keys are then not reported: ESC may have them.

    Sets Pulumi's SDK for the whole process, and raises exceptions of the program, as
    `plan_settings` does.
    """
    try:
        path = file or reading.path_of(stack)
        raw = reading.read(path)
    except UserError as why:
        unreadable = Finding(
            Level.MANDATORY,
            path=file.name if file else f"Pulumi.{stack}.yaml",
            kind="stack",
            name=stack,
            cause=str(why),
            check="config-readable",
        )
        return Plan(stack, problems=(unreadable,), unreadable=True)
    planned = plan_settings(
        raw, stack, reading.facts_beside(path), secrets.copied_ciphertexts(path)
    )
    unread = reading.esc_finding(path)
    if unread is None:
        return planned
    if not planned.ok:
        unread = replace(unread, level=Level.MANDATORY)
    others = [found for found in planned.problems if not found.cause.startswith("is missing")]
    return replace(planned, problems=(unread, *others))


def plan_settings(
    raw: Mapping[str, object],
    stack: str = "plan",
    facts_of: FactsOf = validation.no_platform,
    more: Iterable[Finding] = (),
) -> Plan:
    """The plan of the settings of a stack file: `{"cluster": {…}, "teams": {…}}`.

    The rules run twice: on the settings, where a finding names the key to edit, and on the declared
    resources, as the policy pack reads them. A refusal of the first run ends the plan there.

    Args:
        raw: The `kai-fleet:` keys of the file, without that prefix.
        stack: Name of the stack.
        facts_of: Gives the facts of a team stack's platform, by the name of the platform's stack.
        more: Findings about the file itself.

    A `pulumi.RunError` of the program is a finding. Raises any other exception of it. Sets Pulumi's
    SDK for the whole process, as `recorder.record` does.
    """
    verdict = validation.validate(
        raw,
        facts_of=facts_of,
        stack=stack,
        more=more,
    )
    if verdict.refused:
        return Plan(stack, problems=verdict.problems)
    platform = platform_of(raw)
    facts = facts_of(platform).output() if platform else None
    try:
        resources = recorder.record(stack, raw, facts)
    except pulumi.RunError as why:  # the program refuses its settings, in the engine's words
        refusal = Finding(
            Level.MANDATORY,
            path="",
            kind="stack",
            name=stack,
            cause=str(why),
            check="program",
        )
        return Plan(stack, problems=(*verdict.problems, refusal))
    more_problems = _problems_of_resources(resources, verdict)
    return Plan(stack, tuple(resources), (*verdict.problems, *more_problems))


def _problems_of_resources(
    resources: Iterable[Registered], verdict: validation.SettingsVerdict
) -> list[Finding]:
    """The findings of the policy pack that the settings' verdict does not have, at the keys of the
    stack file.

    Findings about the same subject by the same check as one of the verdict's are left out, and so
    are undecided ones: only an update decides them.
    """
    reported = {(problem.check, problem.subject) for problem in verdict.findings}
    return [
        replace(problem, path=key_of(problem.path, verdict.settings))
        for problem in rules.check(from_resources.clusters(as_declared(resources)))
        if not problem.undecided and (problem.check, problem.subject) not in reported
    ]


def key_of(urn: str, settings: Settings | None) -> str:
    """The key of the stack file that declares a resource; the URN itself if no key does.

    Without settings, None, keys of teams are not found.
    """
    if settings is None:
        return keys.key_of(urn, {})
    teams = [*settings.teams, *settings.team_stacks]
    return keys.key_of(urn, {team: settings.team_path(team) for team in teams})
