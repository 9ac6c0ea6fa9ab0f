"""Each rule as a policy of Pulumi, and last the one for what is not decided yet."""

from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf import json_format
from pulumi.runtime import proto

from kai_fleet_policies.pack.config import schema
from kai_fleet_policies.rules import RULES, Rule
from kubectl_fleet.rules.problem import Level, Severity

UNDECIDED: Final = "undecided"
_LEVELS: Final = {Level.MANDATORY: proto.MANDATORY, Level.ADVISORY: proto.ADVISORY}
_SEVERITIES: Final = {
    Severity.LOW: proto.POLICY_SEVERITY_LOW,
    Severity.MEDIUM: proto.POLICY_SEVERITY_MEDIUM,
    Severity.HIGH: proto.POLICY_SEVERITY_HIGH,
    Severity.CRITICAL: proto.POLICY_SEVERITY_CRITICAL,
}


@dataclass(frozen=True)
class Policy:
    """What the engine is told of a policy. `rule` is None for the one of open questions."""

    name: str
    description: str
    level: Any
    severity: Any
    remedy: str
    rule: Rule | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    """What a stack may set, as JSON Schema."""

    def info(self) -> Any:
        """The protocol's own record of it."""
        info = proto.PolicyInfo(
            name=self.name,
            description=self.description,
            enforcementLevel=self.level,
            policy_type=proto.POLICY_TYPE_STACK,
            severity=self.severity,
            remediation_steps=self.remedy,
        )
        if self.properties:
            json_format.ParseDict(self.properties, info.configSchema.properties)
        return info


def _of(rule: Rule) -> Policy:
    return Policy(
        rule.NAME,
        rule.WHY,
        _LEVELS[rule.LEVEL],
        _SEVERITIES[rule.SEVERITY],
        rule.REMEDY,
        rule,
        schema(rule.NAME),
    )


POLICIES: Final = (
    *map(_of, RULES),
    Policy(
        UNDECIDED,
        "Some values are known only during the update; these rules decide then.",
        proto.ADVISORY,
        proto.POLICY_SEVERITY_LOW,
        "Nothing to do: the rules are asked again during the update.",
    ),
)
