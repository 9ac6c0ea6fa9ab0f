"""The guards alone: of a team's queues, and of its place on the host."""

from __future__ import annotations

from kai_fleet.guards.host_guard import HostGuard, HostGuardArgs
from kai_fleet.guards.host_rules import HostRules
from kai_fleet.guards.policies import QUEUES, PolicySet
from kai_fleet.guards.queue_guard import QueueGuard, QueueGuardArgs
from kai_fleet.guards.queue_rules import QueueRules
from kai_fleet.package.construct.request import Request, Result


def queue_guard(asked: Request) -> Result:
    """What pods may name a queue."""
    args = asked.arguments()
    rules = QueueRules(
        args.team,
        args.queues,
        args.mode,
        gpu_sharing=args.gpu_sharing,
        prefix=args.prefix,
        pod_groups=args.pod_groups,
    )
    given = QueueGuardArgs(rules, asked.given.input("namespace"))
    return QueueGuard(asked.name, given, asked.on_cluster()), {"policy": f"{QUEUES}{args.team}"}


def host_guard(asked: Request) -> Result:
    """What may be made in a namespace of the host."""
    args = asked.arguments()
    rules = HostRules(
        **{key: getattr(args, key) for key in HostRules.__dataclass_fields__},
    )
    given = HostGuardArgs(asked.given.input("namespace"), rules)
    made = HostGuard(asked.name, given, asked.on_cluster())
    return made, {"policy": PolicySet(f"-of-{args.team}").called("pods")}
