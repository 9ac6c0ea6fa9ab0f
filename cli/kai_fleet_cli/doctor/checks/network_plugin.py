"""Whether somebody enforces the network policies that keep teams apart, as far as it shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.objects import Object, annotations_of, name_of, spec

NAME = "network-plugin"
# What the DaemonSets, or a container of theirs, are called that enforce NetworkPolicies.
_ENFORCE: Final = (
    "anetd",
    "antrea",
    "azure-npm",
    "calico",
    "canal",
    "cilium",
    "kindnet",
    "kube-network-policies",
    "kube-ovn",
    "kube-router",
    "ovn",
    "terway",
    "weave",
)
# Amazon's has an agent for it in every pod, which does nothing unless it is told to.
_AMAZON: Final = "aws-node"
_AMAZON_ON: Final = "--enable-network-policy=true"
# Distributions that enforce them in a process of their own.
_BUILT_IN: Final = ("+k3s",)
_FAKE: Final = "kwok.x-k8s.io/node"


def check(look: Snapshot) -> Iterator[Finding]:
    """The host, where a team has network policies; nothing where nothing is to be known."""
    host = look.host
    wanted = [team.wanted.isolation for team in look.teams.values()]
    if not any(it is not None and it.on and it.network.enabled for it in wanted):
        return
    found = sorted(host.all("daemonsets"), key=name_of)
    nodes = [node for node in host.all("nodes") if not is_fake(node)]
    if "daemonsets" not in host.objects or not nodes:
        return
    enforcing = [it for it in found if any(map(_enforces, _names(it))) or _amazon(it, on=True)]
    if any(map(_built_in, nodes)):
        yield host.well(NAME, "network plugin")
    elif enforcing:
        yield from _everywhere(host, enforcing)
    elif off := next((it for it in found if _amazon(it, on=False)), None):
        yield host.warning(
            NAME,
            "network plugin",
            f"the DaemonSet {name_of(off)} enforces no NetworkPolicies: its agent is not told to"
            f" ({_AMAZON_ON}); pods of one team may reach those of others",
            "write enableNetworkPolicy: true in the configuration of the add-on vpc-cni;"
            " docs/isolation.md says what rests on it",
        )
    else:
        names = sorted({name_of(item) for item in found})
        yield host.warning(
            NAME,
            "network plugin",
            "none that is known to enforce NetworkPolicies shows among the DaemonSets"
            f" ({', '.join(names[:5]) or 'there are none'}): pods of one team may reach those of"
            " others",
            "see which plugin the cluster has; flannel alone enforces none. Install one that does,"
            " such as Calico or Cilium; docs/isolation.md says what rests on it",
        )


def _everywhere(host: ClusterState, enforcing: list[Object]) -> Iterator[Finding]:
    """Where it is not ready, nobody enforces anything, or pods have no network at all."""
    for item in enforcing:
        status = item.get("status") or {}
        wanted, ready = (status.get(k) for k in ("desiredNumberScheduled", "numberReady"))
        if wanted is not None and (ready or 0) < wanted:
            where = f"-n {item['metadata'].get('namespace')}"
            yield host.warning(
                NAME,
                f"DaemonSet {name_of(item)}",
                f"it is ready on {ready or 0} of {wanted} nodes: on the others NetworkPolicies may"
                " not be enforced, and pods of one team reach those of others",
                f"`{host.kubectl} {where} get pods -o wide` shows where it is not",
            )
            return
    yield host.well(NAME, "network plugin")


def _names(item: Object) -> list[str]:
    """Of a DaemonSet and of what runs in it."""
    containers = (spec(item).get("template") or {}).get("spec", {}).get("containers") or []
    return [name_of(item), *(str(each.get("name")) for each in containers)]


def _enforces(name: str) -> bool:
    return any(part in name for part in _ENFORCE)


def _amazon(item: Object, *, on: bool) -> bool:
    """Whether this is Amazon's plugin, with its agent told to enforce policies or not."""
    if name_of(item) != _AMAZON:
        return False
    containers = (spec(item).get("template") or {}).get("spec", {}).get("containers") or []
    return on == any(_AMAZON_ON in (each.get("args") or []) for each in containers)


def is_fake(node: Object) -> bool:
    """Whether nothing runs on a node: the sandbox's are such."""
    return _FAKE in annotations_of(node)


def _built_in(node: Object) -> bool:
    version = str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion"))
    return any(part in version for part in _BUILT_IN)
