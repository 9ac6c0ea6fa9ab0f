"""The guard of queues: what one team's pods may ask of KAI, on the host and inside its vCluster.

KAI lets any pod name any queue, and leaves one that names a wrong queue Pending, mostly
without a word; this denies it at once and names the right ones. It looks at pods, so a queue named
only on their Deployment is denied too; only the Deployment's events would say so, and therefore
whoever applies it is warned in the same words. Pods that KAI does not schedule are not judged,
KAI's own components and reservation pods among them. Inside, it judges the specs of queues, too.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pulumi

from kai_fleet.guards.bounds import GPU_RESOURCE, Args, sorted_names, without_empty
from kai_fleet.guards.policies import Object, binding, policy, policy_name
from kai_fleet.inputs import resolved
from kai_fleet.releases.queue_bounds import of_guards
from kai_fleet.wording import listed

# A denial is read by a person: of many queues it names the first.
_QUEUES_IN_A_MESSAGE: Final = 12
_PODS: Final = [
    {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["pods"]}
]


def is_on_host(args: Args) -> bool:
    """Whether the host's KAI takes pods of a team with these TeamNamespaceArgs by its queues."""
    by_host = args.get("scheduler") == "host" and bool(args.get("queues"))
    return by_host and args.get("guard", "deny") != "off"


def bindings(team: str, mode: str, suffix: str = "", namespace: Any = None) -> dict[str, Object]:
    """The bindings of the queues' policy, by the last part of the resources' names: for pods, and
    for what makes pods, of which whoever applies it is warned. In one namespace of the host, or in
    a vCluster whose policies have a suffix.
    """
    queues, templates = policy_name("queues", suffix), {"excludeResourceRules": _PODS}
    of_pods = {"match": {"resourceRules": _PODS}, "namespace": namespace}
    of_templates = {"match": templates, "namespace": namespace}
    return {
        "binding": binding(f"kai-fleet-queues-{team}", queues, mode, **of_pods),
        "templates-binding": binding(f"kai-fleet-templates-{team}", queues, "warn", **of_templates),
    }


def inside(
    team: str, queues: Iterable[pulumi.Input[str]], args: Args
) -> tuple[dict[str, Object], dict[str, Object]]:
    """The policies of a vCluster with the bounds written in them, and their bindings, each by the
    last part of its resource's name.

    Args:
        team: name of the team, of which the policies have theirs.
        queues: leaf queues that pods may name.
        args: QueueGuardArgs.
    """

    def bounded(kind: str, bounds: Mapping[str, pulumi.Input[str]]) -> Object:
        spec = resolved(lambda known: policy(kind, suffix, known)["spec"], dict(bounds))
        return {**policy(kind, suffix), "spec": spec}

    mode, outside, suffix = args.get("mode", "deny"), args.get("outside", "deny"), f"-{team}"
    bound = bindings(team, mode, suffix)
    policies = {
        "policy": bounded("queues", queue_bounds(team, queues, mode, args)),
        "specs-policy": bounded("queue-specs", of_guards()),
    }
    specs = policy_name("queue-specs", suffix)
    bound["specs-binding"] = binding(specs, specs, mode)
    if outside != "allow":
        gpus = {"team": team, "gpuResource": args.get("gpu_resource", GPU_RESOURCE)}
        policies["outside-policy"] = bounded("outside-queues", gpus)
        name = policy_name("outside-queues", suffix)
        bound["outside-binding"] = binding(name, name, "deny" if outside == "deny" else "audit")
    return policies, bound


def queue_bounds(
    team: str, queues: Iterable[pulumi.Input[str]], mode: str, args: Args
) -> dict[str, pulumi.Input[str]]:
    """What pods may ask of these leaf queues, by the name of the bound.

    `mode` is `deny` or `audit`; `args` are TeamNamespaceArgs or QueueGuardArgs.
    """
    # Sorted: the engine hands a program its queues in another order than the file has them.
    prefix = args.get("queue_prefix", "")

    def allowed(names: Iterable[str], prefix: str) -> str:
        named = listed(sorted(names), limit=_QUEUES_IN_A_MESSAGE)
        named = named or "none: the team has no leaf queue"
        return f"{named}, or a queue named {prefix}…" if prefix else named

    bounds: dict[str, pulumi.Input[str]] = {
        "team": team,
        "queues": sorted_names(queues),
        "allowed": resolved(allowed, list(queues), prefix),
        "queuePrefix": prefix,
        "foreignQueues": sorted_names(args.get("foreign_queues", ())) if prefix else "",
        "podGroups": "true" if args.get("pod_groups") else "",
        "sharing": resolved(lambda on: "true" if on else "false", args.get("gpu_sharing", True)),
        "become": "denied" if mode == "deny" else "warned about",
    }
    return without_empty(bounds)
