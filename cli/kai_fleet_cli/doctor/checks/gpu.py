"""Checks of nodes and GPUs: node pools, what advertises the GPUs, and GPUs that KAI shares.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object.
"""

from collections import defaultdict
from collections.abc import Sequence

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.releases import DISABLED, GPU_CHARTS
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.checks.kai import recreate_part
from kai_fleet_cli.doctor.faults import NAME, NAMES, NAMESPACE, Affected, Fault, Faults
from kai_fleet_cli.doctor.messages import NVIDIA_CLASS, reason
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState
from kai_fleet_policies.finding import Fix, Level
from kai_fleet_policies.model.cluster import HOST, DeclaredTeam
from kai_fleet_stack.arguments import Arguments
from kai_fleet_stack.closed_pool import closed_pool
from kai_fleet_stack.settings.sections.platform import NVIDIA
from kai_usage.keys import GPU_GROUP, GPU_UUID_ANNOTATION, MEMORY_LABEL, RESERVATIONS
from kai_usage.mig import PREFIX, gpus_of
from kai_usage.nodes import Node, SharedGpu
from kai_usage.objects import has_labels
from kai_usage.pods import Pod

# Labels that NVIDIA's GPU feature discovery gives a node whose device plugin shares GPUs.
_SHARING_LABELS = ("nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.replicas")
_NOT_SHARED = ("=none", "=1", "=0", "=")  # ends of such a label and its value
PATIENCE_SECONDS = 60.0  # KAI waits 40 s for a reservation pod
_WHOLE_GPU = 1.0001  # above the sum of fractions that fill one GPU


def nodes(host: Cluster, snapshot: Snapshot) -> Faults:
    """Yield nodes that are not Ready, nodes whose NVIDIA GPUs have no memory label, and a host
    without GPUs.

    The first two are warnings. Before an update only the last is looked for. It is broken, and no
    fault where `_needs_gpus_now` says that no GPUs are needed.
    """
    host_nodes = host.all("nodes")
    if not snapshot.before_update:
        for node in host_nodes:
            yield from _node_faults(host, node)
    if not _needs_gpus_now(host, snapshot):
        return
    resource = host.desired.gpu_resource
    if not any(node.gpus(resource) or _mig_slices(node) for node in host_nodes):
        yield Affected(host, "cluster", host.name).broken(
            f"none of {len(host_nodes)} nodes advertises {resource}",
            "set kai-fleet:gpu.provider to operator or device-plugin, and look at its pods; for"
            " another vendor's GPUs set kai-fleet:gpu.resource; inside a vCluster ask the"
            " platform's engineers",
        )


def _node_faults(host: Cluster, node: KubeObject) -> Faults:
    """Yield that a node is not Ready, and that its NVIDIA GPUs have no memory label: warnings.

    GPUs count if NVIDIA's is the stack's GPU resource; MIG slices do not.
    """
    subject = Affected(host, "node", node.name)
    if not node.is_true("Ready"):
        yield subject.warning("is not Ready", "look with: ", host.command(f"describe node {NAME}"))
    resource = host.desired.gpu_resource
    if resource == NVIDIA and node.gpus(resource) and MEMORY_LABEL not in node.labels:
        yield subject.warning(
            f"has GPUs and no label {MEMORY_LABEL}: no pod with gpu-memory is placed there",
            "run NVIDIA's GPU feature discovery (kai-fleet:gpu.provider: operator), or label it: ",
            host.command(f"label node {NAMES} {MEMORY_LABEL}=<MiB>"),
        )


def _needs_gpus_now(host: Cluster, snapshot: Snapshot) -> bool:
    """Whether the host's nodes have to advertise GPUs.

    Not while `gpu_stack_pending`, and not if all teams with GPUs have an autoscaler. If no team has
    GPUs, a KAI of the host in the release table needs them.
    """
    if gpu_stack_pending(snapshot):
        return False
    autoscaled = [
        snapshot.settings.team_or_grant(name).autoscaled
        for name, state in snapshot.teams.items()
        if state.team.gpus
    ]
    if autoscaled:
        return not all(autoscaled)
    return host.kai is not None


def gpu_stack_pending(snapshot: Snapshot) -> bool:
    """Whether nodes may lack GPUs because the update that installs the GPU stack is to come.

    So it is before each update of a stack that installs one, also if it is there already.
    """
    return snapshot.before_update and snapshot.settings.gpu.provider != "none"


def _mig_slices(node: KubeObject) -> list[str]:
    """Return the resources of the MIG slices of which a node advertises some, of unknown profiles
    too: `nvidia.com/mig-1g.10gb`.
    """
    allocatable = node.status.get("allocatable") or {}
    return [name for name in allocatable if name.startswith(PREFIX) and node.gpus(name)]


def pool(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield what is wrong with the nodes of a team's pool.

    In this order: cordoned nodes, no usable node, taints that keep the team off, too few GPUs. A
    usable node is Ready and not cordoned, a cordoned one Ready and cordoned. A cordoned node is a
    warning beside usable ones, else broken, and then nothing else is looked at. No usable node is
    broken, and the last fault, but no fault for a pool of all nodes. Where an autoscaler adds
    nodes, too few nodes or GPUs are no fault.
    """
    team = state.team
    host = snapshot.host
    pool_nodes = [node for node in host.all("nodes") if has_labels(node, team.node_pool)]
    usable = [node for node in pool_nodes if node.takes_pods]
    cordoned = [node for node in pool_nodes if node.is_true("Ready") and not node.takes_pods]
    for node in cordoned:
        yield Affected(host, "node", node.name).at_level(
            Level.ADVISORY if usable else Level.MANDATORY,
            "is cordoned: no new pod is placed there",
            "when its maintenance is over: ",
            host.command(f"uncordon {NAMES}"),
        )
    if cordoned and not usable:
        return
    autoscaled = snapshot.settings.team_or_grant(team.name).autoscaled
    if not usable and team.node_pool and not autoscaled:
        none = f"none of the {len(pool_nodes)} nodes" if pool_nodes else "no node"
        yield _pool_subject(team, host).broken(
            f"{none} with these labels is Ready: every pod of team {team.name}, its DNS among"
            " them, stays Pending",
            "label nodes: ",
            host.command(f"label node <node> {_pool_labels(team)}"),
            f", or write labels that nodes have at {team.path}.nodePool; where an autoscaler makes"
            f" these nodes, write autoscaled: true at {team.path}",
        )
        return
    yield from _taints(state, snapshot, usable)
    if not autoscaled:
        yield from _missing_gpus(team, snapshot, usable, cordoned)


def _pool_labels(team: DeclaredTeam) -> str:
    """Return the labels of a team's pool, `key=value …`; `of all nodes` without any."""
    labels = [f"{key}={value}" for key, value in team.node_pool.items()]
    return " ".join(labels) or "of all nodes"


def _pool_subject(team: DeclaredTeam, host: Cluster) -> Affected:
    """Return `node pool LABELS` as a subject; teams with the same labels have the same one."""
    return Affected(host, "node pool", _pool_labels(team))


def _taints(state: TeamState, snapshot: Snapshot, usable: Sequence[KubeObject]) -> Faults:
    """Yield a warning for a pool whose usable nodes all have a taint that the team does not
    tolerate.

    Nothing without usable nodes, and before an update: there the program of a platform's stack
    warns of it. Of a team with a stack of its own only the doctor of that stack warns, and its fix
    is in the platform's stack file. Not if vCluster adds tolerations to all pods.
    """
    team = state.team
    if snapshot.before_update or state.declared_elsewhere:
        return
    if value_at(team.values, "sync.toHost.pods.enforceTolerations"):
        return
    path = team.path
    if snapshot.settings.platform_stack:
        path = f"kai-fleet:teamStacks.{team.name} of the platform"
    args = Arguments(snapshot.settings).namespace(team.name)
    taints = [node.spec.get("taints") or [] for node in usable]
    closed = closed_pool(args, taints, path)
    if closed is not None:
        cause, fix = closed
        host = snapshot.host
        yield _pool_subject(team, host).warning(cause, f"{fix}, then ", host.apply_command)


def _missing_gpus(
    team: DeclaredTeam,
    snapshot: Snapshot,
    usable: Sequence[KubeObject],
    cordoned: Sequence[KubeObject],
) -> Faults:
    """Yield each resource of which these nodes together advertise less than the team is granted.

    Too few are a warning. If there are none it is broken, but no fault for a team on all nodes, nor
    while `gpu_stack_pending`.
    """
    slices = set[str]()
    for node in usable:
        slices.update(_mig_slices(node))
    subject = _pool_subject(team, snapshot.host)
    for resource, granted in _granted_gpus(team).items():
        advertised = sum(node.gpus(resource) for node in (*usable, *cordoned))
        if advertised >= granted:
            continue
        if not advertised and (not team.node_pool or gpu_stack_pending(snapshot)):
            continue
        amount = f"{advertised:g}" if advertised else "no"
        cause = (
            f"its Ready nodes advertise {amount} {resource}, and team {team.name} is granted"
            f" {granted}"
        )
        if advertised:
            yield subject.warning(
                cause,
                f"add nodes to the pool, or lower {team.gpus_path}; where an autoscaler adds nodes,"
                " write autoscaled: true at its team",
            )
        elif slices:
            yield subject.broken(
                f"{cause}: their GPUs are cut, the slices are called {', '.join(sorted(slices))}",
                f"write how many of which at {team.gpus_path}, by name",
            )
        else:
            yield subject.broken(
                cause,
                "look at the pods of its device plugin, add nodes with GPUs, or lower"
                f" {team.gpus_path}",
            )


def _granted_gpus(team: DeclaredTeam) -> dict[str, int]:
    """Return the numbers of GPUs and MIG slices that a team is granted, by resource.

    Its whole GPUs are `gpus` without those that KAI counts for the slices; None counts as 0.
    """
    whole_gpus = int((team.gpus or 0) - gpus_of(team.slices))
    return {team.inside.gpu_resource: whole_gpus, **team.slices}


def inside(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield nodes that a vCluster shows and its pool does not have, and the other way round.

    Both are broken. Only of a vCluster with a scheduler of its own, which sees copies of real
    nodes. If the pool has no nodes on the host, nodes that the vCluster shows are no fault.
    """
    team = snapshot.team_of(cluster)
    if team is None or team.mode != "virtual":
        return
    host_nodes = snapshot.host.all("nodes")
    pool_names = {node.name for node in host_nodes if has_labels(node, team.node_pool)}
    copied_names = {node.name for node in cluster.all("nodes")}
    if pool_names:
        for name in sorted(copied_names - pool_names):
            yield Affected(cluster, "node", name).broken(
                "is of another pool: the scheduler inside hands out its GPUs",
                f"take sync.fromHost.nodes out of {team.path}.vcluster.values, then ",
                cluster.apply_command,
            )
    restart = f"-n {team.namespace} delete pod -l app=vcluster,release={team.name}"
    for name in sorted(pool_names - copied_names):
        yield Affected(cluster, "node", name).broken(
            "is of its pool, and not there: nothing is scheduled on it",
            "restart the vCluster, which copies it: ",
            snapshot.host.command(restart),
        )


def daemon_sets(host: Cluster, _: Snapshot) -> Faults:
    """Yield DaemonSets of the GPU stack, and device plugins anywhere, that lack Ready pods.

    Those in the namespaces of GPU_CHARTS are the GPU stack's. Not those created within a minute,
    which may still start. Messages about the DaemonSet tell why, then those about pods in the
    namespace whose names begin with the DaemonSet's.
    """
    for daemon_set in host.all("daemonsets"):
        if daemon_set.namespace not in GPU_CHARTS and not daemon_set.is_device_plugin:
            continue
        scheduled = int(daemon_set.status.get("desiredNumberScheduled") or 0)
        ready = int(daemon_set.status.get("numberReady") or 0)
        if ready >= scheduled or host.age_seconds(daemon_set) <= PATIENCE_SECONDS:
            continue
        pods = host.within("pods", daemon_set.namespace)
        pods_of_set = [pod for pod in pods if pod.name.startswith(daemon_set.name)]
        why = reason(host, daemon_set, *pods_of_set)
        look = host.command(f"-n {daemon_set.namespace} get pods,events")
        fix = why.fix or ("look with: ", look)
        yield Affected(host, "DaemonSet", daemon_set.namespaced_name).broken(
            f"{ready} of {scheduled} pods are Ready: {why.cause}", *fix, effect_of=why.effect_of
        )


def plugins(host: Cluster, _: Snapshot) -> Faults:
    """Yield nodes with more than one pod of NVIDIA's device plugin that has not ended."""
    plugins_by_node: dict[str, set[str]] = defaultdict(set)
    for pod in host.all("pods"):
        if pod.is_device_plugin and not pod.has_ended:
            plugins_by_node[pod.spec.get("nodeName") or ""].add(pod.namespaced_name)
    for node in host.all("nodes"):
        pods = sorted(plugins_by_node[node.name])
        if len(pods) > 1:
            yield Affected(host, "node", node.name).broken(
                f"has several device plugins ({', '.join(pods)}): each hands out the same GPUs",
                "keep one of them. To keep one that this stack did not install, write provider"
                " none at kai-fleet:gpu, then ",
                host.update_command,
            )


def shared_by_plugins(cluster: Cluster, snapshot: Snapshot) -> Faults:
    """Yield nodes whose GPUs are shared by KAI and by their device plugin, too.

    Labels of the host's nodes tell, also for a vCluster, whose node has the same name; the fault is
    always one of the host. Nothing for a cluster whose declared KAI does not share, or that has no
    KAI of the release table.
    """
    if not cluster.desired.scheduler.shares_gpus or cluster.kai is None:
        return
    names = {node.name for node in cluster.all("nodes")}
    for node in snapshot.host.all("nodes"):
        labels = [f"{key}={node.labels[key]}" for key in _SHARING_LABELS if key in node.labels]
        shared = [label for label in labels if not label.endswith(_NOT_SHARED)]
        if shared and node.name in names:
            yield Affected(snapshot.host, "node", node.name).broken(
                f"its device plugin shares GPUs by itself ({shared[0]}), and KAI shares them once"
                " more: pods run out of GPU memory",
                "take the sharing section out of the device plugin's config, or write gpuSharing:"
                f" false at {cluster.desired.key}",
            )


def switched_off(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield a KAI whose Config switches the sharing of GPUs off although the stack declares it, or
    although pods ask for it. Nothing if the Config does not tell.
    """
    asking = len(_sharing_pods(cluster))
    if _shares_gpus(cluster) is not False:
        return
    subject = Affected(cluster, "GPU sharing", "")
    if cluster.desired.declared and cluster.desired.scheduler.shares_gpus:
        yield subject.broken(
            f"is declared, and somebody switched it off ({asking} pods ask for a share)",
            *recreate_part(cluster),
        )
    elif asking:
        yield subject.broken(
            f"{asking} pods ask for a share of a GPU, and KAI denies it",
            f"write gpuSharing: true at {cluster.desired.key}, then ",
            cluster.apply_command,
        )


def _sharing_pods(cluster: Cluster) -> list[Pod]:
    """Return the pods of KAI that ask for a share of a GPU, or hold one; without ended ones."""
    return list(filter(_asks_for_share, cluster.usage.pods))


def _asks_for_share(pod: Pod) -> bool:
    return pod.by_kai and pod.gpu.shared


def _shares_gpus(cluster: Cluster) -> bool | None:
    """Whether KAI's Config lets pods share GPUs; None if it does not tell, or is absent."""
    config = cluster.find("configs", "kai-config")
    spec = config.spec if config else {}
    mode = value_at(spec, "global.gpuSharingMode")  # from v0.18; it overrides the older switch
    if mode:
        return str(mode) != DISABLED
    switch = value_at(spec, "admission.gpuSharing")
    return None if switch is None else bool(switch)


def sharing(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield running pods that share a GPU and have no group, a group without a reservation pod, or
    a group whose fractions are more than one GPU.
    """
    for pod in _sharing_pods(cluster):
        if pod.phase == "Running" and not pod.groups:
            yield Affected(cluster, "pod", pod.namespaced_name).broken(
                f"runs with a share of a GPU and has no label {GPU_GROUP}: KAI does not count it",
                cluster.command(f"-n {NAMESPACE} delete pod {NAMES}"),
                ", so that KAI places it anew",
            )
    for node in cluster.usage.nodes.values():
        for gpu in node.shared:
            yield from _shared_gpu_faults(cluster, node, gpu)


def _shared_gpu_faults(cluster: Cluster, node: Node, gpu: SharedGpu) -> Faults:
    """Yield the running pods of KAI with a share of this GPU, each, if no reservation pod holds the
    GPU, as faults of check `reservation`, or else if their fractions are more than one GPU.

    The sum is without shares of memory if the memory of the node's GPUs is not known.
    """
    running = [pod for pod, _ in gpu.holders if _asks_for_share(pod) and pod.phase == "Running"]
    sized = [pod for pod in running if node.kai_memory or pod.gpu.fraction]
    total = sum(pod.gpu.fraction_of(node.kai_memory) for pod in sized)
    for pod in running:
        subject = Affected(cluster, "pod", pod.namespaced_name)
        if not gpu.reserved:
            yield subject.broken(
                f"shares GPU group {gpu.group}, which no reservation pod holds: others get its GPU"
                " too",
                cluster.command(f"-n {NAMESPACE} delete pod {NAMES}"),
                ", so that KAI places it anew",
                check="reservation",
            )
        elif total > _WHOLE_GPU:
            yield subject.broken(
                f"is of GPU group {gpu.group}, whose pods hold {total:g} GPUs together",
                "delete one of them, so that it is placed anew: ",
                cluster.command(f"-n {NAMESPACE} delete pod {NAME}"),
            )


def reservations(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield reservation pods that do not run, that found no GPU, or whose GPU nobody shares.

    A reservation pod holds a GPU for the pods that share it. Those younger than a minute may still
    start, and are left out. The last case is a warning. A pod of KAI that has not ended shares the
    GPUs of its groups, also while it waits.
    """
    shared_groups = set[str]()
    for use in cluster.usage.pods:
        if use.by_kai:
            shared_groups.update(use.groups)
    delete = cluster.command(f"-n {NAMESPACE} delete pod {NAMES}")
    describe = cluster.command(f"-n {NAMESPACE} describe pod {NAME}")
    for pod in cluster.within("pods", RESERVATIONS):
        if cluster.age_seconds(pod) < PATIENCE_SECONDS:
            continue
        subject = Affected(cluster, "reservation pod", pod.namespaced_name)
        if pod.phase != "Running":
            why = reason(cluster, pod)
            fix: Fix = (delete,)
            if why.fix:
                fix = (*why.fix, "; then ", delete)
            elif cluster.unread("events", "bound"):
                fix = ("look with: ", describe)
            yield subject.broken(f"is {pod.phase}: {why.cause}", *fix, effect_of=why.effect_of)
        elif not pod.annotations.get(GPU_UUID_ANNOTATION):
            yield subject.broken(
                "runs and has not found its GPU: the pods that share it wait, and are given up"
                " after 40 s",
                "it must see exactly one GPU: set the RuntimeClass nvidia, or the container"
                " runtime's default; then ",
                delete,
            )
        elif pod.labels.get(GPU_GROUP) not in shared_groups:
            yield subject.warning("holds a whole GPU that no pod shares", delete)


def no_runtime_class(cluster: Cluster, effect: str) -> Fault:
    """Return the fault that a cluster lacks the RuntimeClass of reservation pods.

    `effect` is what that means, as a clause. In a vCluster it is an effect of the same fault on the
    host.
    """
    subject = Affected(cluster, "RuntimeClass", NVIDIA_CLASS)
    cause = f"is not there: {effect}"
    if cluster.name == HOST:
        return subject.broken(
            cause,
            "set kai-fleet:gpu.provider to operator or device-plugin, then ",
            cluster.update_command,
            "; where a device plugin runs that this stack did not install, make the class with"
            ' handler nvidia, or write "" at binder.runtimeClassName of KAI\'s values',
        )
    return subject.broken(
        cause,
        "the vCluster copies it from the host, where it has to be: leave"
        " sync.fromHost.runtimeClasses of the vCluster's values on, then ",
        cluster.update_command,
        effect_of=f"RuntimeClass {NVIDIA_CLASS}",
    )
