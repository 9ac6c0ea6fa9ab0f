"""The gate in front of a program: its settings, once no rule has anything against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import pulumi

from components.past import Past
from components.settings import Loaded, Settings, load, read_config
from components.settings.platform_facts import NoPlatform
from components.settings.tenant import FactsOf, Tenant, is_team_stack, load_tenant
from policies import configured, configured_tenant, rules
from policies.problem import Level, Problem, mandatory

CONFIG_RULE: Final = "config"
# Sums are wrong where an amount had to be left out.
_NEED_ALL_AMOUNTS: Final = frozenset({"queue-quota", "queue-zero-quota"})


@dataclass(frozen=True)
class Verdict:
    """The settings of a stack, and everything that is wrong or doubtful about them."""

    settings: Settings | None
    problems: tuple[Problem, ...]

    @property
    def refused(self) -> list[Problem]:
        """The problems that stop a preview."""
        return [p for p in self.problems if p.level is Level.MANDATORY]


def _nobody(stack: str) -> NoReturn:
    raise NoPlatform(f"is {stack}, which is not looked up here")


def judge(raw: Mapping[str, Any], past: Past | None = None, facts_of: FactsOf = _nobody) -> Verdict:
    """Types and rules in one report, so that one edit can put everything right.

    Where a key is wrong the rules are still asked about the rest, but not about what the wrong
    key touches. `facts_of` tells a team stack of its platform; nobody else asks it.
    """
    loaded = _loaded(raw, facts_of)
    problems = _mistakes(loaded)
    if loaded.settings is not None:
        for problem in _said(loaded.settings, past):
            touched = any(
                f"{problem.path}.".startswith(f"{path}.") or path.startswith(f"{problem.path}.")
                for path in loaded.dropped
            )
            if not (loaded.dropped and (touched or problem.rule in _NEED_ALL_AMOUNTS)):
                problems.append(problem)
    return Verdict(loaded.settings, tuple(problems))


def typed(raw: Mapping[str, Any], facts_of: FactsOf = _nobody) -> Verdict:
    """What the types say alone, for who does not make anything of these settings."""
    loaded = _loaded(raw, facts_of)
    return Verdict(loaded.settings, tuple(_mistakes(loaded)))


def _loaded(raw: Mapping[str, Any], facts_of: FactsOf) -> Loaded:
    return load_tenant(raw, facts_of) if is_team_stack(raw) else load(raw)


def _mistakes(loaded: Loaded) -> list[Problem]:
    return [
        mandatory(CONFIG_RULE, f"key {_last(mistake.path)}", mistake.path, mistake.message)
        for mistake in loaded.mistakes
    ]


def _said(settings: Settings, past: Past | None) -> list[Problem]:
    if isinstance(settings, Tenant):
        found = rules.check(configured_tenant.clusters(settings, past))
        return configured_tenant.about_team(settings, found)
    return rules.check(configured.clusters(settings, past))


def checked_settings(past: Past, facts_of: FactsOf) -> Settings:
    """The running program's settings; advisories are shown as warnings.

    Raises pulumi.RunError with the whole report where a rule refuses them, or the way to them
    from what the stack runs now.
    """
    verdict = judge(read_config(), past, facts_of)
    for problem in verdict.problems:
        if problem.level is Level.ADVISORY:
            pulumi.log.warn(str(problem))
    if verdict.refused or verdict.settings is None:
        raise pulumi.RunError(report(verdict.refused))
    return verdict.settings


def _last(path: str) -> str:
    return path.replace(":", ".").rsplit(".", 1)[-1]


def report(problems: list[Problem]) -> str:
    """Every problem on its line, under one heading."""
    count = f"{len(problems)} mistake{'s' if len(problems) != 1 else ''}"
    lines = [f"  {problem}" for problem in problems]
    return "\n".join([f"the stack's configuration has {count}:", *lines])
