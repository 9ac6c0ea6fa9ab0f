"""Checks of each team on the host: its vCluster, its isolation, and what removed teams left."""

from collections import defaultdict
from datetime import timedelta
from typing import Any, Final

from kai_fleet.cluster.kube.objects import KubeObject, in_pool
from kai_fleet.cluster.store_use import grows
from kai_fleet.cluster.tenant_kubeconfig import name_writer, repair_commands
from kai_fleet.cluster.terminating import (
    api_service_cause,
    causes,
    is_silent,
    why,
)
from kai_fleet.names import TEAM_LABEL
from kai_fleet.releases import ETCD_RESOURCES
from kai_fleet.releases.keys import NO_GPU_CLASSES
from kai_fleet.values import value_at
from kai_fleet.wording import listed
from kai_fleet_cli.diff import another
from kai_fleet_cli.doctor.causes import Fault, Faults, Why, fault, reason
from kai_fleet_cli.doctor.checks.kai import killed_lately
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState
from kai_fleet_cli.recovery import full_store
from kai_fleet_policies.model.cluster import DeclaredTeam
from kai_usage.quantities import parse_quantity
from kai_usage.times import seconds_since

NEARLY_FULL: Final = 0.8  # of a bound
STUCK_SECONDS: Final = 120.0  # for a deletion if no condition says what keeps the namespace
_EXPIRES_SOON: Final = timedelta(days=30)
_GPU_SLACK: Final = 1e-6  # GPUs that fractions may add up to above a whole number
_SHOWN_CLASSES: Final = 10
TOKEN_ANNOTATION: Final = "vcluster.loft.sh/token-"
# KAI's admission writes it: the name of the ConfigMap of a pod that shares a GPU.
_SHARED_GPU_MAP: Final = "runai/shared-gpu-configmap"
# Parts of names of the DaemonSets, or of their containers, that enforce NetworkPolicies.
_NETWORK_PLUGINS: Final = (
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
_AMAZON_FLAG: Final = "--enable-network-policy=true"  # Amazon's agent enforces none without it
# By resource: its kind, and the key of a team that names such objects.
CLASSES: Final = {
    "storageclasses": ("StorageClass", "vcluster.storageClass"),
    "ingressclasses": ("IngressClass", "vcluster.access.class"),
    "priorityclasses": ("PriorityClass", "isolation.priorityClasses"),
    "runtimeclasses": ("RuntimeClass", "isolation.runtimeClasses"),
}
GUARDS: Final = "validatingadmissionpolicies"
_FAKE_NODE: Final = "kwok.x-k8s.io/node"


def vcluster(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a team's namespace that is absent or being deleted, else what is wrong with its
    vCluster, unless another stack declares the vCluster.
    """
    host = snapshot.host
    name = state.team.namespace
    namespace = host.named("namespaces", name)
    if namespace is None:
        yield fault("namespace-absent", host, name)
    elif namespace.is_being_deleted:
        yield fault("namespace-going", host, name)
    elif not state.granted:
        yield from _foreign_kubeconfig(state, host)
        yield from _control_plane_faults(state, snapshot)


def identity(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a vCluster that is another one than the last update saw: its old content is lost."""
    name = state.team.name
    lost = snapshot.lost.get(name)
    if lost and state.inside is not None:
        yield fault("vcluster-another", state.inside, name, cause=f"{another.WORDS}{lost}")


def _foreign_kubeconfig(state: TeamState, host: Cluster) -> Faults:
    """Yield a kubeconfig Secret that the vCluster did not write, or that could not be read."""
    team = state.team
    if state.foreign:
        commands = repair_commands(team.name, team.namespace, host.kubectl, team.store.workload)
        yield fault(
            "kubeconfig-foreign",
            host,
            team.name,
            again=", then ".join(f"`{command}`" for command in commands),
            unreached=state.unreached,
            writer=name_writer(team.name),
        )
    if state.hidden:
        yield fault("vcluster-hidden", host, team.name, unreached=state.unreached)


def _control_plane_faults(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield the first that applies: the control plane is absent, scaled to 0, not ready, or its API
    was not reached.
    """
    team = state.team
    host = snapshot.host
    control_plane = _control_plane(state, host)
    if control_plane is None:
        again = _recreate_vcluster(team, snapshot)
        yield fault(
            "vcluster-absent",
            host,
            team.name,
            again=again,
            team=team,
            update=snapshot.update,
        )
    elif control_plane.spec.get("replicas", 1) == 0:
        yield fault(
            "vcluster-scaled-to-0",
            host,
            team.name,
            team=team,
            update=snapshot.update,
        )
    elif not _is_ready(control_plane):
        yield _vcluster_not_ready(state, host, control_plane)
    elif state.inside is None and not state.foreign and not state.hidden:
        yield _vcluster_unreached(state, host)


def _recreate_vcluster(team: DeclaredTeam, snapshot: Snapshot) -> str:
    """Return the fix for an absent control plane.

    If the Service of the chart exists the release does, too, and no update creates its objects.
    """
    host = snapshot.host
    if host.named("services", team.name, team.namespace) is None:
        return snapshot.update
    return host.recreate_release(team.name, team.namespace)


def _logs(team: DeclaredTeam, host: Cluster) -> str:
    """Return the command that prints the logs of a team's control plane."""
    workload = f"deployment/{team.name}"
    if team.store.workload == "statefulset":
        workload = f"{team.name}-0"
    return f"`{host.kubectl} -n {team.namespace} logs {workload}`"


def _vcluster_not_ready(state: TeamState, host: Cluster, control_plane: KubeObject) -> Fault:
    team = state.team
    why_not_ready = _why_not_ready(state, host, control_plane)
    describe = f"`{host.kubectl} -n {team.namespace} describe pod {team.name}-0`"
    return fault(
        "vcluster-not-ready",
        host,
        team.name,
        cause=why_not_ready.cause,
        fix=why_not_ready.fix or f"look with: {_logs(team, host)} and {describe}",
        effect_of=why_not_ready.effect_of,
    )


def _vcluster_unreached(state: TeamState, host: Cluster) -> Fault:
    team = state.team
    objects = f"`{host.kubectl} -n {team.namespace} get pods,services,secrets`"
    return fault(
        "vcluster-unreached",
        host,
        team.name,
        unreached=state.unreached + _access_hint(team),
        look=f"look with: {objects} and {_logs(team, host)}",
    )


def _access_hint(team: DeclaredTeam) -> str:
    """Return what the type of access needs, to append to why a vCluster was not reached; or ""."""
    access = team.access
    if access is None:
        return ""
    if access.type == "ClusterIP":
        return "; access type ClusterIP is reached from inside the host only"
    if access.routes_by_hostname:
        controller = f"{access.endpoint} has to resolve to the {access.type}'s controller"
        return f"; {controller}, which has to pass TLS through"
    return ""


def _control_plane(state: TeamState, host: Cluster) -> KubeObject | None:
    """Return the workload of a vCluster: a StatefulSet, or a Deployment if it has no volume."""
    name = state.team.name
    namespace = state.team.namespace
    stateful_set = host.named("statefulsets", name, namespace)
    return stateful_set or host.named("deployments", name, namespace)


def _is_ready(control_plane: KubeObject) -> bool:
    ready = control_plane.status.get("readyReplicas", 0)
    return bool(ready >= control_plane.spec.get("replicas", 1))


def _why_not_ready(state: TeamState, host: Cluster, control_plane: KubeObject) -> Why:
    """Return why a control plane is not ready.

    First a container that was killed for memory: then it is an effect of that pod's fault. Else
    what messages say, those about claims before those about pods, which only wait for them.
    """
    pods = list[KubeObject]()
    if not host.unread("pods"):
        pods = state.control_plane_pods(host)
    for pod in pods:
        if last := killed_lately(host, [pod]):
            return Why(last.sentence, "", f"pod {pod.name}")
    if unread := host.unread("pods", "persistentvolumeclaims"):
        return Why(f"why is not known: {unread}", "")
    claims = [
        claim
        for claim in host.within("persistentvolumeclaims", state.team.namespace)
        if state.team.name in claim.name
    ]
    return reason(host, *claims, *pods, control_plane)


def certificate(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a client certificate that has expired, or expires within 30 days."""
    host = snapshot.host
    ends = state.certificate_ends
    if ends is None or ends > host.now + _EXPIRES_SOON:
        return
    yield fault(
        "certificate-expired" if ends <= host.now else "certificate-expires",
        host,
        state.team.name,
        day=f"{ends:%Y-%m-%d %H:%M}",
        path=state.team.written_at("vcluster", "version"),
        team=state.team,
        update=snapshot.update,
    )


def store(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield volumes and etcd members of a vCluster's store that are nearly full.

    A full store takes no more writes. A volume that already grows is no fault.
    """
    yield from _nearly_full_volumes(state, snapshot.host)
    yield from _nearly_full_etcds(state, snapshot.host)


def _nearly_full_volumes(state: TeamState, host: Cluster) -> Faults:
    team = state.team
    for name, fraction in state.store.volumes.items():
        claim = host.named("persistentvolumeclaims", name, team.namespace)
        if fraction <= NEARLY_FULL or claim is None or grows(claim):
            continue
        command = _on_host(full_store.growth(team.name, [claim]), host)
        yield fault(
            "store-nearly-full",
            host,
            team.name,
            what=f"volume {name}",
            percent=f"{fraction:.0%}",
            fix=f"`{command}`",
        )


def _nearly_full_etcds(state: TeamState, host: Cluster) -> Faults:
    """Yield members whose file is nearly as large as their quota.

    The fix is a larger quota if the data fill it, else a compaction.
    """
    team = state.team
    for member, etcd in state.store.etcds.items():
        if etcd.total <= NEARLY_FULL * etcd.quota:
            continue
        fix = f"`{_on_host(full_store.compaction(team.name), host)}`"
        if etcd.used > NEARLY_FULL * etcd.quota:
            path = team.written_at("vcluster", "values")
            quota = full_store.larger_quota(etcd.quota)
            fix = f"write {quota} at {path}, then {host.apply}"
        yield fault(
            "store-nearly-full",
            host,
            team.name,
            what=f"etcd {member}",
            percent=f"{etcd.total / etcd.quota:.0%}",
            fix=fix,
        )


def _on_host(command: str, host: Cluster) -> str:
    """Return a command for a namespace as one for the host."""
    return command.replace("kubectl -n", f"{host.kubectl} -n")


def killed(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield pods of a vCluster, or of its etcd, that were killed for memory within a day.

    That is a warning if the control plane is ready again.
    """
    host = snapshot.host
    if state.granted:
        return
    control_plane = _control_plane(state, host)
    if control_plane is None or control_plane.spec.get("replicas", 1) == 0:
        return
    for pod in state.control_plane_pods(host):
        last = killed_lately(host, [pod])
        if last is None:
            continue
        key = "vcluster.resources"
        if pod.labels.get("app") == "vcluster-etcd":
            key = f"vcluster.values.{ETCD_RESOURCES}"
        yield fault(
            "killed-for-memory",
            host,
            pod.name,
            cause=last.sentence,
            path=state.team.written_at(key),
            level="advisory" if _is_ready(control_plane) else "mandatory",
        )


def too_many_gpus(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a team whose pods hold more GPUs than it is granted.

    Only in mode host, where no ResourceQuota counts shares of GPUs.
    """
    host = snapshot.host
    team = state.team
    if team.mode != "host" or team.gpus is None:
        return
    pods = (pod for pod in host.usage.pods if pod.namespace == team.namespace)
    held = sum(pod.gpus for pod in pods if not pod.waits)
    if held > team.gpus + _GPU_SLACK:
        yield fault(
            "team-over-gpus",
            host,
            team.name,
            held=held,
            team=team,
        )


def secrets(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a namespace whose quota of Secrets is nearly used up."""
    host = snapshot.host
    namespace = state.team.namespace
    quota = host.named("resourcequotas", "objects", namespace)
    status = quota.status if quota is not None else {}
    hard = float(parse_quantity(value_at(status, "hard.secrets") or 0))
    used = float(parse_quantity(value_at(status, "used.secrets") or 0))
    if used > NEARLY_FULL * hard:
        yield fault(
            "secrets-nearly-full",
            host,
            namespace,
            used=f"{used:g}",
            hard=f"{hard:g}",
        )


def control_planes(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield control plane pods on nodes that do not belong to the pool for control planes."""
    host = snapshot.host
    pool = state.team.control_pool
    for pod in state.control_plane_pods(host):
        node_name = str(pod.spec.get("nodeName") or "")
        node = host.named("nodes", node_name)
        if node is not None and not in_pool(node.labels, pool):
            labels = ", ".join(f"{key}={value}" for key, value in pool.items())
            yield fault("control-plane-elsewhere", host, pod.namespaced_name, labels=labels)


def tenants_pods(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield pods of a team that carry tokens of the host, or share another pod's ConfigMap."""
    host = snapshot.host
    pods_by_map: dict[str, list[str]] = defaultdict(list)
    for pod in host.within("pods", state.team.namespace):
        if any(key.startswith(TOKEN_ANNOTATION) for key in pod.annotations):
            yield fault("pod-with-tokens", host, pod.namespaced_name)
        if not pod.ended and _SHARED_GPU_MAP in pod.annotations:
            pods_by_map[pod.annotations[_SHARED_GPU_MAP]].append(pod.namespaced_name)
    for config_map, names in pods_by_map.items():
        if len(names) < 2:
            continue
        for name in names:
            yield fault("shared-config-map", host, name, map=config_map)


def undeclared_policies(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield network policies of an isolated team that the stack does not declare.

    A network policy can only allow more.
    """
    host = snapshot.host
    declared = _declared_policies(snapshot, state.team.name)
    if not declared:
        return
    for policy in host.within("networkpolicies", state.team.namespace):
        if policy.name not in declared:
            yield fault("policy-undeclared", host, policy.namespaced_name)


def _declared_policies(snapshot: Snapshot, team: str) -> set[str]:
    """Return the names of a team's network policies; none if its network is not isolated."""
    return {
        required.name
        for required in snapshot.required
        if required.team == team and required.kind == "NetworkPolicy"
    }


def kubernetes(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield a cluster whose Kubernetes is too old for the guards that the stack requires in it."""
    requires_guards = any(
        required.cluster == cluster.name and required.resource == GUARDS
        for required in snapshot.required
    )
    if requires_guards and not cluster.serves(GUARDS):
        yield fault("kubernetes-too-old", cluster, "")


def default_class(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a vCluster that will need the default StorageClass for its volume, and there is none.

    Only before an update: afterwards the volume's claim has an event.
    """
    host = snapshot.host
    team = state.team
    if not snapshot.before_update or state.granted:
        return
    if team.store.type != "etcd" and team.store.workload != "statefulset":
        return
    keys = _keys_of(state, snapshot)
    if value_at(keys, "vcluster.storageClass") or team.store.claim.get("storageClass"):
        return
    if not any(storage_class.is_default_class for storage_class in host.all("storageclasses")):
        path = team.written_at("vcluster.storageClass")
        yield fault("no-default-class", host, team.name, path=path)


def classes(resource: str, state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield classes of one kind that a team's keys name and the host does not have.

    `resource` is a key of CLASSES.
    """
    host = snapshot.host
    kind, key = CLASSES[resource]
    value = value_at(_keys_of(state, snapshot), key) or []
    names = {value} if isinstance(value, str) else {*value} - {*NO_GPU_CLASSES}
    if not names:
        return
    existing = [existing_class.name for existing_class in host.all(resource)]
    for name in sorted(names.difference(existing)):
        yield fault(
            f"{key.partition('.')[0]}-class-absent",
            host,
            name,
            kind=kind,
            path=state.team.written_at(key),
            there=listed(existing, "and", _SHOWN_CLASSES) or "none",
        )


def _keys_of(state: TeamState, snapshot: Snapshot) -> dict[str, Any]:
    """Return the keys of a team that may name classes, as in the stack file.

    For a team's own stack without `isolation`, which the platform's stack checks.
    """
    settings = snapshot.settings
    sections = {"vcluster"} if settings.platform_stack else {"vcluster", "isolation"}
    return settings.own_of(state.team.name).model_dump(by_alias=True, include=sections)


def _isolated_teams(snapshot: Snapshot) -> list[str]:
    """Return the teams that network policies isolate, if the host has a real node.

    None for a team's own stack, whose account may not read what tells.
    """
    if snapshot.settings.platform_stack:
        return []
    if all(_FAKE_NODE in node.annotations for node in snapshot.host.all("nodes")):
        return []
    return [name for name in snapshot.teams if _declared_policies(snapshot, name)]


def ports(host: Cluster, snapshot: Snapshot) -> Faults:
    """Yield ports of the host's API that the network policies of a vCluster do not let it reach."""
    teams = _isolated_teams(snapshot)
    service = host.named("services", "kubernetes", "default") if teams else None
    if service is None:
        return
    allowed = [snapshot.settings.own_of(name).isolation.network.api_ports for name in teams]
    service_ports = service.spec.get("ports") or []
    for port in {service_port.get("targetPort") for service_port in service_ports}:
        if isinstance(port, int) and any(port not in team_ports for team_ports in allowed):
            yield fault("api-port", host, "of the host", port=port)


def network(host: Cluster, snapshot: Snapshot) -> Faults:
    """Yield a host on which nothing enforces the network policies that isolate teams."""
    if not _isolated_teams(snapshot) or any(map(_is_k3s, host.all("nodes"))):
        return
    if not any(map(_enforces_policies, host.all("daemonsets"))):
        yield fault("no-network-plugin", host, "of the host")


def _is_k3s(node: KubeObject) -> bool:
    """Whether a node is of K3s, whose own process enforces network policies."""
    return "+k3s" in str(node.status.get("nodeInfo"))


def _enforces_policies(daemon_set: KubeObject) -> bool:
    """Whether a DaemonSet is a network plugin that enforces network policies, by its names."""
    containers = daemon_set.containers
    names = [daemon_set.name]
    names += [str(container.get("name")) for container in containers]
    for name in names:
        if any(plugin in name for plugin in _NETWORK_PLUGINS):
            return True
    return any(_AMAZON_FLAG in (container.get("args") or []) for container in containers)


def stuck(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield namespaces whose deletion hangs: at once if a cause is known, else after 2 minutes."""

    def read_objects(_: str, resource: str, namespace: str) -> list[KubeObject]:
        if not cluster.asked(resource) or cluster.unread(resource):
            return []
        objects = cluster.all(resource)
        return [item for item in objects if not namespace or item.namespace == namespace]

    for namespace in cluster.all("namespaces"):
        deletion_causes = causes(namespace, read_objects, cluster.now)
        deleted = namespace["metadata"].get("deletionTimestamp")
        if not deletion_causes and seconds_since(deleted, cluster.now) < STUCK_SECONDS:
            continue
        commands = [
            f"`{cluster.kubectl} {cause.kubectl}`" for cause in deletion_causes if cause.kubectl
        ]
        look = f"look with: `{cluster.kubectl} get namespace {namespace.name} -o yaml`"
        yield fault(
            "namespace-stuck",
            cluster,
            namespace.name,
            why=why(namespace, deletion_causes) or "no condition of it says why",
            fix=", then ".join(commands) or look,
        )


def api_services(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield APIServices that do not answer: they keep each namespace that will be deleted.

    Nothing if a namespace is being deleted, which `stuck` reports, nor if this run did not ask for
    APIServices, which few accounts may read.
    """
    deleting = any(namespace.is_being_deleted for namespace in cluster.all("namespaces"))
    if deleting or not cluster.asked("apiservices"):
        return
    for service in cluster.all("apiservices"):
        if not is_silent(service):
            continue
        cause = api_service_cause(service)
        fix = f"look with: `{cluster.kubectl} describe apiservice {service.name}`"
        if cause.kubectl:
            fix = f"`{cluster.kubectl} {cause.kubectl}`"
        yield fault(
            "api-service-silent",
            cluster,
            service.name,
            why=cause.words,
            fix=fix,
        )


def cluster_roles(host: Cluster, _: Snapshot) -> Faults:
    """Yield ClusterRoles of vClusters whose namespace was deleted by hand.

    vCluster names them `vc-TEAM-v-NAMESPACE`.
    """
    for role in host.all("clusterroles"):
        prefix, _separator, namespace = role.name.partition("-v-")
        if not prefix.startswith("vc-") or not namespace:
            continue
        if host.named("namespaces", namespace) is None:
            yield fault("cluster-role-left", host, role.name)


def undeclared_namespaces(host: Cluster, _: Snapshot) -> Faults:
    """Yield namespaces of teams that the stack file does not have, but for those being deleted."""
    if not host.desired.declared:
        return
    declared = {team.name for team in host.desired.teams}
    declared.update(team.name for team in host.desired.grants)
    for namespace in host.all("namespaces"):
        team = namespace.labels.get(TEAM_LABEL)
        if team is None or team in declared or namespace.is_being_deleted:
            continue
        yield fault("namespace-undeclared", host, namespace.name, team=team)
