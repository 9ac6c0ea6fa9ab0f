"""The offline plan: what a stack declares, and what the rules say; no engine, no cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pydantic_core
import yaml

from components.settings.tenant import platform_of
from fleet import recording, stack_file
from fleet.picture import as_declared
from fleet.platform_file import facts_beside
from fleet.recording import Registered
from policies import declared, gate, rules
from policies.problem import Level, Problem, mandatory

FINE: Final = 0
REFUSED: Final = 1
UNREADABLE: Final = 2


@dataclass(frozen=True)
class Plan:
    """What a stack would make. `exit_code` is 0 fine, 1 refused by a rule, 2 unreadable."""

    stack: str
    resources: tuple[Registered, ...] = ()
    problems: tuple[Problem, ...] = ()
    unreadable: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing stops a preview; advisories do not."""
        return not any(p.level is Level.MANDATORY for p in self.problems)

    @property
    def exit_code(self) -> int:
        """For the shell, and for CI."""
        if self.unreadable:
            return UNREADABLE
        return FINE if self.ok else REFUSED

    def record(self) -> dict[str, Any]:
        """The plan's JSON: the same bytes for the same stack file on every machine."""
        return {
            "stack": self.stack,
            "ok": self.ok,
            "resources": [resource.record() for resource in self.resources],
            "problems": [problem.record() for problem in self.problems],
        }

    def json(self) -> str:
        """The record as text, by pydantic's writer: Python's own is slow where it indents."""
        return pydantic_core.to_json(self.record(), indent=2).decode()

    def yaml(self) -> str:
        """The record as YAML: the same data in the same order, without anchors or line breaks."""
        fresh = json.loads(self.json())  # what is shared between resources would become an anchor
        return yaml.safe_dump(fresh, sort_keys=False, allow_unicode=True, width=10**6)


def plan(stack: str, file: Path | None = None) -> Plan:
    """The plan of a stack, from its own file or another one.

    The rules are asked twice: about the settings, where a refusal can name the key to edit, and
    about the declared resources, which is what the policy pack will see.
    """
    path = file or stack_file.path_of(stack)
    try:
        raw = stack_file.read(path)
    except stack_file.Unreadable as why:
        problem = mandatory("config-readable", f"stack {stack}", path.name, str(why))
        return Plan(stack, problems=(problem,), unreadable=True)
    facts_of = facts_beside(path)
    verdict = gate.judge(raw, facts_of=facts_of)
    if verdict.refused:
        return Plan(stack, problems=verdict.problems)
    platform = platform_of(raw)
    resources = recording.record(stack, raw, facts_of(platform).output() if platform else None)
    seen = {(problem.rule, problem.subject) for problem in verdict.problems}
    more = [
        problem
        for problem in rules.check(declared.clusters(as_declared(resources)))
        if (problem.rule, problem.subject) not in seen and not problem.undecided
    ]
    return Plan(stack, tuple(resources), (*verdict.problems, *more))
