"""Recording rules and alerts, as groups that Prometheus and its operator read alike."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.monitoring import fill_in
from kai_fleet.settings.sections.monitoring import Monitoring
from kubectl_fleet.declared.queues import DeclaredQueue
from kubectl_fleet.releases import KAI, version_key

HOST: Final = "host"  # the label `scheduler` of the host's own KAI
Group = dict[str, Any]


def of_fleet(
    monitoring: Monitoring,
    stack: str,
    gpu_resource: str = "nvidia.com/gpu",
    host_queues: Sequence[DeclaredQueue] = (),
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
    facts = [*_support(), *_parents(host_queues, HOST, {})]
    if host_kai:
        facts.append(_fact("scheduler_wanted", {"scheduler": HOST}))
    return [{"name": "kai-fleet-facts", "rules": facts}, *groups]


def of_team(team: DeclaredTeam) -> Group:
    """The facts of one team that no metric tells: which queues have children, and so on.

    Of one with a stack of its own the queues are not known, but for the host's that it is granted.
    """
    of = {"team": team.name}
    facts = []
    if team.kai:
        facts += [_fact("scheduler_wanted", {"scheduler": team.name, **of})]
        facts += _parents(team.inside.queues, team.name, of)
    if queue := team.parent_queue if team.granted else team.queue:
        facts.append(_fact("host_queue", {"queue": queue, **of}))
    return {"name": f"kai-fleet-team-{team.name}", "rules": facts}


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
    queues: Sequence[DeclaredQueue], scheduler: str, more: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    parents = {queue.parent for queue in queues}
    for queue in queues:
        if queue.name in parents:
            yield _fact("parent_queue", {"scheduler": scheduler, "queue": queue.name, **more})


def _fact(name: str, labels: Mapping[str, str], expr: str = "vector(1)") -> dict[str, Any]:
    return {"record": f"kai_fleet:{name}", "labels": dict(labels), "expr": expr}
