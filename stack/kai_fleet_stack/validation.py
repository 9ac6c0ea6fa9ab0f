"""The gate in front of a program: it gets its settings only if no rule refuses its clusters."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import pulumi

from kai_fleet.names import TEAM, TEAM_NAMESPACE
from kai_fleet.one_run import REMOVE_VARIABLE, agreed_losses
from kai_fleet.ownership.deployed import Deployed, names_of
from kai_fleet.wording import agreeing, listed, plural
from kai_fleet_policies import rules
from kai_fleet_policies.finding import Finding, Level, report
from kai_fleet_policies.key_paths import key_path
from kai_fleet_policies.rules.rule import Rule
from kai_fleet_stack.declared import clusters_of
from kai_fleet_stack.project import ROOT
from kai_fleet_stack.settings import Settings, secrets
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.running_config import read_config, values_of_config
from kai_fleet_stack.settings.team_stack import (
    FactsOf,
    NoPlatformError,
    is_team_stack,
    load_team_stack,
)

# What findings have as `check` that no Rule makes.
REMOVAL_RULE = "team-removal"
RENAME_RULE = "cluster-name"


@dataclass(frozen=True)
class SettingsVerdict:
    """The settings of a stack, and what is wrong with them.

    Args:
        settings: None if too little could be read. They lack the keys that are wrong, and may be
            `refused`: look at that before something is declared.
        findings: A finding for each thing that is wrong, not merged: mistakes of keys, then those
            of rules, then removed teams and another name of the cluster.
    """

    settings: Settings | None
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The findings, with those that differ only in their names as one."""
        return tuple(merge_findings(self.findings))

    @property
    def refused(self) -> list[Finding]:
        """The problems that stop a preview. Never empty if `settings` is None."""
        return [finding for finding in self.problems if finding.level is Level.MANDATORY]


def no_platform(stack: str) -> NoReturn:
    """Look no platform up: in place of its facts there is one mistake.

    Raises:
        NoPlatformError: Always.
    """
    raise NoPlatformError(f"is {stack}, which is not looked up here")


def validate(
    raw: Mapping[str, object],
    deployed: Deployed | None = None,
    facts_of: FactsOf = no_platform,
    *,
    stack: str = "STACK",
    masked: Mapping[str, object] | None = None,
    more: Iterable[Finding] = (),
    only: Sequence[Rule] = rules.RULES,
) -> SettingsVerdict:
    """Judge a stack file: list all mistakes of its keys, and only if there are none ask the rules.

    Mistakes of keys are also those in `more` and of secrets.

    Args:
        raw: The configuration by its keys without `kai-fleet:`, as values and not as JSON. Secrets
            are MASK or, with `masked`, decrypted.
        deployed: What the stack has since its last update, if that is known. Then it is also
            refused to remove teams that neither `kai-fleet:removed` nor $KAI_FLEET_REMOVE_TEAM
            names (unless a key of `raw` is wrong), and to rename the cluster (if there are
            settings).
        facts_of: Looks the platform of a team stack up. Its NoPlatformError becomes a mistake.
        stack: Name of the stack, also for the commands in messages.
        masked: `raw` with MASK for its secrets; None if `raw` has that itself.
        more: Mistakes that were found while the file was read. The findings begin with them.
        only: The rules to ask; none for a command that declares nothing.
    """
    loaded = load_team_stack(raw, facts_of) if is_team_stack(raw) else load(raw)
    findings = list(more)
    findings += secrets.mistakes(raw if masked is None else masked, stack)
    findings += [secrets.with_command(mistake, stack) for mistake in loaded.mistakes]
    settings = loaded.settings
    if settings is not None and only and not findings:
        findings += rules.check(clusters_of(settings, deployed), only)
    if settings is not None and deployed is not None:
        if not loaded.mistakes:  # else a team may be missing for that reason
            findings += _removals(settings, deployed.urns, stack)
        findings += rename_findings(settings, deployed.outputs)
    return SettingsVerdict(settings, tuple(findings))


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that differ only in their names: a key for all teams is reported once.

    `vCluster ml` and `vCluster nlp` become `vClusters ml and nlp`, and the verb that begins the
    cause becomes plural. The order is that of the first finding of each kind, and a name is there
    once. Findings at different paths stay apart.
    """
    names_by_finding: dict[Finding, list[str]] = {}
    for finding in findings:
        names = names_by_finding.setdefault(replace(finding, name=""), [])
        if finding.name not in names:
            names.append(finding.name)
    return [_about(finding, names) for finding, names in names_by_finding.items()]


def _about(finding: Finding, names: Sequence[str]) -> Finding:
    """The finding about these names, at least one; about one the words stay as they are."""
    verb, space, rest = finding.cause.partition(" ")
    return replace(
        finding,
        kind=plural(len(names), finding.kind),
        name=listed(names, "and"),
        cause=f"{agreeing(len(names), verb)}{space}{rest}",
    )


def _removals(settings: Settings, urns: Collection[str], stack: str) -> list[Finding]:
    """Refuse to remove teams that are not in the file, unless something names them.

    That is `kai-fleet:removed` in the file, or the variable KAI_FLEET_REMOVE_TEAM of the run, in
    which the stack's name stands for all of its teams.

    A team's vCluster and volumes are deleted with it: a cut file or a bad merge must not do that. A
    team that moves to a stack of its own is removed, too, and so is a grant that the file drops.
    The findings are sorted by name, each at the key `teams.NAME`.

    Args:
        settings: without wrong keys, for which a team might be missing.
        urns: The resources that the stack has.
        stack: Name of the stack.
    """
    removed = names_of(urns, TEAM) - settings.teams.keys()
    removed |= names_of(urns, TEAM_NAMESPACE) - settings.team_stacks.keys()
    agreed = agreed_losses()
    if stack in agreed:
        return []
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
        for name in sorted(removed - agreed - set(settings.removed))
    ]


def rename_findings(settings: Settings, outputs: Mapping[str, object]) -> list[Finding]:
    """Refuse another `cluster.name` than in the outputs of the stack's last update, if it is there.

    Empty if the names are the same, or no update wrote one; else one finding. With another name
    the update would create everything anew, and then delete what is there.

    Args:
        outputs: The outputs of the last update, by name. Read is `cluster`.
    """
    before = outputs.get("cluster")
    if before in (None, settings.cluster.name):
        return []
    finding = Finding(
        Level.MANDATORY,
        "kai-fleet:cluster.name",
        "cluster",
        settings.cluster.name,
        f"is not {before}, the name of the cluster that the stack is on",
        f"write {before}. To rename it destroy this stack first; another cluster has another stack",
        check=RENAME_RULE,
    )
    return [finding]


def checked_settings(deployed: Deployed, facts_of: FactsOf) -> Settings:
    """The running program's settings. Warns in Pulumi's log of what rules only advise against.

    Call it before anything is declared. It warns also if it refuses then.

    Args:
        deployed: The state of the last update. If it is not `readable`, no removal, no new name of
            the cluster and no secret that moved is noticed.
        facts_of: Looks the platform of a team stack up.

    Raises:
        pulumi.RunError: With all findings that refuse, if a key is wrong, a secret was copied or
            moved, a rule refuses the settings, or the update would remove a team that nobody named
            or rename the cluster.
    """
    raw, decrypted, mistakes = read_config()
    stack = pulumi.get_stack()
    file = ROOT / f"Pulumi.{stack}.yaml"
    mistakes += secrets.copied_ciphertexts(file)
    mistakes += secrets.ciphertexts_moved_since(deployed.outputs.get(secrets.OUTPUT, {}), file)
    masked = secrets.with_masked_secrets(raw, decrypted, file)
    verdict = validate(raw, deployed, facts_of, stack=stack, masked=masked, more=mistakes)
    for finding in verdict.problems:
        if finding.level is Level.ADVISORY:
            pulumi.log.warn(str(finding))
    if verdict.refused or verdict.settings is None:
        raise pulumi.RunError(report(verdict.refused))
    return verdict.settings


def secret_findings(stack: str, config: Mapping[str, str], keys: Iterable[str]) -> list[Finding]:
    """What is wrong with the secrets of a stack of this project, even if it runs another program.

    That is ciphertexts in `Pulumi.yaml`, copies, ciphertexts at keys for none, and secrets in
    clear; not secrets that moved since the last update. Without the stack's file its decrypted keys
    are not judged.

    Args:
        config: The configuration as JSON by key with its namespace, decrypted by the engine.
        keys: Those of these keys that have a secret.
    """
    file = ROOT / f"Pulumi.{stack}.yaml"
    masked = secrets.with_masked_secrets(
        values_of_config(config), values_of_config(dict.fromkeys(keys)).keys(), file
    )
    return [*secrets.copied_ciphertexts(file), *secrets.mistakes(masked, stack)]
