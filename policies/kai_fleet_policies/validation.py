"""The gate in front of a program: its settings, once no rule has anything against their fleet."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

import pulumi

from kai_fleet.deployed import Deployed
from kai_fleet.fleet.model import DeclaredCluster, Fleet
from kai_fleet.fleet.pod_templates import workloads
from kai_fleet.fleet.pods import PodTemplate
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.fleet.team_stack import queue_path
from kai_fleet.settings import (
    Loaded,
    Mistake,
    Settings,
    key_path,
    load,
    parsed,
    read_config,
    secrets,
)
from kai_fleet.settings.files.project import ROOT
from kai_fleet.settings.mistakes import within
from kai_fleet.settings.team_stack import (
    FactsOf,
    NoPlatformError,
    is_team_stack,
    load_team_stack,
)
from kai_fleet.wording import counted
from kai_fleet_policies import rules
from kai_fleet_policies.problem import Level, Problem, mandatory, told_once
from kai_fleet_policies.rules import Rule

_OF_TEAM_STACK: Final = tuple(
    key_path((key,)) for key in ("team", "cluster", "platform", "workloads")
)
CONFIG_RULE: Final = "config"
REMOVAL_RULE: Final = "team-removal"
# Names of teams, with commas between: for one run, in place of kai-fleet:removed in the file.
REMOVE_VARIABLE: Final = "KAI_FLEET_REMOVE_TEAM"


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


def no_platform(stack: str) -> NoReturn:
    """The answer where no platform is looked up."""
    raise NoPlatformError(f"is {stack}, which is not looked up here")


def validate(
    raw: Mapping[str, Any],
    deployed: Deployed | None = None,
    facts_of: FactsOf = no_platform,
    *,
    written: Mapping[str, Any] | None = None,
    more: Iterable[Mistake] = (),
    only: Sequence[Rule] = rules.RULES,
) -> SettingsVerdict:
    """Types and rules in one report, so that one edit can put everything right.

    Where a key is wrong, no rule is asked.
    `facts_of` gives the platform of a team stack. `written` is what `raw` is with its secrets
    masked, where it has them decrypted: nothing, where no file has them. `more` are mistakes of the
    reading. `only` are the rules to apply.
    """
    loaded = _loaded(raw, facts_of)
    written, hidden = (raw, False) if written is None else (written, not written)
    problems = as_problems([*more, *secrets.mistakes(written), *loaded.mistakes])
    if loaded.settings is not None and not loaded.mistakes:
        fleet = fleet_of(loaded.settings, deployed, hidden=hidden)
        problems += of_own_file(fleet, rules.check(judged_clusters(fleet), only))
    return SettingsVerdict(loaded.settings, tuple(told_once(problems)), loaded.dropped)


def validate_types(raw: Mapping[str, Any], facts_of: FactsOf = no_platform) -> SettingsVerdict:
    """What the types say, without the rules: for a command that declares nothing."""
    loaded = _loaded(raw, facts_of)
    return SettingsVerdict(loaded.settings, tuple(as_problems(loaded.mistakes)), loaded.dropped)


def _loaded(raw: Mapping[str, Any], facts_of: FactsOf) -> Loaded:
    return load_team_stack(raw, facts_of) if is_team_stack(raw) else load(raw)


def as_problems(mistakes: Iterable[Mistake]) -> list[Problem]:
    """Mistakes of a file as what stops a preview."""
    return [
        mandatory(f"key {re.split('[:.]', it.path)[-1]}", it.path, it.message, CONFIG_RULE)
        for it in mistakes
    ]


def judged_clusters(fleet: Fleet) -> list[DeclaredCluster]:
    """The host first, then the vClusters with a scheduler of their own, then those with workloads
    that the host's scheduler places.
    """
    own, placed_by_host = [], []
    for name, team in fleet.teams.items():
        inside = replace(team.inside, workloads=tuple(_pod_templates(fleet, name)))
        if team.kai:
            own.append(inside)
        elif inside.workloads:
            host = fleet.host if team.mode == "host" else None
            placed_by_host.append(replace(inside, scheduled_by=host, team_queue=team.queue))
    return [fleet.host, *own, *placed_by_host]


def _pod_templates(fleet: Fleet, team: str) -> Iterator[PodTemplate]:
    files = fleet.workloads.get(team)
    for number, documents in enumerate(files.values() if files else ()):
        path = f"{key_path(('workloads', team))}[{number}]"
        for manifest in documents:
            kind, name = manifest["kind"], manifest["metadata"]["name"]
            yield from workloads(kind, manifest, name, path)


def of_own_file(fleet: Fleet, problems: list[Problem]) -> list[Problem]:
    """The problems of the stack's own file: in a team stack those of the platform are the
    platform's to report, and the sums of the granted queue are the team's too.
    """
    if not fleet.platform:
        return problems
    (team,) = fleet.teams.values()
    granted = queue_path(team.parent_queue or "")
    own = []
    for problem in problems:
        if problem.path.startswith(f"{granted}."):
            problem = replace(problem, path=f"{team.path}.queues")
        if any(f"{problem.path}.".startswith(f"{key}.") for key in _OF_TEAM_STACK):
            own.append(problem)
    return own


def unnamed_removals(
    verdict: SettingsVerdict, deployed: Iterable[str], granted: Iterable[str] = ()
) -> list[str]:
    """The deployed teams that a run would remove without being told to; of `granted` ones, which
    have a stack of their own, their namespaces.

    A team goes with its vCluster and its volumes: a cut file or a bad merge is not enough for that.
    None that the file may have in a part that could not be read.
    """
    settings = verdict.settings
    if settings is None or within(key_path(("removed",)), verdict.dropped):
        return []
    named = {name.strip() for name in os.environ.get(REMOVE_VARIABLE, "").split(",")}
    gone = (set(deployed) - settings.teams.keys()) | (set(granted) - settings.team_stacks.keys())
    return [
        name
        for name in sorted(gone - named - set(settings.removed))
        if not any(within(key_path((it, name)), verdict.dropped) for it in ("teams", "teamStacks"))
    ]


def removal_problems(verdict: SettingsVerdict, deployed: Deployed, stack: str) -> list[Problem]:
    """One for each of them; `stack` is where they are deployed."""
    return [
        mandatory(
            f"team {name}",
            key_path(("teams", name)),
            "is deployed and not in the file any more: its vCluster, its pods and its volumes would"
            f" go. Put it back, or name it: kai-fleet:removed: [{name}] in the file, or for one run"
            f" .venv/bin/fleet up --stack {stack} --remove-team {name}, or"
            f" {REMOVE_VARIABLE}={name} for plain pulumi",
            REMOVAL_RULE,
        )
        for name in unnamed_removals(verdict, deployed.teams, deployed.granted)
    ]


def checked_settings(deployed: Deployed, facts_of: FactsOf) -> Settings:
    """The running program's settings; advisories are shown as warnings.

    Raises pulumi.RunError with the whole report where a rule refuses them, or the removal of a
    team that is deployed.
    """
    raw, decrypted, mistakes = read_config()
    file = ROOT / f"Pulumi.{pulumi.get_stack()}.yaml"
    mistakes += secrets.copies(file)
    written = secrets.as_written(raw, decrypted, file)
    verdict = validate(raw, deployed, facts_of, written=written, more=mistakes)
    for problem in verdict.problems:
        if problem.level is Level.ADVISORY:
            pulumi.log.warn(str(problem))
    refused = verdict.refused
    if verdict.settings is not None:
        refused += removal_problems(verdict, deployed, pulumi.get_stack())
    if refused or verdict.settings is None:
        raise pulumi.RunError(report(refused))
    return verdict.settings


def secret_problems(stack: str, config: Mapping[str, str], keys: Iterable[str]) -> list[Problem]:
    """What is wrong with the secrets of a stack of this project, whatever program it runs.

    `config` is as the engine decrypted it, `keys` are those with something to decrypt.
    """
    file = ROOT / f"Pulumi.{stack}.yaml"
    decrypted = parsed(dict.fromkeys(keys)).keys()
    written = secrets.as_written(parsed(config), decrypted, file)
    return as_problems([*secrets.copies(file), *secrets.mistakes(written)])


def report(problems: list[Problem]) -> str:
    """Every problem on its line, under one heading."""
    lines = [f"  {problem}" for problem in problems]
    head = f"the stack's configuration has {counted(len(problems), 'mistake')}:"
    return "\n".join([head, *lines])
