"""The gate in front of a program: its settings, once no rule has anything against its clusters."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

import pulumi

from kai_fleet.agreed import REMOVE_VARIABLE, named_losses
from kai_fleet.deployed import Deployed, names_of
from kai_fleet.finding import Finding, Level
from kai_fleet.names import TEAM, TEAM_NAMESPACE
from kai_fleet.settings import Settings, key_path, load, parsed, read_config, secrets
from kai_fleet.settings.files.project import ROOT
from kai_fleet.settings.team_stack import FactsOf, NoPlatformError, is_team_stack, load_team_stack
from kai_fleet.wording import agreeing, counted, listed, plural
from kai_fleet_policies import rules
from kai_fleet_policies.model.declared import clusters_of
from kai_fleet_policies.rules.rule import Rule

REMOVAL_RULE: Final = "team-removal"
RENAME_RULE: Final = "cluster-name"


@dataclass(frozen=True)
class SettingsVerdict:
    """The settings of a stack, None where too little was right, and what is wrong about them.

    `problems` has what is wrong once for several things as one finding, `each` one for each thing.
    """

    settings: Settings | None
    each: tuple[Finding, ...]
    whole: bool = True

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Everything that is wrong or doubtful."""
        return tuple(together(self.each))

    @property
    def refused(self) -> list[Finding]:
        """What stops a preview."""
        return [finding for finding in self.problems if finding.level is Level.MANDATORY]


def no_platform(stack: str) -> NoReturn:
    """The answer where no platform is looked up."""
    raise NoPlatformError(f"is {stack}, which is not looked up here")


def validate(
    raw: Mapping[str, Any],
    deployed: Deployed | None = None,
    facts_of: FactsOf = no_platform,
    *,
    stack: str = "STACK",
    written: Mapping[str, Any] | None = None,
    more: Iterable[Finding] = (),
    only: Sequence[Rule] = rules.RULES,
) -> SettingsVerdict:
    """Judge a stack file: all mistakes of its keys, and where there are none the rules.

    Args:
        facts_of: Gives the platform of a team stack.
        stack: Its name, for commands.
        written: `raw` with its secrets masked, where it has them decrypted.
        more: Mistakes of the reading.
        only: The rules to apply; none for a command that declares nothing.
    """
    loaded = load_team_stack(raw, facts_of) if is_team_stack(raw) else load(raw)
    wrong = secrets.mistakes(raw if written is None else written, stack)
    missing = (secrets.with_command(mistake, stack) for mistake in loaded.mistakes)
    every = [*more, *wrong, *missing]
    if not every and loaded.settings is not None and only:
        every += rules.check(clusters_of(loaded.settings, deployed), only)
    return SettingsVerdict(loaded.settings, tuple(every), whole=not loaded.mistakes)


def together(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, with those that differ only in their names as one: what a stack file says once
    for all teams is wrong once. `vCluster ml`, `vCluster nlp` become `vClusters ml and nlp`, and
    the verb that the cause begins with agrees.
    """
    same: dict[Finding, dict[str, None]] = {}
    for finding in findings:
        same.setdefault(replace(finding, name=""), {})[finding.name] = None
    result = list[Finding]()
    for finding, names in same.items():
        verb, space, rest = finding.cause.partition(" ")
        cause = f"{agreeing(len(names), verb)}{space}{rest}"
        kind, name = plural(len(names), finding.kind), listed([*names], "and")
        result.append(replace(finding, kind=kind, name=name, cause=cause))
    return result


def removal_findings(verdict: SettingsVerdict, urns: Collection[str], stack: str) -> list[Finding]:
    """The teams among deployed resources, and those that are granted a stack, that a run would
    remove although nothing names them; none while some key could not be read.

    A team goes with its vCluster and its volumes: a cut file or a bad merge is not enough for that.
    """
    settings = verdict.settings
    if settings is None or not verdict.whole:
        return []
    # A team that is granted a stack of its own instead would go as well.
    gone = names_of(urns, TEAM) - settings.teams.keys()
    gone |= names_of(urns, TEAM_NAMESPACE) - settings.team_stacks.keys()
    return [
        Finding(
            Level.MANDATORY,
            key_path(("teams", name)),
            "team",
            name,
            "is deployed and not in the file any more: its vCluster, its pods and its volumes would"
            f" go. Put it back, or name it: kai-fleet:removed: [{name}] in the file, or for one"
            f" run: .venv/bin/fleet up --stack {stack} --yes {name}, or"
            f" {REMOVE_VARIABLE}={name} for plain pulumi",
            check=REMOVAL_RULE,
        )
        for name in sorted(gone - named_losses() - set(settings.removed))
    ]


def rename_findings(settings: Settings | None, outputs: Mapping[str, Any]) -> list[Finding]:
    """Another `cluster.name` than in the outputs of a stack's last update: all would be created
    again beside itself, and what is there deleted.
    """
    known = outputs.get("cluster")
    if settings is None or known in (None, settings.cluster.name):
        return []
    cause = f"is not {known}, the name of the cluster that the stack is on"
    fix = f"write {known}. To rename it destroy this stack first; another cluster has another stack"
    at = key_path(("cluster", "name"))
    name = settings.cluster.name
    return [Finding(Level.MANDATORY, at, "cluster", name, cause, fix, RENAME_RULE)]


def checked_settings(deployed: Deployed, facts_of: FactsOf) -> Settings:
    """The running program's settings; advisories are shown as warnings.

    Raises pulumi.RunError with the whole report where a rule refuses them, or the removal of a
    team that is deployed.
    """
    raw, decrypted, mistakes = read_config()
    stack = pulumi.get_stack()
    file = ROOT / f"Pulumi.{stack}.yaml"
    mistakes += secrets.copies(file)
    mistakes += secrets.moved_since(deployed.outputs.get(secrets.OUTPUT, {}), file)
    written = secrets.as_written(raw, decrypted, file)
    verdict = validate(raw, deployed, facts_of, stack=stack, written=written, more=mistakes)
    for finding in verdict.problems:
        if finding.level is Level.ADVISORY:
            pulumi.log.warn(str(finding))
    refused = verdict.refused
    refused += removal_findings(verdict, deployed.urns, stack)
    refused += rename_findings(verdict.settings, deployed.outputs)
    if refused or verdict.settings is None:
        raise pulumi.RunError(report(refused))
    return verdict.settings


def secret_findings(stack: str, config: Mapping[str, str], keys: Iterable[str]) -> list[Finding]:
    """What is wrong with the secrets of a stack of this project, whatever program it runs.

    `config` is as the engine decrypted it, `keys` are those with something to decrypt.
    """
    file = ROOT / f"Pulumi.{stack}.yaml"
    written = secrets.as_written(parsed(config), parsed(dict.fromkeys(keys)).keys(), file)
    return [*secrets.copies(file), *secrets.mistakes(written, stack)]


def report(findings: Sequence[Finding]) -> str:
    """Every finding on its line, under one heading."""
    lines = [f"  {finding}" for finding in findings]
    head = f"the stack's configuration has {counted(len(findings), 'mistake')}:"
    return "\n".join([head, *lines])
