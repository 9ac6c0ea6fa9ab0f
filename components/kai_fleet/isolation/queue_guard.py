"""The guard of queues: what a team's pods may ask of KAI, on the host and inside a vCluster.

KAI lets any pod name any queue. A pod that names a wrong one stays Pending, mostly without an
event. This guard denies it at once and names the right queues.

It judges pods. A wrong queue that is written only in a Deployment denies the Deployment's pods,
which only its events would show; therefore the client that applies the Deployment is warned with
the same message. Pods that KAI does not schedule are not judged, and neither are KAI's components
and reservation pods. Inside a vCluster the guard judges the specs of Queues, too.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kai_fleet.declaring.inputs import resolved
from kai_fleet.isolation.bounds import (
    GPU_RESOURCE,
    Bounds,
    Text,
    scheduler,
    sorted_names,
    without_empty,
)
from kai_fleet.isolation.namespace_args import TeamNamespaceArgs
from kai_fleet.isolation.policies import Object, binding, policy, policy_name
from kai_fleet.releases.queue_bounds import queue_spec_bounds
from kai_fleet.wording import listed

# TeamNamespaceArgs (on the host) or QueueGuardArgs (inside). To these Team adds `gpu_sharing` and
# `pod_groups`: KAI takes a pod's queue from a PodGroup that KAI did not create.
Args = Mapping[str, Any]

_QUEUES_IN_A_MESSAGE = 12
_PODS = [
    {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["*"],
        "resources": ["pods"],
    }
]


def is_on_host(args: TeamNamespaceArgs) -> bool:
    """Whether a team has a guard on the host.

    It has one if the host's KAI schedules its pods and it has queues, unless `guard` is `off`.
    """
    if scheduler(args) != "host" or not args.get("queues"):
        return False
    return args.get("guard", "deny") != "off"


def bindings(
    team: str,
    mode: str,
    suffix: str = "",
    namespace: Text | None = None,
) -> dict[str, Object]:
    """The bindings of the policy `queues`, by the last part of their resources' names.

    One is for pods, with `mode`, one of those of `binding`; the other warns clients that apply
    objects with a pod template. On the host they apply in one namespace, inside a vCluster (whose
    policies have a suffix) everywhere: that is `namespace` None. Raises KeyError for another mode.
    """
    queues_policy = policy_name("queues", suffix)
    return {
        "binding": binding(
            f"kai-fleet-queues-{team}",
            queues_policy,
            mode,
            namespace=namespace,
            match={"resourceRules": _PODS},
        ),
        "templates-binding": binding(
            f"kai-fleet-templates-{team}",
            queues_policy,
            "warn",
            namespace=namespace,
            match={"excludeResourceRules": _PODS},
        ),
    }


def inside(
    team: str,
    queues: Iterable[Text],
    args: Args,
) -> tuple[dict[str, Object], dict[str, Object]]:
    """The policies inside a vCluster with their bounds as constants, and the bindings of these.

    Both are by the last part of their resources' names. The guard `outside-queues`, of pods that
    ask for GPUs without KAI, is left out if `outside` is `allow`; any text but `deny` makes it
    audit. Raises KeyError for a mode that `binding` does not have.

    Args:
        team: The team, whose name ends those of the policies.
        queues: Leaf queues that pods may name.
        args: QueueGuardArgs, with `gpu_sharing` and `pod_groups` of the KAI inside.
    """
    mode = args.get("mode", "deny")
    suffix = f"-{team}"
    policies = {
        "policy": _with_bounds("queues", suffix, queue_bounds(team, queues, mode, args)),
        "specs-policy": _with_bounds("queue-specs", suffix, queue_spec_bounds()),
    }
    bound = bindings(team, mode, suffix)
    bound["specs-binding"] = binding(policy_name("queue-specs", suffix), mode=mode)
    outside = args.get("outside", "deny")
    if outside != "allow":
        outside_bounds = {"team": team, "gpuResource": args.get("gpu_resource", GPU_RESOURCE)}
        outside_mode = "deny" if outside == "deny" else "audit"
        policies["outside-policy"] = _with_bounds("outside-queues", suffix, outside_bounds)
        bound["outside-binding"] = binding(policy_name("outside-queues", suffix), mode=outside_mode)
    return policies, bound


def _with_bounds(guard: str, suffix: str, bounds: Mapping[str, Text]) -> Object:
    """A policy with its bounds as constants. With Outputs among these its spec is an Output."""

    def spec(resolved_bounds: Mapping[str, str]) -> Object:
        return dict(policy(guard, suffix, resolved_bounds)["spec"])

    return {**policy(guard, suffix), "spec": resolved(spec, dict(bounds))}


def queue_bounds(
    team: str,
    queues: Iterable[Text],
    mode: str,
    args: Args,
) -> Bounds:
    """The bounds of pods that name these leaf queues, without the empty ones.

    Args:
        team: The team.
        queues: Leaf queues that pods may name. Messages list the first of them by name.
        mode: `deny` or `audit`, for messages: any other text counts as `audit`.
        args: TeamNamespaceArgs or QueueGuardArgs. Without `queue_prefix` its `foreign_queues` do
            not count, without `gpu_sharing` GPUs are shared, and `pod_groups` has to be plain.
    """
    prefix = args.get("queue_prefix", "")
    foreign_queues = args.get("foreign_queues", []) if prefix else []
    bounds: Bounds = {
        "team": team,
        "queues": sorted_names(queues),
        "allowed": resolved(_allowed_queues, list(queues), prefix),
        "queuePrefix": prefix,
        "foreignQueues": sorted_names(foreign_queues),
        "podGroups": "true" if args.get("pod_groups") else "",
        "sharing": resolved(lambda on: "true" if on else "false", args.get("gpu_sharing", True)),
        "become": "denied" if mode == "deny" else "warned about",
    }
    return without_empty(bounds)


def _allowed_queues(queues: Iterable[str], prefix: str) -> str:
    """The queues that pods may name, for the end of a message: `a, b or c, or a queue named ml-…`.

    They are sorted: the engine hands a program its queues in another order than the file has. At
    most twelve are named.
    """
    names = listed(sorted(queues), limit=_QUEUES_IN_A_MESSAGE)
    if not names:
        names = "none: the team has no leaf queue"
    return f"{names}, or a queue named {prefix}…" if prefix else names
