"""The objects of guards in a cluster, held against those that this version declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kai_fleet.guards.policies import BINDING, POLICY, Object
from kai_fleet_cli.doctor.cluster_state import ClusterState

POLICIES: Final = "validatingadmissionpolicies"
BINDINGS: Final = "validatingadmissionpolicybindings"
_KINDS: Final = {POLICY: POLICIES, BINDING: BINDINGS}


def unlike(cluster: ClusterState, declared: Object) -> Iterator[tuple[str, str]]:
    """What is wrong with one declared object: its subject and the cause; nothing where it is there
    as declared, and where its kind may not be read.
    """
    kind, name = str(declared["kind"]), str(declared["metadata"]["name"])
    if _KINDS[kind] in cluster.unreadable:
        return
    subject = f"{kind} {name}"
    item = cluster.named(_KINDS[kind], name)
    if item is None:
        yield subject, "it is not there"
        return
    changed = [part for part, wanted, has in _parts(kind, declared, item) if wanted != has]
    if changed:
        verb = "is" if len(changed) == 1 else "are"
        yield subject, f"its {', '.join(changed)} {verb} not as this version declares"


def _parts(
    kind: str, declared: Mapping[str, Any], item: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    wanted, has = declared["spec"], item.get("spec") or {}
    if kind == BINDING:
        yield "policyName", wanted["policyName"], has.get("policyName")
        yield "validationActions", wanted["validationActions"], has.get("validationActions")
        yield "paramRef", wanted.get("paramRef"), has.get("paramRef")
        matched = _matched(wanted.get("matchResources")), _matched(has.get("matchResources"))
        yield "matchResources", *matched
        return
    yield "failurePolicy", wanted["failurePolicy"], has.get("failurePolicy")
    yield "paramKind", wanted.get("paramKind"), has.get("paramKind")
    constraints = _matched(wanted["matchConstraints"]), _matched(has.get("matchConstraints"))
    yield "matchConstraints", *constraints
    for part in ("matchConditions", "variables", "validations"):
        yield part, _expressions(wanted.get(part)), _expressions(has.get(part))


def _matched(match: Mapping[str, Any] | None) -> dict[str, Any]:
    """Without what an API server fills in."""
    found = {key: value for key, value in (match or {}).items() if value and key != "matchPolicy"}
    for rules in found.keys() & {"resourceRules", "excludeResourceRules"}:
        found[rules] = [
            {key: value for key, value in rule.items() if key != "scope"} for rule in found[rules]
        ]
    return found


def _expressions(parts: Any) -> list[str]:
    return [str(each.get("expression")) for each in parts or []]
