"""Each team on the host: its vCluster, what keeps it apart, and what removed teams left."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from kai_fleet.cluster.kube.objects import KubeObject, in_pool, seconds_since
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
from kai_fleet.values import parse_quantity, value_at
from kai_fleet.wording import listed
from kai_fleet_cli.diff import another
from kai_fleet_cli.doctor.causes import Fault, Why, fault, reason
from kai_fleet_cli.doctor.checks.kai import killed_lately
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState
from kai_fleet_cli.recovery import full_store
from kai_fleet_policies.model.cluster import Team

NEARLY: Final = 0.8  # of a bound
STUCK: Final = 120.0  # seconds that a deletion may take of which no condition says why
_SOON: Final = timedelta(days=30)
TOKEN_ANNOTATION: Final = "vcluster.loft.sh/token-"
_SHARED_MAP: Final = "runai/shared-gpu-configmap"  # KAI's admission writes it, with its own name
# Names of the DaemonSets, or of their containers, that enforce NetworkPolicies.
_ENFORCE: Final = (
    *("anetd", "antrea", "azure-npm", "calico", "canal", "cilium", "kindnet"),
    *("kube-network-policies", "kube-ovn", "kube-router", "ovn", "terway", "weave"),
)
_AMAZON: Final = "--enable-network-policy=true"  # Amazon's agent enforces none without it
# By the plural their kind, and the key of a team that names them.
CLASSES: Final = {
    "storageclasses": ("StorageClass", "vcluster.storageClass"),
    "ingressclasses": ("IngressClass", "vcluster.access.class"),
    "priorityclasses": ("PriorityClass", "isolation.priorityClasses"),
    "runtimeclasses": ("RuntimeClass", "isolation.runtimeClasses"),
}
GUARDS: Final = "validatingadmissionpolicies"
_FAKE_NODE: Final = "kwok.x-k8s.io/node"


def vcluster(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """A team's vCluster; of a team with its own stack only the namespace."""
    host, team = snapshot.host, state.team
    found = host.named("namespaces", team.namespace)
    if found is None:
        yield fault("namespace-absent", host, team.namespace)
    elif found.is_being_deleted:
        yield fault("namespace-going", host, team.namespace)
    elif not state.granted:
        yield from _vcluster(state, snapshot)


def identity(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """Whether it is the vCluster that the last update saw."""
    name = state.team.name
    if (lost := snapshot.lost.get(name)) and state.inside is not None:
        yield fault("vcluster-another", state.inside, name, cause=f"{another.WORDS}{lost}")


def _vcluster(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    host, team, name = snapshot.host, state.team, state.team.name
    own = {"team": team, "update": snapshot.update}
    kubectl = f"{host.kubectl} -n {team.namespace}"
    if state.foreign:
        values = {"unreached": state.unreached, "writer": name_writer(name)}
        steps = repair_commands(name, team.namespace, host.kubectl, team.store.workload)
        again = ", then ".join(f"`{step}`" for step in steps)
        yield fault("kubeconfig-foreign", host, name, again=again, **values)
    if state.hidden:
        yield fault("vcluster-hidden", host, name, unreached=state.unreached)
    item = _control_plane(state, host)
    if item is None:
        # Where the chart's Service is left, the release stands, and an update leaves it.
        left = host.named("services", name, team.namespace) is not None
        again = host.recreate_release(name, team.namespace) if left else snapshot.update
        yield fault("vcluster-absent", host, name, again=again, **own)
        return
    replicas = item.spec.get("replicas", 1)
    if replicas == 0:
        yield fault("vcluster-scaled-to-0", host, name, **own)
        return
    logs = f"{name}-0" if team.store.workload == "statefulset" else f"deployment/{name}"
    if not _is_ready(item):
        waits = _not_ready(state, host, item)
        look = f"look with: `{kubectl} logs {logs}` and `{kubectl} describe pod {name}-0`"
        values = {"cause": waits.cause, "fix": waits.fix or look, "effect_of": waits.effect_of}
        yield fault("vcluster-not-ready", host, name, **values)
    elif state.inside is None and not state.foreign and not state.hidden:
        look = f"look with: `{kubectl} get pods,services,secrets` and `{kubectl} logs {logs}`"
        why = state.unreached + _hint(team)
        yield fault("vcluster-unreached", host, name, unreached=why, look=look)


def _control_plane(state: TeamState, host: Cluster) -> KubeObject | None:
    at = (state.team.name, state.team.namespace)
    # Without a volume it is a Deployment.
    return host.named("statefulsets", *at) or host.named("deployments", *at)


def _is_ready(item: KubeObject) -> bool:
    return bool(item.status.get("readyReplicas", 0) >= item.spec.get("replicas", 1))


def _not_ready(state: TeamState, host: Cluster, item: KubeObject) -> Why:
    """Why a control plane is not ready; the effect of a pod that was killed for memory is that."""
    pods = [] if host.unread("pods") else [*state.control_plane_pods(host)]
    for pod in pods:
        if last := killed_lately(host, [pod]):
            return Why(last.sentence, "", f"pod {pod.name}")
    if unread := host.unread("pods", "persistentvolumeclaims"):
        return Why(f"why is not known: {unread}", "")
    claims = host.within("persistentvolumeclaims", state.team.namespace)
    of_it = (claim for claim in claims if state.team.name in claim.name)
    # What a claim's events say is closer than that its pod waits for it.
    return reason(host, *of_it, *pods, item)


def certificate(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """A client certificate that ends soon, or has ended."""
    host, team, ends = snapshot.host, state.team, state.certificate_ends
    if ends is not None and ends <= host.now + _SOON:
        row = "certificate-expired" if ends <= host.now else "certificate-expires"
        path, day = team.written_at("vcluster", "version"), f"{ends:%Y-%m-%d %H:%M}"
        values = {"day": day, "path": path, "team": team, "update": snapshot.update}
        yield fault(row, host, team.name, **values)


def store(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """Stores of vClusters that are nearly full: a full one takes no more writes."""
    host, team, use = snapshot.host, state.team, state.store
    at = f"{host.kubectl} -n"
    for name, part in use.volumes.items():
        claim = host.named("persistentvolumeclaims", name, team.namespace)
        if part > NEARLY and claim is not None and not grows(claim):
            fix = full_store.growth(team.name, [claim]).replace("kubectl -n", at)
            values = {"what": f"volume {name}", "percent": f"{part:.0%}", "fix": f"`{fix}`"}
            yield fault("store-nearly-full", host, team.name, **values)
    for member, etcd in use.etcds.items():
        if etcd.total > NEARLY * etcd.quota:
            values = {"what": f"etcd {member}", "percent": f"{etcd.total / etcd.quota:.0%}"}
            is_used = etcd.used > NEARLY * etcd.quota
            path = team.written_at("vcluster", "values")
            quota = f"write {full_store.larger_quota(etcd.quota)} at {path}, then {host.apply}"
            again = full_store.compaction(team.name).replace("kubectl -n", at)
            fix = quota if is_used else f"`{again}`"
            yield fault("store-nearly-full", host, team.name, fix=fix, **values)


def killed(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """Pods of a vCluster, or of its etcd, that were killed for memory, also where they run."""
    host = snapshot.host
    item = None if state.granted else _control_plane(state, host)
    if item is None or item.spec.get("replicas", 1) == 0:
        return
    for pod in state.control_plane_pods(host):
        of_etcd = pod.labels.get("app") == "vcluster-etcd"
        key = f"vcluster.values.{ETCD_RESOURCES}" if of_etcd else "vcluster.resources"
        if last := killed_lately(host, [pod]):
            level = "advisory" if _is_ready(item) else "mandatory"
            values = {"path": state.team.written_at(key), "level": level}
            yield fault("killed-for-memory", host, pod.name, cause=last.sentence, **values)


def _hint(team: Team) -> str:
    access = team.access
    if access is not None and access.type == "ClusterIP":
        return "; access type ClusterIP is reached from inside the host only"
    if access is not None and access.led_by_name:
        where = f"{access.endpoint} has to resolve to the {access.type}'s controller"
        return f"; {where}, which has to pass TLS through"
    return ""


def too_many_gpus(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """In mode host, where no ResourceQuota counts shares, more GPUs than are declared."""
    host, team = snapshot.host, state.team
    if team.mode != "host" or team.gpus is None:
        return
    pods = (pod for pod in host.usage.pods if pod.namespace == team.namespace)
    held = sum(pod.gpus for pod in pods if not pod.waits)
    if held > team.gpus + 1e-6:
        yield fault("team-over-gpus", host, team.name, held=held, team=team)


def secrets(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """Whether the quota of Secrets is nearly full."""
    host, namespace = snapshot.host, state.team.namespace
    quota = host.named("resourcequotas", "objects", namespace)
    status = quota.status if quota is not None else {}
    amounts = (value_at(status, f"{key}.secrets") or 0 for key in ("hard", "used"))
    hard, used = (float(parse_quantity(amount)) for amount in amounts)
    if used > NEARLY * hard:
        yield fault("secrets-nearly-full", host, namespace, used=f"{used:g}", hard=f"{hard:g}")


def control_planes(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """Control planes on nodes of others."""
    host, team = snapshot.host, state.team
    for pod in state.control_plane_pods(host):
        node = host.named("nodes", str(pod.spec.get("nodeName") or ""))
        if node is not None and not in_pool(node.labels, team.control_pool):
            labels = ", ".join(f"{key}={value}" for key, value in team.control_pool.items())
            yield fault("control-plane-elsewhere", host, pod.namespaced_name, labels=labels)


def tenants_pods(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """Pods of a team that reach past its bounds."""
    host = snapshot.host
    by_map: dict[str, list[str]] = defaultdict(list)
    for pod in host.within("pods", state.team.namespace):
        if any(key.startswith(TOKEN_ANNOTATION) for key in pod.annotations):
            yield fault("pod-with-tokens", host, pod.namespaced_name)
        if not pod.ended and _SHARED_MAP in pod.annotations:
            by_map[pod.annotations[_SHARED_MAP]].append(pod.namespaced_name)
    for config_map, names in by_map.items():
        for name in names if len(names) > 1 else ():
            yield fault("shared-config-map", host, name, map=config_map)


def undeclared_policies(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """Network policies that the stack does not declare: they only add what is allowed."""
    host, declared = snapshot.host, _policies(snapshot, state.team.name)
    for item in host.within("networkpolicies", state.team.namespace) if declared else ():
        if item.name not in declared:
            yield fault("policy-undeclared", host, item.namespaced_name)


def _policies(snapshot: Snapshot, team: str) -> set[str]:
    """The network policies of a team; none where it is not isolated by them."""
    rows = (row for row in snapshot.required if row.team == team)
    return {row.name for row in rows if row.kind == "NetworkPolicy"}


def kubernetes(cluster: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Whether Kubernetes is new enough for the guards that the stack requires in it."""
    required = any(row.cluster == cluster.name and row.kinds == GUARDS for row in snapshot.required)
    if required and not cluster.serves(GUARDS):
        yield fault("kubernetes-too-old", cluster, "")


def default_class(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """Before an update, a StorageClass for a vCluster's volume; afterwards its claim says it."""
    host, team, own = snapshot.host, state.team, _keys_of(state, snapshot)
    store = team.store
    has_volume = store.type == "etcd" or store.workload == "statefulset"
    named = value_at(own, "vcluster.storageClass") or store.claim.get("storageClass")
    if not snapshot.ahead or not has_volume or named or state.granted:
        return
    if not any(item.is_default_class for item in host.all("storageclasses")):
        path = team.written_at("vcluster.storageClass")
        yield fault("no-default-class", host, team.name, path=path)


def classes(kinds: str, state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """The classes of the host, of one kind, that a team's keys name."""
    host, team, (kind, key) = snapshot.host, state.team, CLASSES[kinds]
    named = value_at(_keys_of(state, snapshot), key) or []
    names = {named} if isinstance(named, str) else {*named} - {*NO_GPU_CLASSES}
    there = [item.name for item in host.all(kinds)] if names else []
    values = {"path": team.written_at(key), "there": listed(there, "and", 10) or "none"}
    for name in sorted(names - {*there}):
        yield fault(f"{key.partition('.')[0]}-class-absent", host, name, kind=kind, **values)


def _keys_of(state: TeamState, snapshot: Snapshot) -> dict[str, Any]:
    """The keys of a team that may name classes; its platform checks those of isolation."""
    settings = snapshot.settings
    written = {"vcluster"} if settings.platform_stack else {"vcluster", "isolation"}
    return settings.own_of(state.team.name).model_dump(by_alias=True, include=written)


def _isolated(snapshot: Snapshot) -> list[str]:
    """The teams with network policies on real nodes. A team stack's account reads neither."""
    if snapshot.settings.platform_stack:
        return []
    nodes = snapshot.host.all("nodes")
    real = any(_FAKE_NODE not in node.annotations for node in nodes)
    return [name for name in snapshot.teams if real and _policies(snapshot, name)]


def ports(host: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Whether network policies let vClusters reach the host's API."""
    teams = _isolated(snapshot)
    service = host.named("services", "kubernetes", "default") if teams else None
    listed_ports = (service.spec.get("ports") or []) if service else []
    for port in {port.get("targetPort") for port in listed_ports}:
        allowed = (snapshot.settings.own_of(name).isolation.network.api_ports for name in teams)
        if isinstance(port, int) and any(port not in of_team for of_team in allowed):
            yield fault("api-port", host, "of the host", port=port)


def network(host: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Whether anything on the host enforces network policies."""
    # K3s enforces them in a process of its own.
    if not _isolated(snapshot) or any(map(_is_k3s, host.all("nodes"))):
        return
    if not any(map(_enforces, host.all("daemonsets"))):
        yield fault("no-network-plugin", host, "of the host")


def _is_k3s(node: KubeObject) -> bool:
    return "+k3s" in str(node.status.get("nodeInfo"))


def _enforces(item: KubeObject) -> bool:
    names = [item.name, *(str(container.get("name")) for container in item.containers)]
    if any(part in name for name in names for part in _ENFORCE):
        return True
    return any(_AMAZON in (container.get("args") or []) for container in item.containers)


def stuck(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Namespaces whose deletion hangs, at once where a cause is known."""

    def read(_: str, plural: str, namespace: str) -> list[KubeObject]:
        if not cluster.asked(plural) or cluster.unread(plural):
            return []
        items = cluster.all(plural)
        return [item for item in items if not namespace or item.namespace == namespace]

    for item in cluster.all("namespaces"):
        found = causes(item, read, cluster.now)
        since = seconds_since(item["metadata"].get("deletionTimestamp"), cluster.now)
        if found or since >= STUCK:
            commands = [f"`{cluster.kubectl} {each.kubectl}`" for each in found if each.kubectl]
            look = f"look with: `{cluster.kubectl} get namespace {item.name} -o yaml`"
            fix = ", then ".join(commands) or look
            words = why(item, found) or "no condition of it says why"
            yield fault("namespace-stuck", cluster, item.name, why=words, fix=fix)


def api_services(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """APIServices that do not answer: until they do, no namespace that is deleted goes."""
    going = any(item.is_being_deleted for item in cluster.all("namespaces"))
    if going or not cluster.asked("apiservices"):  # few accounts may read them
        return
    for item in cluster.all("apiservices"):
        if is_silent(item):
            cause = api_service_cause(item)
            look = f"look with: `{cluster.kubectl} describe apiservice {item.name}`"
            fix = f"`{cluster.kubectl} {cause.kubectl}`" if cause.kubectl else look
            yield fault("api-service-silent", cluster, item.name, why=cause.words, fix=fix)


def cluster_roles(host: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Cluster roles that removed vClusters left."""
    for name in (item.name for item in host.all("clusterroles")):
        # vCluster names it vc-TEAM-v-NAMESPACE; deleting the namespace by hand leaves it.
        own, _sep, space = name.partition("-v-")
        if own.startswith("vc-") and space and host.named("namespaces", space) is None:
            yield fault("cluster-role-left", host, name)


def undeclared_namespaces(host: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Namespaces of teams that the file does not have."""
    known = {None, *(team.name for team in (*host.desired.teams, *host.desired.grants))}
    for item in host.all("namespaces") if host.desired.declared else ():
        team = item.labels.get(TEAM_LABEL)
        if team not in known and not item.is_being_deleted:
            yield fault("namespace-undeclared", host, item.name, team=team)
