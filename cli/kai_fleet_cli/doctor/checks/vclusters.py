"""Each team's vCluster: there, ready, reached, its certificate valid, its GPUs bounded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from kai_fleet.cluster.tenant_kubeconfig import mending_commands, name_writer
from kai_fleet.releases import VCLUSTER, vcluster_support
from kai_fleet.settings.quantities import parse_quantity
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot, TeamState
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.known_messages import meaning
from kai_fleet_cli.doctor.objects import Object, labels_of, name_of, spec, status
from kai_fleet_cli.doctor.objects import condition as condition_of

NAME = "vcluster"
QUOTA = "gpu-quota"
_SOON = timedelta(days=30)


def check(look: Snapshot) -> Iterator[Finding]:
    """Every team."""
    for team in look.teams.values():
        if team.wanted.granted:
            yield from _quota(look.host, team)
            continue
        found = list(_outside(look.host, team))
        yield from found
        if not found:
            yield look.host.well(NAME, f"vCluster {team.wanted.name}")
        yield from _quota(look.host, team)


def _outside(host: ClusterState, team: TeamState) -> Iterator[Finding]:
    wanted = team.wanted
    subject = f"vCluster {wanted.name}"
    if "namespaces" not in host.unreadable and not host.named("namespaces", wanted.namespace):
        yield host.broken(NAME, subject, f"namespace {wanted.namespace} is not there", host.update)
        return
    if team.foreign:
        again = mending_commands(wanted.name, wanted.namespace, host.kubectl)
        yield host.broken(
            NAME,
            f"kubeconfig of {subject}",
            f"{team.unreached}. {name_writer(wanted.name)}, so nothing in the vCluster was checked",
            f"have it written again: {', then '.join(f'`{each}`' for each in again)}",
        )
    item = host.named("statefulsets", wanted.name, wanted.namespace)
    if item is None and "statefulsets" not in host.unreadable:
        cause = f"StatefulSet {wanted.name} is not there: it is not running"
        yield host.broken(NAME, subject, cause, _made_again(host, team))
        return
    if item is not None:
        not_ready = list(_ready(host, team, item))
        yield from not_ready
        if not_ready and not _runs(item):
            return  # so its API does not answer either
    if team.inside is None and not team.foreign:
        only_inside = wanted.access is not None and wanted.access.type == "ClusterIP"
        hint = "; access type ClusterIP is reached from inside the host only" if only_inside else ""
        yield host.broken(
            NAME,
            f"API of {subject}",
            f"{team.unreached}{hint}",
            f"look with: `{host.kubectl} -n {wanted.namespace} get pods,services,secrets` and"
            f" `{host.kubectl} -n {wanted.namespace} logs {wanted.name}-0`",
        )
    yield from _certificate(host, team)


def _ready(host: ClusterState, team: TeamState, item: Object) -> Iterator[Finding]:
    wanted = team.wanted
    subject = f"vCluster {wanted.name}"
    replicas = spec(item).get("replicas", 1)
    if replicas == 0 or status(item).get("readyReplicas", 0) < replicas:
        in_place = f"{host.kubectl} -n {wanted.namespace}"
        if replicas == 0:
            cause = "it is scaled to 0"
            fix = f"`{in_place} scale statefulset {wanted.name} --replicas=1`"
        else:
            cause = _why(host, team)
            fix = f"look with: `{in_place} logs {wanted.name}-0`; then {team.update or host.update}"
        yield host.broken(NAME, subject, cause, fix)
    runs = labels_of(item).get("chart", "").removeprefix("vcluster-")
    if wanted.version and runs and runs != wanted.version.removeprefix("v"):
        yield host.broken(
            NAME,
            subject,
            f"it runs v{runs}, and {wanted.version} is wanted",
            f"{team.update or host.update}, or write v{runs} at {wanted.key}.vcluster.version",
        )
    elif runs and not (said := vcluster_support(f"v{runs}", host.now.date())).maintained:
        yield host.warning(
            NAME,
            subject,
            f"it runs v{runs}: {said.words}",
            f"go up one line at a time at {wanted.key}.vcluster.version",
        )


def _made_again(host: ClusterState, team: TeamState) -> str:
    """Where the chart's Service is left, the release stands, and an update leaves it alone.

    What the release has is applied only where it was looked at: a tenant may have written it.
    """
    name, at = team.wanted.name, f"-n {team.wanted.namespace}"
    if team.records:
        return "first put Helm's record right (helm-record), then look again"
    if not host.named("services", name, team.wanted.namespace):
        return team.update or host.update
    return (
        f"make it again as the release has it: `{host.helm} {at} get manifest {name}"
        f" | {host.kubectl} {at} apply -f -`"
    )


def _runs(item: Object) -> bool:
    return bool(status(item).get("readyReplicas", 0))


def _why(host: ClusterState, team: TeamState) -> str:
    """The first reason that its pods, their containers or its events give."""
    wanted = team.wanted
    for pod in host.within("pods", wanted.namespace):
        if labels_of(pod).get("app") != "vcluster" or labels_of(pod).get("release") != wanted.name:
            continue
        scheduled = condition_of(pod, "PodScheduled")
        if scheduled.get("status") == "False":
            return f"pod {name_of(pod)} has no node: {scheduled.get('message', '')}"
        for container in status(pod).get("containerStatuses") or []:
            for state in (container.get("lastState") or {}, container.get("state") or {}):
                for detail in state.values():
                    known = meaning(str((detail or {}).get("message") or ""))
                    if known is not None:
                        return host.filled_in(known.cause)
    for event in host.all("events"):
        about = event.get("involvedObject") or {}
        if about.get("namespace") == wanted.namespace and about.get("name") in (
            wanted.name,
            f"{wanted.name}-0",
        ):
            return f"it is not ready: {event.get('message', '')}"[:300]
    return "it is not ready, and nothing says why"


def _certificate(host: ClusterState, team: TeamState) -> Iterator[Finding]:
    ends = team.certificate_ends
    if ends is None or ends > host.now + _SOON:
        return
    subject = f"certificate of vCluster {team.wanted.name}"
    day = f"{ends:%Y-%m-%d %H:%M} UTC"
    fix = _renewed(host, team)
    if ends <= host.now:
        yield host.broken(NAME, subject, f"it ran out on {day}: nobody is let in", fix)
    else:
        yield host.warning(NAME, subject, f"it runs out on {day}", fix)


def _renewed(host: ClusterState, team: TeamState) -> str:
    """From v0.31 on a vCluster renews its certificates when it starts, and each day it looks."""
    wanted, update = team.wanted, team.update or host.update
    item = host.named("statefulsets", wanted.name, wanted.namespace)
    runs = f"v{labels_of(item).get('chart', '').removeprefix('vcluster-')}" if item else ""
    if runs in VCLUSTER and not VCLUSTER[runs].renews:
        first = next(version for version, it in VCLUSTER.items() if it.renews)
        return (
            f"{runs} does not renew it: write {first} at {wanted.key}.vcluster.version, one line at"
            f" a time; {first} renews it when it starts. Then {update}"
        )
    return (
        f"renew it by a restart: `{host.kubectl} -n {wanted.namespace} rollout restart statefulset"
        f" {wanted.name}`; then {update}"
    )


def _quota(host: ClusterState, team: TeamState) -> Iterator[Finding]:
    """The bound on a team's GPUs, which its own scheduler does not know of (V1, V7)."""
    wanted = team.wanted
    if not wanted.declared or "resourcequotas" in host.unreadable:
        return
    if not host.named("namespaces", wanted.namespace):
        return
    key = f"requests.{wanted.inside.gpu_resource}"
    subject = f"ResourceQuota gpus in namespace {wanted.namespace}"
    item = host.named("resourcequotas", "gpus", wanted.namespace)
    hard = (spec(item).get("hard") or {}) if item is not None else {}
    if key not in hard:
        yield host.broken(
            QUOTA,
            subject,
            f"it is not there, or does not bound {key}: the team may take every GPU of its nodes",
            host.update,
        )
    elif wanted.gpus is not None and parse_quantity(hard[key]) != wanted.gpus:
        yield host.broken(
            QUOTA,
            subject,
            f"it lets the team have {hard[key]} GPUs, and {wanted.gpus} are declared",
            f"{host.update}, or write {hard[key]} at {wanted.key}.gpus",
        )
    else:
        yield host.well(QUOTA, subject)
