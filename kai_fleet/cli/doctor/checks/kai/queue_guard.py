"""The guard inside a vCluster, which its tenant can delete: it helps, and its absence is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kai_fleet.cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet.cli.doctor.finding import Finding
from kai_fleet.cli.doctor.objects import name_of, spec
from kai_fleet.components.guard.names import GUARD

NAME = "guard"
_POLICIES: Final = "validatingadmissionpolicies"
_BINDINGS: Final = "validatingadmissionpolicybindings"


def check(look: Snapshot) -> Iterator[Finding]:
    """Every vCluster whose stack wants a guard in it."""
    for team in look.teams.values():
        if team.inside is None or not team.wanted.guards:
            continue
        found = list(_guards(team.inside, team.wanted.guards))
        yield from found
        if not found and not {_POLICIES, _BINDINGS} & set(team.inside.unreadable):
            yield team.inside.well(NAME, f"guard of team {team.wanted.name}")


def _guards(inside: ClusterState, wanted: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    if {_POLICIES, _BINDINGS} & set(inside.unreadable):
        return
    policies = {name_of(item): spec(item) for item in inside.all(_POLICIES)}
    bindings = {name_of(item): spec(item) for item in inside.all(_BINDINGS)}
    for name, parts in wanted.items():
        if name not in policies:
            what, how = "ValidatingAdmissionPolicy", "it is not there"
        elif name not in bindings:
            what, how = "ValidatingAdmissionPolicyBinding", "it is not there"
        elif policies[name].get("failurePolicy") != "Fail" or (
            "rules" in parts and _expressions(policies[name]) != _sorted(parts["rules"])
        ):
            what, how = "ValidatingAdmissionPolicy", "it is not as this version declares it"
        elif (
            bindings[name].get("validationActions") != parts["actions"]
            or bindings[name].get("policyName") != name
        ):
            what, how = "ValidatingAdmissionPolicyBinding", "it was changed"
        else:
            continue
        yield inside.warning(NAME, f"{what} {name}", f"{how}: {_then(name)}", inside.update)


def _then(name: str) -> str:
    if name.startswith(GUARD):
        return "pods that name no queue, or a wrong one, are let in, and stay Pending"
    return "pods that ask for GPUs without KAI run beside the queues"


def _expressions(policy: Mapping[str, Any]) -> list[str]:
    return _sorted(
        str(rule.get("expression"))
        for part in ("variables", "validations")
        for rule in policy.get(part) or []
    )


def _sorted(expressions: Iterable[str]) -> list[str]:
    """The engine hands a program its queues in another order than the file has them."""
    return [
        f"[{', '.join(sorted(each[1:-1].split(', ')))}]" if each.startswith("['") else each
        for each in expressions
    ]
