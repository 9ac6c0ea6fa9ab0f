"""The objects of guards, held against those that this version declares; those inside vClusters."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kai_fleet.guards.policies import BINDING, POLICY
from kai_fleet.wording import agreeing
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot

_KINDS: Final = {
    POLICY: "validatingadmissionpolicies",
    BINDING: "validatingadmissionpolicybindings",
}
# What is compared of each kind: what it matches, its expressions, and the rest.
_MATCHES: Final = {POLICY: "matchConstraints", BINDING: "matchResources"}
_EXPRESSIONS: Final = ("matchConditions", "variables", "validations")
_FIELDS: Final = {
    POLICY: ("failurePolicy", "paramKind", _MATCHES[POLICY], *_EXPRESSIONS),
    BINDING: ("policyName", "validationActions", "paramRef", _MATCHES[BINDING]),
}


def check(snapshot: Snapshot) -> Findings:
    """Every vCluster whose stack wants a guard in it, which its tenant can delete."""
    for team in snapshot.teams.values():
        inside, guards = team.inside, team.wanted.guards
        if inside is None or not guards:
            continue
        warnings = [
            inside.warning(subject, f"{how}: {_harm(declared)}", inside.update)
            for declared in guards
            for subject, how in unlike(inside, declared)
        ]
        yield from warnings
        if not warnings and not set(_KINDS.values()) & set(inside.unreadable):
            yield inside.well(f"guard of team {team.wanted.name}")


def unlike(cluster: ClusterState, declared: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with one declared object: its subject and the cause; nothing where it is there
    as declared, and where its kind may not be read.
    """
    kind, name = str(declared["kind"]), str(declared["metadata"]["name"])
    if _KINDS[kind] in cluster.unreadable:
        return
    item = cluster.named(_KINDS[kind], name)
    if item is None:
        yield f"{kind} {name}", "it is not there"
        return
    changed = [
        field
        for field in _FIELDS[kind]
        if _plain(field, declared["spec"].get(field)) != _plain(field, item.spec.get(field))
    ]
    if changed:
        yield (
            f"{kind} {name}",
            f"its {', '.join(changed)} {agreeing(len(changed), 'is')} not as this version declares",
        )


def _plain(field: str, value: Any) -> Any:
    """A field without what an API server fills in, of expressions nothing else."""
    if field in _EXPRESSIONS:
        return [str(each.get("expression")) for each in value or []]
    if field not in _MATCHES.values():
        return value
    match = {key: it for key, it in (value or {}).items() if it and key != "matchPolicy"}
    for rules in match.keys() & {"resourceRules", "excludeResourceRules"}:
        match[rules] = [{key: it for key, it in r.items() if key != "scope"} for r in match[rules]]
    return match


def _harm(declared: Mapping[str, Any]) -> str:
    if "outside" in declared["metadata"]["name"]:
        return "pods that ask for GPUs without KAI run beside the queues"
    return "pods that name no queue, or a wrong one, are let in, and stay Pending"
