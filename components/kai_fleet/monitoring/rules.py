"""Recording rules and alerts, as groups that Prometheus and its operator read alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kai_fleet.monitoring import fill_in
from kai_fleet.releases import KAI, version_key
from kai_fleet.settings.sections.monitoring import Monitoring
from kai_fleet.settings.sections.queues import QueueTree, walk

HOST: Final = "host"  # the label `scheduler` of the host's own KAI
Group = dict[str, Any]


def of_fleet(
    monitoring: Monitoring,
    stack: str,
    gpu_resource: str = "nvidia.com/gpu",
    host_queues: QueueTree | None = None,
    *,
    host_kai: bool = False,
) -> list[Group]:
    """What is counted for every team, and the alerts. Nothing in it depends on who the teams are.

    `gpu_resource` is the name under which nodes advertise GPUs.
    """
    words: dict[str, str | int] = {
        "Resource": gpu_resource,
        "ResourceLabel": gpu_resource.replace(".", "_").replace("/", "_"),
        "StarvedAfter": monitoring.starved_after,
        "SupportDays": monitoring.support_days,
        "Stack": stack,
    }
    groups: list[Group] = fill_in("rules.yaml", words)
    facts = [*_support(), *_parents(host_queues or {}, HOST, {})]
    if host_kai:
        facts.append(_fact("scheduler_wanted", {"scheduler": HOST}))
    return [{"name": "kai-fleet-facts", "rules": facts}, *groups]


def of_team(team: str, queues: QueueTree, *, own_kai: bool, host_queues: Iterable[str]) -> Group:
    """The facts of one team that no metric tells: which queues have children, and so on.

    `host_queues` are the leaves of the host's tree that are the team's, in host mode.
    """
    of = {"team": team}
    facts = [_fact("scheduler_wanted", {"scheduler": team, **of})] if own_kai else []
    facts += _parents(queues if own_kai else {}, team, of)
    facts += [_fact("host_queue", {"queue": queue, **of}) for queue in host_queues]
    return {"name": f"kai-fleet-team-{team}", "rules": facts}


def _support() -> Iterator[dict[str, Any]]:
    newest = max(version_key(version)[:2] for version in KAI)
    for version, release in KAI.items():
        if release.support_end is not None:
            end = datetime.combine(release.support_end, datetime.max.time(), UTC)
            seconds = str(int(end.timestamp()))
            yield _fact("kai_support_end_seconds", {"version": version}, f"vector({seconds})")
        elif version_key(version)[:2] < newest:  # the newest line comes into the list later
            yield _fact("kai_in_no_support_list", {"version": version})


def _parents(
    queues: QueueTree, scheduler: str, more: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    for placed in walk(queues):
        if placed.queue.children:
            labels = {"scheduler": scheduler, "queue": placed.name, **more}
            yield _fact("parent_queue", labels)


def _fact(name: str, labels: Mapping[str, str], expr: str = "vector(1)") -> dict[str, Any]:
    return {"record": f"kai_fleet:{name}", "labels": dict(labels), "expr": expr}
