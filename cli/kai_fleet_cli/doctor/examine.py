"""Examine what was read: every check in its order, and one finding for one cause.

What is true of ten pods for one reason is one line with a count.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from kai_fleet.kube.objects import MALFORMED, malformed
from kai_fleet.wording import counted
from kai_fleet_cli.doctor.checks import (
    api_access,
    gpu_quota,
    gpu_stack,
    groups,
    guards,
    isolation,
    monitoring,
    network,
    nodes,
    pods,
    vclusters,
)
from kai_fleet_cli.doctor.checks.kai import (
    gpu_sharing,
    kai_parts,
    leftovers,
    queues,
    shards,
    webhooks,
)
from kai_fleet_cli.doctor.cluster_state import Snapshot, TeamState
from kai_fleet_cli.waiting.finding import Finding, Health

COMMAND: Final = re.compile(r"`([^`]+)`")
_SUBJECT: Final = re.compile(r"(?P<kind>.+?) (?P<name>\S+?)(?: in namespace (?P<namespace>\S+))?")
_SHOWN: Final = 5
# A command takes so many names; what is left shows when the doctor looks again.
_IN_COMMAND: Final = 20
_LOOKS: Final = re.compile(r"(?:look (?:at it|with)): `")


def check_access(snapshot: Snapshot) -> Iterator[Finding]:
    """Each cluster with kinds that this user may not read: what needs them is not checked."""
    for cluster in snapshot.clusters:
        if cluster.unreadable:
            refusal = next(iter(cluster.unreadable.values()))
            yield cluster.warning(
                f"read access to {', '.join(sorted(cluster.unreadable))}",
                f"it was refused ({refusal}), so what depends on it was not checked",
                "give this user get and list on them (ClusterRole view, and secrets and nodes)",
            )


# In the order in which they are told. A check yields everything that it looked at, what is well
# included; a finding without a name of its own gets the check's.
CHECKS: Final[tuple[tuple[str, Callable[[Snapshot], Iterator[Finding]]], ...]] = (
    ("readable", check_access),
    ("nodes", nodes.check),
    ("gpu-stack", gpu_stack.check),
    ("gpu-one-sharer", gpu_stack.check_sharing),
    ("runtime-class", gpu_sharing.check_runtime_class),
    ("vcluster", vclusters.check),
    ("api-access", api_access.check),
    ("gpu-quota", gpu_quota.check),
    ("shared-gpu", gpu_sharing.check_maps),
    ("isolation", isolation.check),
    ("helm-record", vclusters.check_records),
    ("network-plugin", network.check_plugin),
    ("network-reach", network.check_addresses),
    ("monitoring", monitoring.check),
    ("kai-parts", kai_parts.check),
    ("webhooks", webhooks.check),
    ("leftovers", leftovers.check),
    ("queues", queues.check),
    ("guard", guards.check),
    ("groups", groups.check),
    ("shards", shards.check),
    ("topologies", shards.check_topologies),
    ("pods", pods.check_written),
    ("pending", pods.check_pending),
    ("refused", pods.check_refused),
    ("pod-groups", pods.check_groups),
    ("gpu-sharing", gpu_sharing.check),
)


def examine(snapshot: Snapshot) -> list[Finding]:
    """What all checks say, in their order, each cause once.

    The API server of a vCluster is its tenant's, and may answer objects that none of Kubernetes'
    has. Such a vCluster counts as not reached: the others are looked at all the same.
    """
    try:
        return _examine(snapshot)
    except MALFORMED:
        teams = {name: _readable(snapshot, team) for name, team in snapshot.teams.items()}
        if all(team is snapshot.teams[name] for name, team in teams.items()):
            raise
        return _examine(replace(snapshot, teams=teams))


def _examine(snapshot: Snapshot) -> list[Finding]:
    return merge_by_cause(
        finding if finding.check else replace(finding, check=name)
        for name, check in CHECKS
        for finding in check(snapshot)
    )


def _readable(snapshot: Snapshot, team: TeamState) -> TeamState:
    """The team, without the inside of its vCluster where that cannot be looked at."""
    if team.inside is None:
        return team
    try:
        _examine(replace(snapshot, teams={team.wanted.name: team}))
    except MALFORMED as error:
        return replace(team, inside=None, unreached=malformed(error))
    return team


class _Thing(NamedTuple):
    """A subject taken apart: `pod`, `train-a`, `default`."""

    kind: str
    name: str
    namespace: str | None


def merge_by_cause(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in their order, those of one cause as one. What is well is not counted up."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in dict.fromkeys(findings):
        thing = _thing(finding)
        key: tuple[str, ...] = (finding.check, finding.health, finding.cluster, thing.kind)
        if finding.health is Health.OK or not thing.kind:
            key += (finding.subject,)
        if finding.same:
            key += (finding.same,)
        else:  # the texts, as they are said of any thing of the kind
            name = _whole(thing.name)
            key += (name.sub("\0", finding.cause), name.sub("\0", finding.fix))
        groups.setdefault(key, []).append(finding)
    return [_merged(group) for group in groups.values()]


def commands(fix: str) -> list[str]:
    """The commands of a fix: what stands in backticks."""
    return COMMAND.findall(fix)


def _thing(finding: Finding) -> _Thing:
    parts = _SUBJECT.fullmatch(finding.subject)
    return _Thing(**parts.groupdict()) if parts else _Thing("", finding.subject, None)


def _merged(group: Sequence[Finding]) -> Finding:
    first = group[0]
    things = list(dict.fromkeys(map(_thing, group)))
    if len(things) == 1:
        return first
    # One is enough to look at; what mends has to be done to all.
    names = [thing.name for thing in things[: 1 if _LOOKS.search(first.fix) else _IN_COMMAND]]
    own = _whole(things[0].name)
    return replace(
        first,
        subject=_subject(things),
        fix=COMMAND.sub(lambda it: own.sub(" ".join(names), it[0], count=1), first.fix),
        subjects=tuple(dict.fromkeys(finding.subject for finding in group)),
    )


def _subject(things: Sequence[_Thing]) -> str:
    kind, _, namespace = things[0]
    one_place = all(thing.namespace == namespace for thing in things)
    names = [it.name if one_place else f"{it.namespace}/{it.name}" for it in things[:_SHOWN]]
    more = f" and {len(things) - _SHOWN} more" if len(things) > _SHOWN else ""
    place = f" in namespace {namespace}" if one_place and namespace else ""
    return f"{counted(len(things), kind)}{place}: {', '.join(names)}{more}"


def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])")
