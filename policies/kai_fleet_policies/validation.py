"""The gate in front of a program: its settings, once no rule has anything against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import pulumi

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.settings import Loaded, Mistake, Settings, key_path, load, read_config
from kai_fleet.settings.files.clear_secrets import in_clear
from kai_fleet.settings.platform_facts import NoPlatform
from kai_fleet.settings.sections.sources import ENCRYPTED
from kai_fleet.settings.tenant import FactsOf, is_team_stack, load_tenant
from kai_fleet.state.deployed_state import DeployedState
from kai_fleet_policies import rules
from kai_fleet_policies.adapters import from_fleet
from kai_fleet_policies.problem import Level, Problem, mandatory
from kai_fleet_policies.rules import Rule
from kai_fleet_policies.stack import left_out_quotas, sandbox_variables, unnamed_removals

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


def validate(
    raw: Mapping[str, Any],
    deployed: DeployedState | None = None,
    facts_of: FactsOf = _nobody,
    *,
    encrypted: frozenset[str] = frozenset(),
    more: Iterable[Mistake] = (),
    only: Sequence[Rule] = rules.RULES,
) -> Verdict:
    """Types and rules in one report, so that one edit can put everything right.

    Where a key is wrong the rules are still asked about the rest, but not about what the wrong
    key touches. `facts_of` tells a team stack of its platform; nobody else asks it. `encrypted` are
    the keys with encrypted values, where `raw` has them decrypted; `more` are mistakes that were
    found before. `only` are the rules that are asked.
    """
    loaded = _loaded(raw, facts_of)
    problems = _problems([*more, *in_clear(raw, encrypted), *loaded.mistakes])
    if loaded.settings is not None:
        for problem in _said(loaded.settings, deployed, only, hidden=bool(encrypted)):
            touched = any(
                f"{problem.path}.".startswith(f"{path}.") or path.startswith(f"{problem.path}.")
                for path in loaded.dropped
            )
            if not (loaded.dropped and (touched or problem.rule in _NEED_ALL_AMOUNTS)):
                problems.append(problem)
    return Verdict(loaded.settings, tuple(problems))


def validate_types(raw: Mapping[str, Any], facts_of: FactsOf = _nobody) -> Verdict:
    """What the types say alone, for who does not make anything of these settings."""
    loaded = _loaded(raw, facts_of)
    return Verdict(loaded.settings, tuple(_problems(loaded.mistakes)))


def _loaded(raw: Mapping[str, Any], facts_of: FactsOf) -> Loaded:
    return load_tenant(raw, facts_of) if is_team_stack(raw) else load(raw)


def _problems(found: Iterable[Mistake]) -> list[Problem]:
    return [
        mandatory(CONFIG_RULE, f"key {_last(mistake.path)}", mistake.path, mistake.message)
        for mistake in found
    ]


def _said(
    settings: Settings, deployed: DeployedState | None, only: Sequence[Rule], *, hidden: bool
) -> list[Problem]:
    fleet = fleet_of(settings, deployed, hidden=hidden)
    return from_fleet.about_stack(fleet, rules.check(from_fleet.clusters(fleet), only))


def checked_settings(deployed: DeployedState, facts_of: FactsOf, whole: bool = True) -> Settings:
    """The running program's settings; advisories are shown as warnings.

    `whole`: the run is about the whole stack, so that it removes what is not declared.

    Raises pulumi.RunError with the whole report where a rule refuses them, or the way to them
    from what the stack runs now.
    """
    raw, encrypted, wrong = read_config()
    if "sources" in encrypted:
        wrong.append(Mistake(key_path(("sources",)), ENCRYPTED))
    verdict = validate(raw, deployed, facts_of, encrypted=encrypted, more=wrong)
    changed = []
    if verdict.settings is not None:
        changed = left_out_quotas.problems(verdict.settings, deployed.queues)
    for problem in (*verdict.problems, *changed):
        if problem.level is Level.ADVISORY:
            pulumi.log.warn(str(problem))
    refused = verdict.refused
    if verdict.settings is not None:
        refused += sandbox_variables.problems(verdict.settings)
    if whole and verdict.settings is not None:
        refused += unnamed_removals.problems(verdict.settings, deployed.teams)
    if refused or verdict.settings is None:
        raise pulumi.RunError(report(refused))
    return verdict.settings


def _last(path: str) -> str:
    return path.replace(":", ".").rsplit(".", 1)[-1]


def report(problems: list[Problem]) -> str:
    """Every problem on its line, under one heading."""
    count = f"{len(problems)} mistake{'s' if len(problems) != 1 else ''}"
    lines = [f"  {problem}" for problem in problems]
    return "\n".join([f"the stack's configuration has {count}:", *lines])
