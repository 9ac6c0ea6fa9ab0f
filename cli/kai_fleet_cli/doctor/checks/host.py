"""Checks of what the host has to have for teams: Kubernetes, classes, enforced network policies.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object.
"""

from typing import Any

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.releases import version_key
from kai_fleet.releases.keys import NO_GPU_CLASSES
from kai_fleet.values import value_at
from kai_fleet.wording import listed
from kai_fleet_cli.doctor.checks import bounds
from kai_fleet_cli.doctor.faults import Affected, Faults
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState
from kai_fleet_policies.rules.upgrade_steps import host_refusal

_SHOWN_CLASSES = 10
# Parts of names of the DaemonSets, or of their containers, that enforce NetworkPolicies.
_NETWORK_PLUGINS = (
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
_AMAZON_FLAG = "--enable-network-policy=true"  # Amazon's agent enforces none without it
# By the key of a team that names such objects: their kind and resource.
CLASSES = {
    "vcluster.storageClass": ("StorageClass", "storageclasses"),
    "vcluster.access.class": ("IngressClass", "ingressclasses"),
    "vcluster.priorityClassName": ("PriorityClass", "priorityclasses"),
    "isolation.priorityClasses": ("PriorityClass", "priorityclasses"),
    "isolation.runtimeClasses": ("RuntimeClass", "runtimeclasses"),
}
GUARDS = "validatingadmissionpolicies"
_FAKE_NODE = "kwok.x-k8s.io/node"


def kubernetes(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield a cluster whose Kubernetes is too old for the guards that the stack requires in it.

    It is if it does not serve ValidatingAdmissionPolicies; its version is not read.
    """
    requires_guards = any(
        required.cluster == cluster.name and required.resource == GUARDS
        for required in snapshot.required
    )
    if requires_guards and not cluster.serves(GUARDS):
        yield Affected(cluster, "Kubernetes", "").broken(
            "is older than 1.30: it serves no ValidatingAdmissionPolicy, of which the guards are"
            " made",
            "upgrade it; that of a vCluster is vcluster.kubernetesVersion of its team",
        )


def versions(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a vCluster whose Kubernetes does not work on the newest kubelet of its host.

    Not one that another stack declares: its version is not known.
    """
    team = state.team
    kubelets = [
        str(value_at(node.status, "nodeInfo.kubeletVersion")) for node in snapshot.host.all("nodes")
    ]
    newest = max(kubelets, key=version_key, default="")
    refusal = host_refusal(str(team.version), str(team.kubernetes), newest)
    if refusal:
        yield Affected(snapshot.host, "vCluster", team.name).broken(*refusal)


def default_class(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a warning for a vCluster that will need the default StorageClass, if there is none.

    It needs one if its store has a volume and neither the team nor the chart's values name a class.
    Only before an update: afterwards the volume's claim has an event.
    """
    host = snapshot.host
    team = state.team
    if not snapshot.before_update or state.declared_elsewhere:
        return
    if team.store.type != "etcd" and team.store.workload != "statefulset":
        return
    keys = _keys_of(state, snapshot)
    if value_at(keys, "vcluster.storageClass") or team.store.claim.get("storageClass"):
        return
    if not any(storage_class.is_default_class for storage_class in host.all("storageclasses")):
        path = team.key_path_of("vcluster.storageClass")
        yield Affected(host, "vCluster", team.name).warning(
            "needs a volume, and no StorageClass is the default one",
            f"write one at {path}, or make one the default",
        )


def classes(key: str, state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield classes that one of a team's keys names and the host does not have.

    That is broken if it is a key of `vcluster`, else a warning. `key` is one of CLASSES. The
    RuntimeClasses in NO_GPU_CLASSES need not exist. In a team's own stack only the keys of its
    vCluster count: the platform's stack checks those of `isolation`.
    """
    host = snapshot.host
    kind, resource = CLASSES[key]
    value = value_at(_keys_of(state, snapshot), key) or []
    names = {value} if isinstance(value, str) else {*value} - {*NO_GPU_CLASSES}
    if not names:
        return
    existing = [existing_class.name for existing_class in host.all(resource)]
    there = listed(existing, "and", _SHOWN_CLASSES) or "none"
    path = state.team.key_path_of(key)
    fix = f"write one that is there ({there}) at {path}, or have this one made"
    for name in sorted(names.difference(existing)):
        subject = Affected(host, kind, name)
        if key.startswith("vcluster."):
            yield subject.broken(
                "is not there, and the vCluster that needs it does not become ready", fix
            )
        else:
            yield subject.warning("is not there: pods that name it are refused", fix)


def _keys_of(state: TeamState, snapshot: Snapshot) -> dict[str, Any]:
    """Return the keys `vcluster` and `isolation` of a team, with those below as in the stack file.

    What is not written there has its default. For a team's own stack without `isolation`, which the
    platform's stack checks.
    """
    settings = snapshot.settings
    sections = {"vcluster"} if settings.platform_stack else {"vcluster", "isolation"}
    return settings.team_or_grant(state.team.name).model_dump(by_alias=True, include=sections)


def _isolated_teams(snapshot: Snapshot) -> list[str]:
    """Return the names of the teams of this run that network policies isolate.

    None on a host without a real node; nodes of kwok are not real. Empty as well for a team's own
    stack, whose account may not read what tells.
    """
    if snapshot.settings.platform_stack:
        return []
    if all(_FAKE_NODE in node.annotations for node in snapshot.host.all("nodes")):
        return []
    return [name for name in snapshot.teams if bounds.declared_policies(snapshot, name)]


def ports(host: Cluster, snapshot: Snapshot) -> Faults:
    """Yield ports of the host's API that the network policies of an isolated team close to its
    vCluster, as faults of check `network-reach`.

    The Service `default/kubernetes` has them as `targetPort`; a named one is passed over. Nothing
    without that Service.
    """
    teams = _isolated_teams(snapshot)
    service = host.find("services", "kubernetes", "default") if teams else None
    if service is None:
        return
    allowed = [snapshot.settings.team_or_grant(name).isolation.network.api_ports for name in teams]
    service_ports = service.spec.get("ports") or []
    for port in {service_port.get("targetPort") for service_port in service_ports}:
        if isinstance(port, int) and any(port not in team_ports for team_ports in allowed):
            yield Affected(host, "API server", "of the host").broken(
                f"listens at port {port}, which network policies keep vClusters from",
                f"write kai-fleet:isolation.network.apiPorts: [443, {port}]",
                check="network-reach",
            )


def network(host: Cluster, snapshot: Snapshot) -> Faults:
    """Yield a warning for a host on which nothing known enforces the network policies of teams.

    Nothing without an isolated team, and nothing if one node is of K3s.
    """
    if not _isolated_teams(snapshot):
        return
    if any("+k3s" in str(node.status.get("nodeInfo")) for node in host.all("nodes")):
        return  # the process of K3s enforces them
    if not any(map(_enforces_policies, host.all("daemonsets"))):
        yield Affected(host, "network plugin", "of the host").warning(
            "no DaemonSet is of one that is known to enforce NetworkPolicies: pods of one team may"
            " reach those of others",
            "install one that does, such as Calico or Cilium, or write enableNetworkPolicy: true"
            " in Amazon's add-on vpc-cni; docs/isolation.md lists what depends on it",
        )


def _enforces_policies(daemon_set: KubeObject) -> bool:
    """Whether a DaemonSet is a network plugin that enforces network policies.

    If its name or that of a container contains one of _NETWORK_PLUGINS, or by the flag of Amazon's
    agent.
    """
    containers = daemon_set.containers
    names = [daemon_set.name]
    names += [str(container.get("name")) for container in containers]
    for name in names:
        if any(plugin in name for plugin in _NETWORK_PLUGINS):
            return True
    return any(_AMAZON_FLAG in (container.get("args") or []) for container in containers)
