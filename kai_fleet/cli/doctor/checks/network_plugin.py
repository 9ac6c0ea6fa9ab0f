"""Whether somebody enforces the network policies that keep teams apart, as far as it shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kai_fleet.cli.doctor.cluster_state import Snapshot
from kai_fleet.cli.doctor.finding import Finding
from kai_fleet.cli.doctor.objects import Object, annotations_of, name_of

NAME = "network-plugin"
# What the DaemonSets are called of network plugins that enforce NetworkPolicies.
_ENFORCE: Final = (
    "anetd",
    "antrea",
    "aws-node",
    "azure-npm",
    "calico",
    "canal",
    "cilium",
    "kindnet",
    "kube-ovn",
    "kube-router",
    "ovn",
    "terway",
    "weave",
)
# Distributions that enforce them in a process of their own.
_BUILT_IN: Final = ("+k3s",)
_FAKE: Final = "kwok.x-k8s.io/node"


def check(look: Snapshot) -> Iterator[Finding]:
    """The host, where a team has network policies; nothing where nothing is to be known."""
    host = look.host
    wanted = [team.wanted.isolation for team in look.teams.values()]
    if not any(it is not None and it.on and it.network.enabled for it in wanted):
        return
    found = sorted({name_of(item) for item in host.all("daemonsets")})
    nodes = [node for node in host.all("nodes") if not _fake(node)]
    if not found or not nodes:
        return
    if any(part in name for name in found for part in _ENFORCE) or any(map(_built_in, nodes)):
        yield host.well(NAME, "network plugin")
        return
    yield host.warning(
        NAME,
        "network plugin",
        "none that is known to enforce NetworkPolicies shows among the DaemonSets"
        f" ({', '.join(found[:5])}): pods of one team may reach those of others",
        "see which plugin the cluster has; flannel alone enforces none. Install one that does, such"
        " as Calico or Cilium; docs/isolation.md says what rests on it",
    )


def _fake(node: Object) -> bool:
    return _FAKE in annotations_of(node)


def _built_in(node: Object) -> bool:
    version = str(((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion"))
    return any(part in version for part in _BUILT_IN)
