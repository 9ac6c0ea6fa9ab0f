"""The bounds of one team on the host.

The guards' policies read them: as annotations of the team's namespace, and as bindings that keep
the team's pods off the nodes of other teams.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_network

import pulumi

from kai_fleet.declaring.inputs import Labels, has_output, joined, resolved, toleration_text
from kai_fleet.isolation.namespace_args import IsolationArgs, NetworkArgs, TeamNamespaceArgs
from kai_fleet.isolation.policies import Object, binding, content, policy_name
from kai_fleet.releases.keys import KAI_PRIORITIES, NO_GPU_CLASSES
from kai_fleet.releases.sources import KAI_IMAGES
from kai_fleet.values import value_at

Text = pulumi.Input[str]
Bounds = dict[str, Text]  # by the name of the bound

GPU_RESOURCE = "nvidia.com/gpu"
# A key of chart values.
_CONTROL_PRIORITY = "controlPlane.statefulSet.scheduling.priorityClassName"
# Extended resources that are GPUs or parts of them, or may be, by their name.
_GPU_NAME = re.compile(
    r"^(([^/]*[.])?(nvidia|amd|habana)[.](com|ai)|gpu[.]intel[.]com"
    r"|deviceclass[.]resource[.]kubernetes[.]io)/|/.*(gpu|mig-)"
)


def isolation(args: TeamNamespaceArgs) -> IsolationArgs:
    """The argument `isolation`, empty by default."""
    return args.get("isolation", {})


def network(args: TeamNamespaceArgs) -> NetworkArgs:
    """The argument `isolation.network`, empty by default."""
    return isolation(args).get("network", {})


def isolation_level(args: TeamNamespaceArgs) -> str:
    """The isolation level: `baseline` (the default), `restricted` or `off`."""
    return isolation(args).get("level", "baseline")


def scheduler(args: TeamNamespaceArgs) -> str:
    """The KAI that schedules the team's pods: `inside` (the default), `host` or `none`.

    These are the modes virtual, host and default of a stack file.
    """
    return args.get("scheduler", "inside")


def shares_nodes(args: TeamNamespaceArgs) -> bool:
    """Whether the team counts as one that shares nodes with others.

    Only a team with a pool and its scheduler inside its vCluster does not: with another scheduler
    its pool makes no difference. The rules refuse a team whose scheduler is inside its vCluster and
    that shares its nodes.
    """
    return scheduler(args) != "inside" or not args.get("node_pool")


def closes_network(args: TeamNamespaceArgs) -> bool:
    """Whether the team's namespace has NetworkPolicies."""
    return isolation_level(args) != "off" and network(args).get("enabled", True)


def pod_bounds(team: str, args: TeamNamespaceArgs) -> Bounds:
    """The bounds of the team's pods, without the empty ones.

    To a policy an Output that resolves to "" is an absent bound, too. Without a bound that permits
    something (`devices`, `tolerations`) nothing of it is permitted; without one that forbids
    something (`restricted`, `foreignPools`) nothing of it is forbidden. Without `pool` the team
    shares nodes, and without `sharedNodes` it counts as one that does.

    Raises:
        ValueError: As `_ipv4_ranges` does.
        KeyError: A toleration has no key.
    """
    bounds = {
        "team": team,
        **_device_bounds(args),
        **_node_bounds(args),
        **_scheduler_bounds(args),
        **_network_bounds(args),
        **_exceptions(args),
        **_restricted_bounds(args),
    }
    return without_empty(bounds)


def _device_bounds(args: TeamNamespaceArgs) -> Bounds:
    """Extended resources and DeviceClasses that pods may request, joined by commas.

    `devices` has the GPU resource first, also if the team has no GPUs, for its quota refuses those;
    then the others in alphabetical order. `gpus` has those of them that are GPUs by their name, and
    the GPU resource first, whatever its name.
    """
    gpu = args.get("gpu_resource", GPU_RESOURCE)
    granted = {*args.get("devices", {}), *args.get("slices", {})}
    other_devices = sorted(granted - {gpu})
    return {
        "devices": ",".join([gpu, *other_devices]),
        "gpus": ",".join([gpu, *filter(_GPU_NAME.search, other_devices)]),
        "deviceClasses": sorted_names(args.get("device_classes", {})),
    }


def _node_bounds(args: TeamNamespaceArgs) -> Bounds:
    """Nodes that pods may run on, and taints that they may tolerate.

    `foreignPools` has its pools in their order, with `&` between the labels of one. `sharedNodes`
    is written as "false", too: policies take an absent one for "true".

    Raises KeyError for a toleration without a key.
    """
    foreign_pools = args.get("foreign_pools", [])
    return {
        "sharedNodes": "true" if shares_nodes(args) else "false",
        "pool": _labels(args.get("node_pool", {})),
        "controlPool": _labels(args.get("control_pool", {})),
        "foreignPools": joined(",", [_labels(pool, "&") for pool in foreign_pools]),
        "namesNodes": _flag(scheduler(args) == "inside"),
        "tolerations": sorted_names(map(toleration_text, args.get("tolerations", []))),
    }


def _scheduler_bounds(args: TeamNamespaceArgs) -> Bounds:
    """The KAI that schedules pods, and the queues and priority classes that pods may name.

    With the KAI of the host pods get GPUs only by its queues (`queuesOnly`), and `priorities` has
    KAI's own classes first. Without it there are no `queues`. Only the pods of the control plane
    may name `controlPriority`, that of its chart values.
    """
    priorities = isolation(args).get("priority_classes", [])
    bounds: Bounds = {
        "kai": scheduler(args),
        "besideKai": _flag(args.get("host_kai")),
        "priorities": joined(",", priorities),
        "controlPriority": value_at(args.get("vcluster_values"), _CONTROL_PRIORITY) or "",
        "queuePrefix": args.get("queue_prefix", ""),
        "foreignQueues": sorted_names(args.get("foreign_queues", [])),
    }
    if scheduler(args) == "host":
        bounds["queuesOnly"] = "true"
        bounds["queues"] = joined(",", args.get("queues", []))
        bounds["priorities"] = joined(",", [*KAI_PRIORITIES, *priorities])
        bounds["nvFractions"] = resolved(_flag, args.get("nv_fractions"))
    return bounds


def _network_bounds(args: TeamNamespaceArgs) -> Bounds:
    """Addresses that Endpoints and EndpointSlices may not lead to.

    `endpoints`, which is also set without NetworkPolicies, lifts this, and lets Services be of type
    ExternalName. With `privateV6` no IPv6 address is public: ranges of IPv6 are not compared.

    Raises ValueError as `_ipv4_ranges` does.
    """
    rules = network(args)
    private = rules.get("private", [])
    is_open = not rules.get("enabled", True)
    never_public = content("limits")["never_public"]
    return {
        "endpoints": _flag(rules.get("endpoints") or is_open),
        "privateRanges": _ipv4_ranges([*never_public, *private]),
        "privateV6": _flag(any(":" in cidr for cidr in private)),
    }


def _ipv4_ranges(cidrs: Iterable[str]) -> str:
    """The first and last address of each IPv4 network as numbers, such as `0-16777215`.

    All versions of Kubernetes with ValidatingAdmissionPolicies can compare numbers in CEL, but only
    newer ones networks. Ranges have the order of their networks and commas between them. Texts with
    a colon, as IPv6 networks have, are left out. Raises ValueError for another that is no network.
    """
    ranges = []
    for cidr in cidrs:
        if ":" in cidr:
            continue
        addresses = ip_network(cidr, strict=False)
        ranges.append(f"{int(addresses[0])}-{int(addresses[-1])}")
    return ",".join(ranges)


def _exceptions(args: TeamNamespaceArgs) -> Bounds:
    """What the platform allows pods and volume claims in addition, and the longest grace period.

    Without the argument `runtime_classes` those without GPUs; with an empty one none.
    """
    exceptions = isolation(args)
    runtime_classes = exceptions.get("runtime_classes", NO_GPU_CLASSES)
    annotations = [*exceptions.get("annotations", []), *_implied_annotations(args)]
    grace_seconds = exceptions.get("bounds", {}).get("grace_seconds", 3600)
    return {
        "runtimeClasses": sorted_names(runtime_classes),
        "annotations": sorted_names(annotations),
        "volumes": sorted_names(exceptions.get("volumes", [])),
        "volumeClasses": sorted_names(exceptions.get("volume_classes", [])),
        "graceSeconds": amount(grace_seconds),
    }


def _implied_annotations(args: TeamNamespaceArgs) -> list[str]:
    """Keys and domains of annotations that pods may have because of other arguments."""
    rules = network(args)
    keys = content("limits")["annotations"]
    annotations: list[str] = []
    if scheduler(args) == "inside":
        annotations += keys["kai_inside"]
    if rules.get("attachments") or not rules.get("enabled", True):
        annotations += keys["networks"]
    return annotations


def _restricted_bounds(args: TeamNamespaceArgs) -> Bounds:
    """The level `restricted`, and the registries of KAI's images that it admits."""
    if isolation_level(args) != "restricted":
        return {}
    return {
        "restricted": "true",
        # With a slash at the end: `ghcr.io/kai` does not admit `ghcr.io/kai2`.
        "kaiImages": resolved(
            lambda images: ",".join(f"{path.rstrip('/')}/" for path in images),
            args.get("kai_images", KAI_IMAGES),
        ),
    }


def without_empty(bounds: Mapping[str, Text]) -> Bounds:
    """Drop the bounds that are "". Outputs are kept, whatever they resolve to."""
    return {name: value for name, value in bounds.items() if value or has_output(value)}


def node_bindings(team: str, namespace: Text, args: TeamNamespaceArgs) -> dict[str, Object]:
    """The bindings of the policy `nodes`, by the last part of their resources' names.

    That is `nodes-binding`, and for further ones `nodes-binding.1` and so on. Each bars the nodes
    that a label selector of its own selects:

    - If the team has a pool and its scheduler is inside, one binding for each label of the pool
      bars every node that lacks the label.
    - If the team has no pool, they bar the pools of other teams.
    - Any other team needs none: the node selector of its pods keeps them in its pool.
    """
    # Where a scheduler puts a pod is judged only in a team without a pool. In other teams pods have
    # the node selector of the pool, or as control plane that of the control pool.
    naming_a_node = {"resourceRules": content("limits")["naming_a_node"]}
    match = naming_a_node if args.get("node_pool") else None
    bindings = {}
    for number, selector in enumerate(_barred_nodes(args)):
        suffix = f".{number}" if number else ""
        bindings[f"nodes-binding{suffix}"] = binding(
            f"kai-fleet-nodes-{team}{suffix}",
            policy_name("nodes"),
            namespace=namespace,
            match=match,
            # If the host has no such node, the policy has nothing to refuse.
            param_ref={"selector": selector, "parameterNotFoundAction": "Allow"},
        )
    return bindings


def _barred_nodes(args: TeamNamespaceArgs) -> list[Object]:
    """Label selectors of nodes that the team's pods may not run on, one for each binding."""
    pool = args.get("node_pool")
    if not pool:
        return _pool_selectors(args.get("foreign_pools", []))
    if scheduler(args) != "inside":
        return []
    return [_selector(key, "NotIn", [value]) for key, value in sorted(pool.items())]


def _pool_selectors(pools: Iterable[Labels]) -> list[Object]:
    """Label selectors of the nodes of some pools.

    Pools of one label with the same key share a selector; each other pool has one. A pool without
    labels has none.
    """
    values: dict[str, list[Text]] = defaultdict(list)
    selectors_of_several_labels = []
    for pool in pools:
        labels = sorted(pool.items())
        if len(labels) == 1:
            key, value = labels[0]
            values[key].append(value)
        elif labels:
            selectors_of_several_labels.append({"matchLabels": dict(labels)})
    selectors = [_selector(key, "In", values[key]) for key in sorted(values)]
    return selectors + selectors_of_several_labels


def _selector(
    key: str,
    operator: str,
    values: Sequence[Text],
) -> Object:
    """A label selector with one expression; its values are sorted, without duplicates."""
    sorted_values = resolved(lambda texts: sorted(set(texts)), list(values))
    return {"matchExpressions": [{"key": key, "operator": operator, "values": sorted_values}]}


def _labels(labels: Labels, separator: str = ",") -> Text:
    """Labels in the order of their keys, such as `a=1,b=2`; "" for none."""
    pairs = [joined("=", label) for label in sorted(labels.items())]
    return joined(separator, pairs)


def _flag(on: object) -> str:
    """A switch as a bound: "true", or "" if it is off."""
    return "true" if on else ""


def amount(quantity: pulumi.Input[float | str]) -> Text:
    """A quantity as text: a text as it is, of a number the whole part.

    Languages other than Python send every number as a float. Raises ValueError or OverflowError for
    a plain number that is not finite.
    """
    return resolved(_whole_number, quantity)


def _whole_number(quantity: float | str) -> str:
    return quantity if isinstance(quantity, str) else str(int(quantity))


def sorted_names(names: Iterable[Text]) -> Text:
    """Names in alphabetical order with commas between them, so that no other order is a change."""
    return resolved(lambda texts: ",".join(sorted(texts)), list(names))
