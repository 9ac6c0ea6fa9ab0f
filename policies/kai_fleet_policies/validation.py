"""The gate in front of a program: its settings, once no rule has anything against them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import pulumi

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.settings import Loaded, Mistake, Settings, key_path, load, read_config
from kai_fleet.settings.files.clear_secrets import in_clear
from kai_fleet.settings.platform_facts import NoPlatformError
from kai_fleet.settings.sections.platform import ENCRYPTED
from kai_fleet.settings.tenant import FactsOf, is_team_stack, load_tenant
from kai_fleet.state.deployed_state import DeployedState
from kai_fleet_policies import partly_read, rules, unnamed_removals
from kai_fleet_policies.adapters import from_fleet
from kai_fleet_policies.rules import Rule
from kubectl_fleet.rules.problem import Level, Problem, mandatory, told_once
from kubectl_fleet.wording import counted

CONFIG_RULE: Final = "config"


@dataclass(frozen=True)
class SettingsVerdict:
    """The settings of a stack, and everything that is wrong or doubtful about them.

    `dropped` are the key paths that the settings lack because of a mistake.
    """

    settings: Settings | None
    problems: tuple[Problem, ...]
    dropped: tuple[str, ...] = ()

    @property
    def refused(self) -> list[Problem]:
        """The problems that stop a preview."""
        return [p for p in self.problems if p.level is Level.MANDATORY]


def _no_platform(stack: str) -> NoReturn:
    raise NoPlatformError(f"is {stack}, which is not looked up here")


def validate(
    raw: Mapping[str, Any],
    deployed: DeployedState | None = None,
    facts_of: FactsOf = _no_platform,
    *,
    encrypted: frozenset[str] = frozenset(),
    more: Iterable[Mistake] = (),
    only: Sequence[Rule] = rules.RULES,
) -> SettingsVerdict:
    """Types and rules in one report, so that one edit can put everything right.

    Where a key is wrong the rules still judge the rest (`partly_read`).
    `facts_of` gives the platform of a team stack. `encrypted` are the keys with encrypted values,
    where `raw` has them decrypted; `more` are mistakes of the reading. `only` are the rules to
    apply.
    """
    loaded = _loaded(raw, facts_of)
    problems = _as_problems([*more, *in_clear(raw, encrypted), *loaded.mistakes])

    def judge(settings: Settings) -> list[Problem]:
        return _judge(settings, deployed, only, hidden=bool(encrypted))

    problems += partly_read.judged(raw, loaded, judge)
    return SettingsVerdict(loaded.settings, tuple(told_once(problems)), loaded.dropped)


def validate_types(raw: Mapping[str, Any], facts_of: FactsOf = _no_platform) -> SettingsVerdict:
    """What the types say, without the rules: for a command that declares nothing."""
    loaded = _loaded(raw, facts_of)
    return SettingsVerdict(loaded.settings, tuple(_as_problems(loaded.mistakes)), loaded.dropped)


def _loaded(raw: Mapping[str, Any], facts_of: FactsOf) -> Loaded:
    return load_tenant(raw, facts_of) if is_team_stack(raw) else load(raw)


def _as_problems(mistakes: Iterable[Mistake]) -> list[Problem]:
    return [
        mandatory(f"key {_last(mistake.path)}", mistake.path, mistake.message, CONFIG_RULE)
        for mistake in mistakes
    ]


def _judge(
    settings: Settings, deployed: DeployedState | None, only: Sequence[Rule], *, hidden: bool
) -> list[Problem]:
    fleet = fleet_of(settings, deployed, hidden=hidden)
    return from_fleet.about_stack(fleet, rules.check(from_fleet.clusters(fleet), only))


def checked_settings(deployed: DeployedState, facts_of: FactsOf, whole: bool = True) -> Settings:
    """The running program's settings; advisories are shown as warnings.

    `whole`: the run is about the whole stack, so that it removes what is not declared.

    Raises pulumi.RunError with the whole report where a rule refuses them, or the removal of a
    team that is deployed.
    """
    raw, encrypted, mistakes = read_config()
    if "sources" in encrypted:
        mistakes.append(Mistake(key_path(("sources",)), ENCRYPTED))
    verdict = validate(raw, deployed, facts_of, encrypted=encrypted, more=mistakes)
    for problem in verdict.problems:
        if problem.level is Level.ADVISORY:
            pulumi.log.warn(str(problem))
    refused = verdict.refused
    if whole and verdict.settings is not None:
        refused += unnamed_removals.problems(verdict, deployed.teams, pulumi.get_stack())
    if refused or verdict.settings is None:
        raise pulumi.RunError(report(refused))
    return verdict.settings


def _last(path: str) -> str:
    return path.replace(":", ".").rsplit(".", 1)[-1]


def report(problems: list[Problem]) -> str:
    """Every problem on its line, under one heading."""
    lines = [f"  {problem}" for problem in problems]
    head = f"the stack's configuration has {counted(len(problems), 'mistake')}:"
    return "\n".join([head, *lines])
