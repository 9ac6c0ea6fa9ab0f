"""Checks of a team's control plane on the host: that it runs, and that its store has room.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object.
"""

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.store_use import grows
from kai_fleet.releases import ETCD_RESOURCES
from kai_fleet_cli.doctor.checks import access
from kai_fleet_cli.doctor.checks.kai import killed_for_memory, killed_lately
from kai_fleet_cli.doctor.faults import NAME, Affected, Fault, Faults, Why
from kai_fleet_cli.doctor.messages import reason
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState
from kai_fleet_cli.recovery import full_store
from kai_fleet_policies.finding import Command, Fix
from kai_fleet_policies.model.cluster import DeclaredTeam

_NEARLY_FULL = full_store.NEARLY


def vcluster(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a team's namespace that is absent or being deleted, else what is wrong with its
    vCluster, unless another stack declares the vCluster.
    """
    host = snapshot.host
    name = state.team.namespace
    namespace = host.find("namespaces", name)
    subject = Affected(host, "namespace", name)
    if namespace is None:
        yield subject.broken("is not there", host.update_command)
    elif namespace.is_being_deleted:
        yield subject.broken("is being deleted, with all that is in it", host.update_command)
    elif not state.declared_elsewhere:
        yield from access.kubeconfig(state, host)
        yield from _control_plane_faults(state, snapshot)


def _control_plane_faults(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield the first that applies: the control plane is absent, scaled to 0, not ready, or its API
    was not reached. The last not if `access.kubeconfig` says why.
    """
    team = state.team
    host = snapshot.host
    control_plane = _control_plane(state, host)
    subject = Affected(host, "vCluster", team.name)
    workload = team.store.workload
    if control_plane is None:
        yield subject.broken(f"its {workload} is not there", *_recreate_vcluster(team, snapshot))
    elif control_plane.spec.get("replicas", 1) == 0:
        scale = f"-n {team.namespace} scale {workload} {NAME} --replicas=1"
        yield subject.broken("is scaled to 0", host.command(scale))
    elif not _is_ready(control_plane):
        yield _vcluster_not_ready(state, host, control_plane)
    elif state.inside is None and not state.foreign and not state.hidden:
        yield access.unreached(state, host)


def _recreate_vcluster(team: DeclaredTeam, snapshot: Snapshot) -> Fix:
    """Return the fix for an absent control plane.

    If the Service of the chart exists the release does, too, and no update creates its objects:
    the fix applies the release's manifest. Else it is an update.
    """
    host = snapshot.host
    if host.find("services", team.name, team.namespace) is None:
        return (snapshot.update_command,)
    return host.recreate_release(team.name, team.namespace)


def _vcluster_not_ready(state: TeamState, host: Cluster, control_plane: KubeObject) -> Fault:
    """Return the fault of a control plane that is not ready; without a known fix, where to look.

    That is at its logs and its pods, by labels that its chart writes.
    """
    team = state.team
    why_not_ready = _why_not_ready(state, host, control_plane)
    pods = f"-n {team.namespace} describe pod -l app=vcluster,release={team.name}"
    fix = why_not_ready.fix or ("look with: ", access.logs(team, host), " and ", host.command(pods))
    return Affected(host, "vCluster", team.name).broken(
        f"is not ready: {why_not_ready.cause}", *fix, effect_of=why_not_ready.effect_of
    )


def _control_plane(state: TeamState, host: Cluster) -> KubeObject | None:
    """Return the workload of a vCluster: its StatefulSet, else its Deployment, which has no volume.

    None if neither is there. Which of them the stack declares does not count.
    """
    name = state.team.name
    namespace = state.team.namespace
    stateful_set = host.find("statefulsets", name, namespace)
    return stateful_set or host.find("deployments", name, namespace)


def _is_ready(control_plane: KubeObject) -> bool:
    """Whether a workload has all its replicas Ready; its spec asks for 1 if it does not say.

    True for 0 replicas.
    """
    ready = control_plane.status.get("readyReplicas", 0)
    return bool(ready >= control_plane.spec.get("replicas", 1))


def _why_not_ready(state: TeamState, host: Cluster, control_plane: KubeObject) -> Why:
    """Return why a control plane is not ready.

    First a container that was killed for memory within a day: then it is an effect of that pod's
    fault. Else what messages say, those about claims with the team in their name before those about
    pods, which only wait for them, and last those about the workload. If pods or claims were not
    read in all namespaces, the cause says that.
    """
    pods = list[KubeObject]()
    if not host.unread("pods"):
        pods = state.control_plane_pods(host)
    for pod in pods:
        if last := killed_lately(host, [pod]):
            return Why(last.sentence, effect_of=f"pod {pod.name}")
    if unread := host.unread("pods", "persistentvolumeclaims"):
        return Why(f"why is not known: {unread}")
    claims = [
        claim
        for claim in host.within("persistentvolumeclaims", state.team.namespace)
        if state.team.name in claim.name
    ]
    return reason(host, *claims, *pods, control_plane)


def store(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a warning for each volume and etcd member of a vCluster's store that is more than 80 %
    full.

    A full store takes no more writes. A volume that already grows is no fault.
    """
    yield from _nearly_full_volumes(state, snapshot.host)
    yield from _nearly_full_etcds(state, snapshot.host)


def _nearly_full_volumes(state: TeamState, host: Cluster) -> Faults:
    """Yield volumes that are more than 80 % full, and whose claim exists and does not grow already.

    The fix grows them.
    """
    team = state.team
    for name, fraction in state.store.volumes.items():
        claim = host.find("persistentvolumeclaims", name, team.namespace)
        if fraction <= _NEARLY_FULL or claim is None or grows(claim):
            continue
        grow = full_store.growth(team.name, [claim], host.kubectl)
        yield _nearly_full(state, host, f"volume {name}", fraction, Command(grow))


def _nearly_full_etcds(state: TeamState, host: Cluster) -> Faults:
    """Yield members whose file takes more than 80 % of their quota.

    The fix is a larger quota if the data fill it, else a compaction.
    """
    team = state.team
    for member, etcd in state.store.etcds.items():
        if etcd.total <= _NEARLY_FULL * etcd.quota:
            continue
        fix: Fix = (Command(full_store.compaction(team.name, host.kubectl)),)
        if etcd.used > _NEARLY_FULL * etcd.quota:
            path = team.key_path_of("vcluster", "values")
            quota = full_store.larger_quota(etcd.quota)
            fix = (f"write {quota} at {path}, then ", host.apply_command)
        yield _nearly_full(state, host, f"etcd {member}", etcd.total / etcd.quota, *fix)


def _nearly_full(
    state: TeamState, host: Cluster, part: str, fraction: float, *fix: str | Command
) -> Fault:
    """Return the warning for a part of a store, such as `volume data-ml-0`.

    `fraction` of it, 0 to 1, is in use.
    """
    return Affected(host, "store of vCluster", state.team.name).warning(
        f"its {part} is {fraction:.0%} full: a store that is full takes no more writes", *fix
    )


def killed(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield pods of a vCluster, or of its etcd, of which a container was killed for memory within a
    day.

    That is a warning if the control plane is ready again, else broken. Nothing if the control plane
    is absent, scaled to 0, or of another stack.
    """
    host = snapshot.host
    if state.declared_elsewhere:
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
        yield killed_for_memory(
            Affected(host, "pod", pod.name),
            last,
            state.team.key_path_of(key),
            runs_again=_is_ready(control_plane),
        )
