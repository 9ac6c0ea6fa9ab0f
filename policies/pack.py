"""The rules as policies of Pulumi: a stack policy each, and one for what is not decided yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pulumi_policy import (
    EnforcementLevel,
    PolicyResource,
    ReportViolation,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy import proxy as unknowns

from policies.declared import Declared, clusters
from policies.problem import Level, Problem
from policies.rules import RULES, check
from policies.unknown import UNKNOWN

UNDECIDED = "undecided"

_SENTINELS = frozenset(
    value for name, value in vars(unknowns).items() if name.startswith("UNKNOWN_")
)
_LEVELS = {
    Level.MANDATORY: EnforcementLevel.MANDATORY,
    Level.ADVISORY: EnforcementLevel.ADVISORY,
}


def policies() -> list[StackValidationPolicy]:
    """Every rule as a stack policy; all of them share one reading of the stack."""
    judge = _Judge()
    each = [
        StackValidationPolicy(
            name=rule.NAME,
            description=rule.WHY,
            validate=_validator(judge, rule.NAME),
            enforcement_level=_LEVELS[rule.LEVEL],
            remediation_steps=rule.REMEDY,
        )
        for rule in RULES
    ]
    open_ = StackValidationPolicy(
        name=UNDECIDED,
        description="Some values are known only during the update; these rules decide then.",
        validate=_validator(judge, UNDECIDED),
        enforcement_level=EnforcementLevel.ADVISORY,
    )
    return [*each, open_]


class _Judge:
    """Runs the rules once for the policies that ask in turn about the same stack.

    The SDK reads the stack anew for every policy, so the resources are never the same objects. But
    it asks each policy once per analysis: the second question of any policy begins the next one.
    """

    def __init__(self) -> None:
        self._asked: set[str] = set()
        self._problems: Mapping[str, Sequence[Problem]] = {}

    def problems(self, policy: str, resources: Iterable[PolicyResource]) -> Sequence[Problem]:
        if not self._asked or policy in self._asked:
            self._asked = set()
            self._problems = _by_policy(resources)
        self._asked.add(policy)
        return self._problems.get(policy, ())


def _by_policy(resources: Iterable[PolicyResource]) -> dict[str, list[Problem]]:
    read = [declared(resource) for resource in resources if _kubernetes(resource)]
    found: dict[str, list[Problem]] = {}
    for problem in check(clusters(read)):
        found.setdefault(UNDECIDED if problem.undecided else problem.rule, []).append(problem)
    return found


def _validator(
    judge: _Judge, policy: str
) -> Callable[[StackValidationArgs, ReportViolation], None]:
    def validate(args: StackValidationArgs, report_violation: ReportViolation) -> None:
        for problem in judge.problems(policy, args.resources):
            rule = f"{problem.rule}: " if policy == UNDECIDED else ""
            urn = problem.path if problem.path.startswith("urn:") else None
            report_violation(f"{rule}{problem.subject}: {problem.message}", urn)

    return validate


def _kubernetes(resource: PolicyResource) -> bool:
    return str(resource.resource_type).startswith("kubernetes:")


def declared(resource: PolicyResource) -> Declared:
    """A resource as the rules read it, unknown values included."""
    provider = resource.provider
    namespace = plain(provider.props).get("namespace") if provider else None
    return Declared(
        urn=resource.urn,
        type=resource.resource_type,
        name=resource.name,
        props=plain(resource.props),
        provider=provider.urn if provider else "",
        parent=resource.parent.urn if resource.parent else "",
        default_namespace=namespace if isinstance(namespace, str) and namespace else "default",
    )


def plain(props: Mapping[str, object]) -> dict[str, object]:
    """Properties without the proxy that raises an error at each unknown value.

    Such an error would turn the whole policy into a remark (P4).
    """
    result = _plain(props)
    return result if isinstance(result, dict) else {}


def _plain(value: object) -> object:
    if isinstance(value, unknowns._DictProxy | unknowns._ListProxy):
        value = value["__target"]
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, str) and value in _SENTINELS:
        return UNKNOWN
    return value
