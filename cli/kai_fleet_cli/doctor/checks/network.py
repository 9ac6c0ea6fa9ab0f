"""Whether network policies keep teams apart on this host, as far as it shows, and fit it."""

from collections.abc import Iterator
from typing import Final

from kai_fleet.isolation.network_policies import is_internet
from kai_fleet.kube.objects import KubeObject
from kai_fleet.settings.sections.isolation import Network
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot

# What the DaemonSets, or a container of theirs, are called that enforce NetworkPolicies.
_ENFORCE: Final = (
    *("anetd", "antrea", "azure-npm", "calico", "canal", "cilium", "kindnet"),
    *("kube-network-policies", "kube-ovn", "kube-router", "ovn", "terway", "weave"),
)
# Amazon's has an agent for it in every pod, which does nothing unless it is told to.
_AMAZON: Final = "aws-node"
_AMAZON_ON: Final = "--enable-network-policy=true"
_BUILT_IN: Final = "+k3s"  # a distribution that enforces them in a process of its own
_FAKE: Final = "kwok.x-k8s.io/node"  # nothing runs on such a node: the sandbox's
_KEY: Final = "kai-fleet:isolation.network"


def check_plugin(snapshot: Snapshot) -> Findings:
    """The host, where a team has network policies; nothing where nothing is to be known."""
    host = snapshot.host
    daemon_sets = sorted(host.all("daemonsets"), key=lambda item: item.name)
    nodes = _real_nodes(host)
    if not _networks(snapshot) or "daemonsets" not in host.objects or not nodes:
        return
    enforcing = [item for item in daemon_sets if _enforces(item)]
    if any(_BUILT_IN in str(value_at(it.status, "nodeInfo.kubeletVersion")) for it in nodes):
        yield host.well("network plugin")
    elif enforcing:
        yield from host.or_well(_not_everywhere(host, enforcing), "network plugin")
    elif any(item.name == _AMAZON for item in daemon_sets):
        yield host.warning(
            "network plugin",
            f"the DaemonSet {_AMAZON} enforces no NetworkPolicies: its agent is not told to"
            f" ({_AMAZON_ON}); pods of one team may reach those of others",
            "write enableNetworkPolicy: true in the configuration of the add-on vpc-cni;"
            " docs/isolation.md says what rests on it",
        )
    else:
        names = sorted({item.name for item in daemon_sets})
        yield host.warning(
            "network plugin",
            "none that is known to enforce NetworkPolicies shows among the DaemonSets"
            f" ({', '.join(names[:5]) or 'there are none'}): pods of one team may reach those of"
            " others",
            "see which plugin the cluster has; flannel alone enforces none. Install one that does,"
            " such as Calico or Cilium; docs/isolation.md says what rests on it",
        )


def check_addresses(snapshot: Snapshot) -> Findings:
    """Each way in which teams' networks are configured, once; nothing on a host of fake nodes."""
    host, networks = snapshot.host, _networks(snapshot)
    if networks and _real_nodes(host):
        problems = (*_api_port(host, networks), *_public_addresses(host, networks))
        yield from host.or_well(problems, "addresses of the host")


def _networks(snapshot: Snapshot) -> list[Network]:
    """What the teams that have network policies say of them."""
    every = (team.wanted.isolation for team in snapshot.teams.values())
    return [it.network for it in every if it is not None and it.on and it.network.enabled]


def _real_nodes(host: ClusterState) -> list[KubeObject]:
    return [node for node in host.all("nodes") if _FAKE not in node.annotations]


def _enforces(item: KubeObject) -> bool:
    """Whether a DaemonSet enforces them, by its name and its containers that stay."""
    containers = value_at(item.spec, "template.spec.containers") or []
    names = [item.name, *(str(container.get("name")) for container in containers)]
    if any(part in name for name in names for part in _ENFORCE):
        return True
    told = any(_AMAZON_ON in (container.get("args") or []) for container in containers)
    return item.name == _AMAZON and told


def _not_everywhere(host: ClusterState, enforcing: list[KubeObject]) -> Findings:
    """Where it is not ready, nobody enforces anything, or pods have no network at all."""
    for item in enforcing:
        wanted = item.status.get("desiredNumberScheduled")
        ready = item.status.get("numberReady") or 0
        if wanted is not None and ready < wanted:
            yield host.warning(
                f"DaemonSet {item.name}",
                f"it is ready on {ready} of {wanted} nodes: on the others NetworkPolicies may not"
                " be enforced, and pods of one team reach those of others",
                f"`{host.kubectl} -n {item['metadata'].get('namespace')} get pods -o wide` shows"
                " where it is not",
            )
            return


def _api_port(host: ClusterState, networks: list[Network]) -> Findings:
    """The Service of the API server says at which port it listens."""
    service = host.named("services", "kubernetes", "default")
    ports = [] if service is None else service.spec.get("ports") or []
    for port in {it["targetPort"] for it in ports if isinstance(it.get("targetPort"), int)}:
        lacking = next((it.api_ports for it in networks if port not in it.api_ports), None)
        if lacking is not None:
            yield host.broken(
                "API server of the host",
                f"it listens at port {port}, and network policies let vClusters reach ports"
                f" {', '.join(map(str, lacking))}: where they are enforced no vCluster starts",
                f"write {_KEY}.apiPorts: [443, {port}]",
            )


def _public_addresses(host: ClusterState, networks: list[Network]) -> Findings:
    """Nodes and pods whose addresses count as internet, which every team reaches."""
    public = [
        (node.name, address)
        for node in host.all("nodes")
        for address in _addresses(node)
        if any(is_internet(address, network) for network in networks)
    ]
    if public:
        name, address = public[0]
        more = f", and {len(public) - 1} more" if len(public) > 1 else ""
        yield host.warning(
            "addresses of the host",
            f"node {name} has {address}{more}, which is no private address: teams' pods reach it as"
            " internet",
            f"write the ranges of nodes and pods in {_KEY}.private",
        )


def _addresses(node: KubeObject) -> Iterator[str]:
    for each in node.status.get("addresses") or []:
        if each.get("type") == "InternalIP":
            yield str(each.get("address"))
    for cidr in node.spec.get("podCIDRs") or []:
        yield str(cidr).partition("/")[0]
