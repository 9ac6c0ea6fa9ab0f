"""In host mode the queue of a team holds no more GPUs than the team may have."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.fleet.queues import UNLIMITED
from kai_fleet_policies.problem import Level, Problems, Severity, of_queue

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "The host's KAI reserves shared GPUs in its own namespace, so that the team's quota counts no"
    " fraction: only the limit of its queue does (T13)."
)
REMEDY = "Drop the queue's gpu limit, lower its quota, or raise the team's gpus."


def check(cluster: DeclaredCluster) -> Problems:
    """Each queue of the host that is a team's; teams that share one have its limit together."""
    gpus: dict[object, float] = {}
    for queue, amount in (
        *((t.queue, t.gpus) for t in cluster.teams if t.mode == "host"),
        *((g.parent_queue, g.gpus) for g in cluster.grants if not cluster.platform),
    ):
        if queue is not None and isinstance(amount, float | int):
            gpus[queue] = gpus.get(queue, 0.0) + amount
    for each in cluster.queues:
        if each.name not in gpus or not isinstance(each.shares, dict) or "gpu" not in each.shares:
            continue
        share, most = each.shares["gpu"], gpus[each.name]
        for word, value in (("quota", share.quota), ("limit", share.limit)):
            if isinstance(value, float | int) and (value == UNLIMITED or value > most):
                has = "unlimited" if value == UNLIMITED else f"{value:g}"
                yield of_queue(each, cluster, "gpu", word).mandatory(
                    f"has gpu {word} {has}, and the teams whose queue it is have {most:g} GPUs:"
                    f" fractions would pass that; write {most:g} or less, or raise their gpus"
                )
