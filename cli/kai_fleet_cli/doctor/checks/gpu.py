"""Nodes and GPUs: pools, what serves the GPUs, and the ones that KAI shares."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, cast

from kai_fleet.arguments import Arguments
from kai_fleet.cluster.kube.objects import KubeObject, closed_pool, in_pool
from kai_fleet.releases import DISABLED, GPU_CHARTS
from kai_fleet.releases.keys import GPU_GROUP, RESERVATIONS
from kai_fleet.releases.mig import PREFIX, gpus_of
from kai_fleet.settings.sections.platform import NVIDIA
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.causes import Fault, fault, reason
from kai_fleet_cli.doctor.checks.kai import recreate_part
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState
from kai_fleet_cli.doctor.usage import GPU_INDEX
from kai_fleet_policies.model.pod_use import MEMORY_LABEL, PodUse

# Of a node whose device plugin shares GPUs, by NVIDIA's GPU feature discovery.
_SHARED: Final = ("nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.replicas")
PATIENCE: Final = 60.0  # seconds; KAI waits 40 for a reservation pod


def nodes(host: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """The host's nodes: Ready, with GPUs, and with the label of their memory."""
    resource, every = host.desired.gpu_resource, host.all("nodes")
    for node in () if snapshot.ahead else every:
        if not node.is_true("Ready"):
            yield fault("node-not-ready", host, node.name)
        if resource == NVIDIA and node.gpus(resource) and MEMORY_LABEL not in node.labels:
            yield fault("node-without-memory-label", host, node.name, label=MEMORY_LABEL)
    own, teams = snapshot.settings.own_of, snapshot.teams.items()
    scaled = [own(name).autoscaled for name, state in teams if state.team.gpus]
    needed = not stack_comes(snapshot) and (not all(scaled) if scaled else host.kai is not None)
    if needed and not any(node.gpus(resource) or _slices(node) for node in every):
        yield fault("no-gpus", host, host.name, count=len(every), resource=resource)


def pool(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """The nodes of a team's pool: present, without taints that it does not tolerate, with GPUs."""
    team, host = state.team, snapshot.host
    autoscaled = snapshot.settings.own_of(team.name).autoscaled
    labels = " ".join(f"{key}={value}" for key, value in team.node_pool.items()) or "of all nodes"
    own = [node for node in host.all("nodes") if in_pool(node.labels, team.node_pool)]
    usable = [node for node in own if node.takes_pods]
    cordoned = [node for node in own if node.is_true("Ready") and not node.takes_pods]
    for node in cordoned:
        level = "advisory" if usable else "mandatory"
        yield fault("node-cordoned", host, node.name, level=level)
    if cordoned and not usable:
        return
    if not usable and team.node_pool and not autoscaled:
        what = f"none of the {len(own)} nodes" if own else "no node"
        values = {"what": what, "team": team.name, "labels": labels, "path": team.path}
        yield fault("pool-without-nodes", host, labels, **values)
        return
    judged = snapshot.ahead or state.granted  # the program warns in a preview, a team's own stack
    if not judged and not value_at(team.values, "sync.toHost.pods.enforceTolerations"):
        args = Arguments(snapshot.settings).namespace(team.name)
        tolerations = cast("list[dict[str, str]]", args["tolerations"])
        granted = f"kai-fleet:teamStacks.{team.name} of the platform"
        path = granted if snapshot.settings.platform_stack else team.path
        taints = [node.spec.get("taints") or [] for node in usable]
        if closed := closed_pool(tolerations, taints, path):
            yield fault("pool-tainted", host, labels, cause=closed[0], fix=closed[1])
    whole = int((team.gpus or 0) - gpus_of(team.slices))
    kinds = {team.inside.gpu_resource: whole, **team.slices}
    for resource, granted_gpus in {} if autoscaled else kinds.items():
        count = sum(node.gpus(resource) for node in (*usable, *cordoned))
        if count < granted_gpus and (count or (team.node_pool and not stack_comes(snapshot))):
            cut = ", ".join(sorted({name for node in usable for name in _slices(node)}))
            row = "pool-with-fewer-gpus" if count else "pool-cut" if cut else "pool-without-gpus"
            values = {"resource": resource, "team": team.name, "path": team.gpus_path, "cut": cut}
            yield fault(row, host, labels, count=f"{count:g}", granted=granted_gpus, **values)


def inside(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """The nodes that a vCluster with a scheduler of its own sees are those of its pool."""
    team, host, cluster = state.team, snapshot.host, state.inside
    if cluster is None or team.mode != "virtual":
        return
    own = {node.name for node in host.all("nodes") if in_pool(node.labels, team.node_pool)}
    copied = {node.name for node in cluster.all("nodes")}
    for name in sorted(copied - own) if own else ():
        yield fault("node-of-another-pool", cluster, name, path=team.path)
    for name in sorted(own - copied):
        yield fault("node-not-copied", cluster, name, host=host.kubectl, team=team)


def stack_comes(snapshot: Snapshot) -> bool:
    """Whether nodes may advertise no GPUs because the update has yet to make what does."""
    return snapshot.ahead and snapshot.settings.gpu.provider != "none"


def _slices(node: KubeObject) -> list[str]:
    """The MIG slices of a node by name."""
    allocatable = node.status.get("allocatable") or {}
    return [name for name in allocatable if name.startswith(PREFIX) and node.gpus(name)]


def daemon_sets(host: Cluster, _: Snapshot) -> Iterator[Fault]:
    """DaemonSets of the GPU stack, and device plugins anywhere, without their pods."""
    for item in host.all("daemonsets"):
        scheduled = int(item.status.get("desiredNumberScheduled") or 0)
        ready = int(item.status.get("numberReady") or 0)
        of_gpus = item.namespace in GPU_CHARTS or item.is_device_plugin
        if of_gpus and ready < scheduled and host.age(item) > PATIENCE:
            pods = host.within("pods", item.namespace)
            why = reason(host, item, *(p for p in pods if p.name.startswith(item.name)))
            fix = why.fix or f"look with: `{host.kubectl} -n {item.namespace} get pods,events`"
            values = {"cause": why.cause, "fix": fix, "effect_of": why.effect_of}
            counts = {"ready": ready, "scheduled": scheduled}
            yield fault("daemon-set-not-ready", host, item.namespaced_name, **values, **counts)


def plugins(host: Cluster, _: Snapshot) -> Iterator[Fault]:
    """One device plugin on each node."""
    by_node: dict[str, set[str]] = defaultdict(set)
    for pod in host.all("pods"):
        if pod.is_device_plugin and not pod.ended:
            by_node[pod.spec.get("nodeName") or ""].add(pod.namespaced_name)
    for node in host.all("nodes"):
        if len(pods := by_node[node.name]) > 1:
            yield fault("two-plugins", host, node.name, pods=", ".join(sorted(pods)))


def shared_by_plugins(cluster: Cluster, snapshot: Snapshot) -> Iterator[Fault]:
    """Nodes of a KAI that shares GPUs, whose device plugin shares them, too."""
    if not cluster.desired.gpu_sharing or cluster.kai is None:
        return
    own = {node.name for node in cluster.all("nodes")}
    for node in snapshot.host.all("nodes"):
        labels = [f"{key}={node.labels[key]}" for key in _SHARED if key in node.labels]
        shared = [label for label in labels if not label.endswith(("=none", "=1", "=0", "="))]
        if shared and node.name in own:
            values = {"label": shared[0], "path": cluster.desired.key}
            yield fault("shared-by-plugin", snapshot.host, node.name, **values)


def switched_off(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Whether sharing is on where it is declared, or asked for."""
    shares, declared = _shares(cluster), cluster.desired.declared and cluster.desired.gpu_sharing
    if _is_on(cluster) is False and (shares or declared):
        row = "sharing-switched-off" if declared else "sharing-off"
        yield fault(row, cluster, "", asking=len(shares), again=recreate_part(cluster))


def _shares(cluster: Cluster) -> list[PodUse]:
    """The pods that ask KAI for a share of a GPU, or hold one."""
    return [use for use in cluster.usage.pods if use.scheduled_by_kai and use.gpu.shared]


def sharing(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Whether each shared GPU is held once."""
    shares = _shares(cluster)
    held = {pod.labels.get(GPU_GROUP) for pod in cluster.within("pods", RESERVATIONS)}
    members: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for use in (use for use in shares if use.phase == "Running"):
        if not use.groups:
            yield fault("share-without-group", cluster, use.namespaced_name, label=GPU_GROUP)
        for group in use.groups:
            members[group].append((use.namespaced_name, use.gpu.fraction or 0.0))
    for group, of_group in members.items():
        total = sum(fraction for _, fraction in of_group)
        row = "group-too-full" if group in held else "group-without-reservation"
        for name, _fraction in of_group if group not in held or total > 1.0001 else ():
            yield fault(row, cluster, name, group=group, total=f"{total:g}")


def _is_on(cluster: Cluster) -> bool | None:
    """Whether this KAI lets pods share GPUs; None where nothing shows it."""
    config = cluster.named("configs", "kai-config")
    spec = config.spec if config else {}
    if mode := value_at(spec, "global.gpuSharingMode"):
        return str(mode) != DISABLED  # from v0.18; it wins over the older switch
    setting = value_at(spec, "admission.gpuSharing")
    return None if setting is None else bool(setting)


def reservations(cluster: Cluster, _: Snapshot) -> Iterator[Fault]:
    """Reservation pods, each of which holds a GPU for those that share it."""
    users = {group for use in cluster.usage.pods if use.scheduled_by_kai for group in use.groups}
    for pod in cluster.within("pods", RESERVATIONS):
        name = pod.namespaced_name
        if cluster.age(pod) < PATIENCE:
            continue
        if pod.phase != "Running":
            why = reason(cluster, pod)
            fix = why.fix and f"{why.fix}; then "
            values = {"cause": why.cause, "fix": fix, "effect_of": why.effect_of}
            yield fault("reservation-waits", cluster, name, phase=pod.phase, **values)
        elif not pod.annotations.get(GPU_INDEX):
            yield fault("reservation-without-gpu", cluster, name)
        elif pod.labels.get(GPU_GROUP) not in users:
            yield fault("reservation-unused", cluster, name)
