"""What one team may have on the host, as the guards' policies read it: annotations of its
namespace, and the bindings that keep it off the nodes of others.

Args are those of a TeamNamespace.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_network
from typing import Any, Final

import pulumi

from kai_fleet.guards.policies import Object, binding, content, policy_name
from kai_fleet.inputs import has_output, joined, resolved, toleration_text
from kai_fleet.releases.keys import NO_GPU_CLASSES
from kai_fleet.releases.sources import KAI_IMAGES

Args = Mapping[str, Any]
Inputs = Mapping[str, pulumi.Input[str]]

KAI_PRIORITIES: Final = ("train", "build-preemptible", "build", "inference")
GPU_RESOURCE: Final = "nvidia.com/gpu"
_OF_V1: Final = {"apiGroups": [""], "apiVersions": ["v1"]}
# What comes with its node.
_PLACED: Final = [
    {**_OF_V1, "operations": ["CREATE"], "resources": ["pods"]},
    {**_OF_V1, "operations": ["CREATE", "UPDATE"], "resources": ["persistentvolumeclaims"]},
]
_GPU_NAME: Final = re.compile(
    r"^(([^/]*[.])?(nvidia|amd|habana)[.](com|ai)|gpu[.]intel[.]com"
    r"|deviceclass[.]resource[.]kubernetes[.]io)/|/.*(gpu|mig-)"
)


def isolation(args: Args) -> Args:
    """The part about isolation, empty where it is not given."""
    part: Args = args.get("isolation", {})
    return part


def network(args: Args) -> Args:
    """The part about the network, empty where it is not given."""
    part: Args = isolation(args).get("network", {})
    return part


def level(args: Args) -> str:
    """How strictly the team is kept from others."""
    return str(isolation(args).get("level", "baseline"))


def shares_nodes(args: Args) -> bool:
    """Whether pods of other teams may be on its nodes."""
    return args.get("scheduler", "inside") != "inside" or not args.get("node_pool")


def closes_network(args: Args) -> bool:
    """Whether network policies are declared."""
    return level(args) != "off" and bool(network(args).get("enabled", True))


def pod_bounds(team: str, args: Args) -> dict[str, pulumi.Input[str]]:
    """What the team's pods may have, by the name of the bound. One that is absent grants nothing;
    neither does an Output that turns out to be empty.
    """
    own, net, place = isolation(args), network(args), args.get("scheduler", "inside")
    open_network, private = not net.get("enabled", True), net.get("private", ())
    gpu, pool = args.get("gpu_resource", GPU_RESOURCE), args.get("node_pool", {})
    others = sorted({*args.get("devices", {}), *args.get("slices", {})} - {gpu})
    by_host, restricted = place == "host", level(args) == "restricted"
    priorities = [*(KAI_PRIORITIES if by_host else ()), *own.get("priority_classes", ())]
    grace = own.get("bounds", {}).get("grace_seconds", 3600)
    every = (*content("limits")["never_public"], *private)
    networks = (ip_network(cidr, strict=False) for cidr in every if ":" not in cidr)
    bounds: dict[str, pulumi.Input[str]] = {
        "team": team,
        "kai": place,
        "devices": ",".join([gpu, *others]),
        "gpus": ",".join([gpu, *filter(_GPU_NAME.search, others)]),
        "deviceClasses": sorted_names(args.get("device_classes", {})),
        "runtimeClasses": sorted_names(own.get("runtime_classes", NO_GPU_CLASSES)),
        # A team whose scheduler is inside has its nodes to itself: the rules see to that.
        "sharedNodes": "true" if shares_nodes(args) else "false",
        "queuesOnly": _flag(by_host),
        "pool": _labels(pool),
        "controlPool": _labels(args.get("control_pool", {})),
        "foreignPools": joined(",", (_labels(each, "&") for each in args.get("foreign_pools", ()))),
        "namesNodes": _flag(place == "inside"),
        "priorities": joined(",", priorities),
        "besideKai": _flag(args.get("host_kai")),
        "queues": joined(",", args.get("queues", ()) if by_host else ()),
        "queuePrefix": args.get("queue_prefix", ""),
        "foreignQueues": sorted_names(args.get("foreign_queues", ())),
        "endpoints": _flag(net.get("endpoints") or open_network),
        # As numbers: every Kubernetes with policies compares those, and networks only newer ones.
        "privateRanges": ",".join(f"{int(net[0])}-{int(net[-1])}" for net in networks),
        "privateV6": _flag(any(":" in cidr for cidr in private)),
        "annotations": sorted_names([*own.get("annotations", ()), *_annotations(args)]),
        "volumes": sorted_names(own.get("volumes", ())),
        "volumeClasses": sorted_names(own.get("volume_classes", ())),
        # A whole number; other languages send every number as a fraction.
        "graceSeconds": resolved(lambda known: str(int(known)), grace),
        "tolerations": sorted_names(map(toleration_text, args.get("tolerations", ()))),
        "nvFractions": resolved(_flag, args.get("nv_fractions")) if by_host else "",
        "restricted": _flag(restricted),
        "kaiImages": resolved(_places, args.get("kai_images", KAI_IMAGES)) if restricted else "",
    }
    return without_empty(bounds)


def _annotations(args: Args) -> list[str]:
    """Keys and domains that other arguments than `annotations` let pods have."""
    net, read = network(args), content("limits")["annotations"]
    joins_others = net.get("attachments") or not net.get("enabled", True)
    inside = args.get("scheduler", "inside") == "inside"
    return [*(read["kai_inside"] if inside else ()), *(read["networks"] if joins_others else ())]


def without_empty(bounds: Inputs) -> dict[str, pulumi.Input[str]]:
    """Leave out what is empty. An Output stays, whatever it turns out to be."""
    return {key: value for key, value in bounds.items() if value or has_output(value)}


def node_bindings(team: str, namespace: Any, args: Args) -> dict[str, Object]:
    """What keeps the team's pods off nodes of others, by the last part of the resources' names.

    Of a team with a pool whose pods name their nodes: off whatever lacks any label of the pool. Of
    a team without: off the pools of others. Pods of other teams are held to their pool by its
    labels.
    """
    pool, selectors = args.get("node_pool"), list[Object]()
    if pool and args.get("scheduler", "inside") == "inside":
        selectors = [_selecting(key, "NotIn", [value]) for key, value in _sorted(pool)]
    elif not pool:
        # One selector for all pools that differ in the value of one label, one for each other pool.
        foreign = [_sorted(each) for each in args.get("foreign_pools", ())]
        values: dict[str, list[pulumi.Input[str]]] = defaultdict(list)
        for key, value in (labels[0] for labels in foreign if len(labels) == 1):
            values[key].append(value)
        selectors = [_selecting(key, "In", among) for key, among in sorted(values.items())]
        selectors += [{"matchLabels": dict(labels)} for labels in foreign if len(labels) > 1]
    bindings = {}
    for number, selector in enumerate(selectors):
        nth = f".{number}" if number else ""
        bindings[f"nodes-binding{nth}"] = binding(
            f"kai-fleet-nodes-{team}{nth}",
            policy_name("nodes"),
            namespace=namespace,
            # Pods of a pool are bound to it by their node selector, their control plane to its own.
            match={"resourceRules": _PLACED} if pool else None,
            # Where no such node is, there is none to keep off.
            param_ref={"selector": selector, "parameterNotFoundAction": "Allow"},
        )
    return bindings


def _selecting(key: str, operator: str, values: Sequence[pulumi.Input[str]]) -> Object:
    among = resolved(lambda every: sorted({*every}), list(values))
    return {"matchExpressions": [{"key": key, "operator": operator, "values": among}]}


def _sorted(labels: Inputs) -> list[tuple[str, pulumi.Input[str]]]:
    return [(key, labels[key]) for key in sorted(labels)]


def _flag(on: Any) -> str:
    return "true" if on else ""


def sorted_names(names: Iterable[pulumi.Input[str]]) -> pulumi.Input[str]:
    """A list as a bound has it, the same text in whichever order it was given."""
    return resolved(lambda every: ",".join(sorted(every)), list(names))


def _labels(pool: Inputs, between: str = ",") -> pulumi.Input[str]:
    return joined(between, [joined("=", label) for label in _sorted(pool)])


def _places(images: Iterable[str]) -> str:
    """Each up to a slash: else a name that only begins so would pass, too."""
    return ",".join(f"{place.rstrip('/')}/" for place in images)
