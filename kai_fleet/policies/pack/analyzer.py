"""The rules as policies of Pulumi: a stack policy each, and one for what is not decided yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from threading import Lock
from typing import Any, Final

from pulumi.runtime import proto
from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    ReportViolation,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy import policy as sdk

from kai_fleet.policies import problem
from kai_fleet.policies.adapters import from_engine
from kai_fleet.policies.adapters.from_resources import Declared, clusters
from kai_fleet.policies.model import Cluster
from kai_fleet.policies.pack.config import RuleConfig, schema
from kai_fleet.policies.problem import Level, Problem
from kai_fleet.policies.rules import RULES, Rule, said_by
from kai_fleet.policies.rules.workloads import workload_known_keys
from kai_fleet.policies.rules.workloads.workload_known_keys import has_non_strings

NAME: Final = "kai-fleet"
UNDECIDED: Final = "undecided"
_READ_BY_EVERY_SERVER: Final = ("kubernetes:core/", "kubernetes:apps/", "kubernetes:batch/")

_LEVELS: Final = {
    Level.MANDATORY: EnforcementLevel.MANDATORY,
    Level.ADVISORY: EnforcementLevel.ADVISORY,
}
_SEVERITIES: Final = {
    problem.Severity.LOW: Severity.LOW,
    problem.Severity.MEDIUM: Severity.MEDIUM,
    problem.Severity.HIGH: Severity.HIGH,
    problem.Severity.CRITICAL: Severity.CRITICAL,
}


class Reading:
    """The stack of one analysis: read once, for the policies that ask in turn about it."""

    def __init__(self) -> None:
        self._clusters: list[Cluster] = []
        self._undecided: list[Problem] = []
        self._early: str | None = None
        self._told: set[Problem] = set()

    def begin(self, resources: Iterable[Declared], early: str | None = None) -> None:
        """Another stack, or the same one later; or, `early`, one resource for one rule only.

        What that rule tells early is not told again with the stack.
        """
        self._clusters = clusters(resources)
        self._undecided = []
        self._early = early

    def problems(self, rule: Rule, config: Mapping[str, Any]) -> list[Problem]:
        """What one rule says; what it cannot decide is kept for `undecided`."""
        if self._early not in (None, rule.NAME):
            return []
        applied = RuleConfig.of(config).applied
        found = said_by(rule, (applied(cluster) for cluster in self._clusters))
        found = [p for p in found if p not in self._told]
        if self._early:
            self._told.update(found)
        self._undecided += [p for p in found if p.undecided]
        return [p for p in found if not p.undecided]

    def undecided(self) -> list[Problem]:
        """What the rules that were asked could not decide."""
        return self._undecided


def policies(reading: Reading) -> list[StackValidationPolicy]:
    """Every rule as a stack policy, and last the one that says what could not be decided."""
    return [
        *(_policy(rule, reading) for rule in RULES),
        StackValidationPolicy(
            name=UNDECIDED,
            description="Some values are known only during the update; these rules decide then.",
            validate=_undecided(reading),
            enforcement_level=EnforcementLevel.ADVISORY,
            severity=Severity.LOW,
            remediation_steps="Nothing to do: the rules are asked again during the update.",
        ),
    ]


def _policy(rule: Rule, reading: Reading) -> StackValidationPolicy:
    def validate(args: StackValidationArgs, report_violation: ReportViolation) -> None:
        for found in reading.problems(rule, args.get_config()):
            report_violation(f"{found.subject}: {found.message}", _urn(found))

    properties = schema(rule.NAME)
    return StackValidationPolicy(
        name=rule.NAME,
        description=rule.WHY,
        validate=validate,
        enforcement_level=_LEVELS[rule.LEVEL],
        severity=_SEVERITIES[rule.SEVERITY],
        remediation_steps=rule.REMEDY,
        config_schema=PolicyConfigSchema(properties) if properties else None,
    )


def _undecided(reading: Reading) -> Callable[[StackValidationArgs, ReportViolation], None]:
    def validate(_: StackValidationArgs, report_violation: ReportViolation) -> None:
        for found in reading.undecided():
            report_violation(f"{found.rule}: {found.subject}: {found.message}", _urn(found))

    return validate


def _urn(found: Problem) -> str | None:
    return found.path if found.path.startswith("urn:") else None


class Analyzer(sdk._PolicyAnalyzerServicer):  # type: ignore[misc]
    """The SDK's servicer, except that it reads each stack once instead of once per policy.

    Levels, configuration and reports stay the SDK's: it is asked about an empty stack, and its
    policies answer about the one that was read here.
    """

    def __init__(self, reading: Reading, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._reading = reading
        self._inputs: dict[str, Any] = {}
        self._one_at_a_time = Lock()

    def AnalyzeStack(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        """What the rules say of a whole stack."""
        with self._one_at_a_time:
            self._reading.begin(from_engine.stack(request.resources, self._inputs))
            return super().AnalyzeStack(proto.AnalyzeStackRequest(), context)

    def Analyze(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Keeps what was declared; says only what the stack's analysis would come too late for.

        A stack is sent with its resources' outputs, and in a preview the engine has none for what
        lies behind a provider that is not known yet: everything inside a new vCluster. And where
        the API server refuses an object at preview, the stack is never analyzed: of labels that
        are no strings it says so in Go's words, so ours come first.
        """
        self._inputs[request.urn] = request.properties
        if not request.type.startswith(_READ_BY_EVERY_SERVER):
            return proto.AnalyzeResponse()
        resource = from_engine.one(request, request.properties, {})
        if not any(has_non_strings(w) for c in clusters([resource]) for w in c.workloads):
            return proto.AnalyzeResponse()
        with self._one_at_a_time:
            self._reading.begin([resource], early=workload_known_keys.NAME)
            return super().AnalyzeStack(proto.AnalyzeStackRequest(), context)


def main() -> None:
    """Answer the engine until it ends this process; never returns (P5)."""
    reading = Reading()
    sdk._PolicyAnalyzerServicer = partial(Analyzer, reading)
    sdk.PolicyPack(NAME, policies=policies(reading), enforcement_level=EnforcementLevel.MANDATORY)


if __name__ == "__main__":
    main()
