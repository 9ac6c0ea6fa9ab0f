"""Each team's vCluster: there, ready, reached, with a valid certificate and Helm's own records."""

import re
from datetime import timedelta
from typing import Final

from kai_fleet.cluster.tenant_kubeconfig import name_writer
from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.kube.objects import KubeObject, seconds_since
from kai_fleet.releases import VCLUSTER, advice, vcluster_support
from kai_fleet.settings.sections.access import OF_STACK, OF_TEAM
from kai_fleet.values import value_at
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot, TeamState
from kai_fleet_cli.waiting.finding import Reason
from kai_fleet_policies.rules.vcluster_stores import same_claim

_SOON = timedelta(days=30)
_RECENTLY = 300  # seconds; a kubelet says it again each time that it looks at the pod
_NO_IMAGE: Final = ("ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull")
_OF_REGISTRIES: Final = ("kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg")
_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"


def check(snapshot: Snapshot) -> Findings:
    """Every team; of one with a stack of its own the namespace alone."""
    host = snapshot.host
    for team in snapshot.teams.values():
        subject = f"vCluster {team.wanted.name}"
        if why := _without_namespace(host, team.wanted.namespace):
            yield host.broken(subject, why)
        elif not team.wanted.granted:
            yield from host.or_well(_vcluster(host, team, subject), subject)


def _without_namespace(host: ClusterState, name: str) -> str:
    """Why a team has no namespace, as after a removal that was cut off; "" where it has one."""
    namespace = host.named("namespaces", name)
    if namespace is None:
        return "" if "namespaces" in host.unreadable else f"namespace {name} is not there"
    ends = "deletionTimestamp" in namespace["metadata"]
    return f"namespace {name} is being deleted, and all that is in it" if ends else ""


def check_records(snapshot: Snapshot) -> Findings:
    """Helm's records of the teams' releases, which nobody but Helm writes: it does what they say
    when it removes or upgrades a release, and who runs it has more rights than a tenant.

    Of a team with a stack of its own too: it may move here.
    """
    host = snapshot.host
    for name, team in snapshot.teams.items():
        subject = f"Helm's record of release {name}"
        if team.records:
            secrets = " ".join(it.secret for it in team.records)
            yield host.broken(
                subject,
                f"it is not what vCluster's chart makes, and Helm would do what it says:"
                f" {'; '.join(f'Secret {it.secret} {it.why}' for it in team.records)}",
                "find out who wrote it (managedFields), then delete it before anything else is done"
                f" to team {name}: `{host.kubectl} -n {team.wanted.namespace} delete secret"
                f" {secrets}`, then {team.update}",
            )
        elif team.records is not None:
            yield host.well(subject)


def _vcluster(host: ClusterState, team: TeamState, subject: str) -> Findings:
    wanted = team.wanted
    kubectl = f"{host.kubectl} -n {wanted.namespace}"
    if team.foreign:
        yield host.broken(
            f"kubeconfig of {subject}",
            f"{team.unreached}. {name_writer(wanted.name)}, so nothing in the vCluster was checked",
            f"have it written again: {', then '.join(f'`{it}`' for it in team.mending(host))}",
        )
    yield from _pull_secrets(host, team)
    item, kinds = host.control_plane(wanted), {"statefulsets", "deployments"}
    if item is None and not kinds & host.unreadable.keys():
        kind = "StatefulSet" if wanted.store.workload == "statefulset" else "Deployment"
        cause = f"{kind} {wanted.name} is not there: it is not running"
        yield host.broken(subject, cause, _make_again(host, team))
        return
    if item is not None:
        yield from _volume(host, team)
        not_ready = [*_readiness(host, team, item, subject), *_version(host, team, subject)]
        yield from not_ready
        if not_ready and not item.status.get("readyReplicas"):
            return  # so its API does not answer either
    if team.inside is None and not team.foreign:
        access, hint = wanted.access, ""
        if access is not None and access.type == "ClusterIP":
            hint = "; access type ClusterIP is reached from inside the host only"
        elif access is not None and access.led_by_name:
            hint = (
                f"; {access.endpoint} has to lead to the {access.type}'s controller, which has to"
                " pass TLS through"
            )
        yield host.broken(
            f"API of {subject}",
            f"{team.unreached}{hint}",
            f"look with: `{kubectl} get pods,services,secrets` and"
            f" `{kubectl} logs {_of_logs(wanted)}`",
        )
    yield from _certificate(host, team)


def _of_logs(wanted: DeclaredTeam) -> str:
    """What kubectl reads the control plane's logs of."""
    kept = wanted.store.workload == "statefulset"
    return f"{wanted.name}-0" if kept else f"deployment/{wanted.name}"


def _volume(host: ClusterState, team: TeamState) -> Findings:
    """A volume that was made otherwise than it is declared, which no update changes (C5)."""
    wanted, etcd = team.wanted, team.wanted.store.type == "etcd"
    key_of = f"{wanted.path}.vcluster.store" if etcd else f"{wanted.path}.vcluster"
    name = f"{wanted.name}-etcd" if etcd else wanted.name
    item = host.named("statefulsets", name, wanted.namespace)
    templates = (item.spec.get("volumeClaimTemplates") if item else None) or []
    for template in (it for it in templates if it["metadata"]["name"] == "data"):
        for key, at in (
            ("storageClass", "storageClassName"),
            ("size", "resources.requests.storage"),
        ):
            has, declared = value_at(template, f"spec.{at}"), wanted.store.claim.get(key)
            if has is not None and declared and not same_claim(key, has, declared):
                yield host.warning(
                    f"volume of vCluster {wanted.name}",
                    f"its {key} is {has}, and {declared} is declared: no update changes it",
                    f"write {has} at {key_of}.{key}",
                )


def _pull_secrets(host: ClusterState, team: TeamState) -> Findings:
    """Secrets that kubelets miss when they pull the team's images, or do not read."""
    wanted = team.wanted
    kubectl = f"{host.kubectl} -n {wanted.namespace}"
    missed = " ".join(
        str(event.get("message"))
        for event in host.within("events", wanted.namespace)
        if event.get("reason") == "FailedToRetrieveImagePullSecret"
        and seconds_since(event.last_seen, host.now) < _RECENTLY
    )
    for name in wanted.image_pull_secrets:
        kind = team.pull_secrets.get(name)
        subject = f"Secret {name} in namespace {wanted.namespace}"
        make = (
            f"write its credentials into a file, then `{kubectl}"
            f" create secret generic {name} --type=kubernetes.io/dockerconfigjson"
            " --from-file=.dockerconfigjson=config.json`"
        )
        if name in (OF_STACK, OF_TEAM):
            make = host.update if name == OF_STACK else team.update
        if kind == "" or (kind is None and re.search(rf"[(, ]{re.escape(name)}[), ]", missed)):
            drop = f", or drop it from {wanted.path}.vcluster.imagePullSecrets"
            yield host.broken(
                subject,
                "it is not there, and images are pulled without it",
                make if name in (OF_STACK, OF_TEAM) else f"{make}{drop}",
            )
        elif kind is not None and kind not in _OF_REGISTRIES:
            yield host.broken(
                subject,
                f"it is of type {kind}, which no kubelet reads for images, and Kubernetes changes"
                " no Secret's type",
                f"`{kubectl} delete secret {name}`, then {make}",
            )


def _readiness(host: ClusterState, team: TeamState, item: KubeObject, subject: str) -> Findings:
    name, replicas = team.wanted.name, item.spec.get("replicas", 1)
    kubectl = f"{host.kubectl} -n {team.wanted.namespace}"
    if replicas == 0:
        fix = f"`{kubectl} scale {team.wanted.store.workload} {name} --replicas=1`"
        yield host.broken(subject, "it is scaled to 0", fix)
    elif item.status.get("readyReplicas", 0) < replicas:
        reason = _by_status(host, team) or _why_not_ready(host, team)
        logs = f"`{kubectl} logs {_of_logs(team.wanted)}`"
        look = f"look with: {logs} and `{kubectl} describe pod {name}-0`"
        yield host.broken(subject, reason.cause, reason.fix or look)


def _version(host: ClusterState, team: TeamState, subject: str) -> Findings:
    wanted, runs = team.wanted, host.vcluster_version(team.wanted)
    if runs is None:
        return
    if wanted.version and runs != f"v{wanted.version.removeprefix('v')}":
        yield host.broken(
            subject,
            f"it runs {runs}, and {wanted.version} is wanted",
            f"{team.update}, or write {runs} at {wanted.path}.vcluster.version",
        )
    elif not (support := vcluster_support(runs, host.now.date())).maintained:
        key = wanted.written_at("vcluster", "version")
        fix = f"{advice(VCLUSTER, runs, host.now.date())}, at {key}"
        yield host.warning(subject, f"it runs {runs}: {support.words}", fix)


def _make_again(host: ClusterState, team: TeamState) -> str:
    """Where the chart's Service is left, the release stands, and an update leaves it alone.

    What the release has is applied only where it was looked at: a tenant may have written it.
    """
    name, namespace = team.wanted.name, team.wanted.namespace
    if team.records:
        return "first put Helm's record right (helm-record), then look again"
    if not host.named("services", name, namespace):
        return team.update
    return f"make it again as the release has it: {host.apply_release(name, namespace)}"


def _by_status(host: ClusterState, team: TeamState) -> Reason | None:
    """What its volumes or its containers wait for, which no update of the stack brings."""
    name, namespace = team.wanted.name, team.wanted.namespace
    if (reason := _by_volumes(host, name, namespace)) is not None:
        return reason
    for pod in host.control_plane_pods(team.wanted):
        for text in pod.waiting:
            if text.startswith(_NO_IMAGE):
                return Reason(
                    f"pod {pod.name} gets no image: {text}",
                    f"write a version that the registry has at {team.wanted.path}.vcluster.version,"
                    " or let the nodes reach the registry, with credentials where it wants some;"
                    " the pod comes by itself then. Look with:"
                    f" `{host.kubectl} -n {namespace} describe pod {pod.name}`",
                )
    return None


def _by_volumes(host: ClusterState, name: str, namespace: str) -> Reason | None:
    if "storageclasses" not in host.objects:
        return None
    classes = host.all("storageclasses")
    there = ", ".join(item.name for item in classes) or "none"
    for claim in host.within("persistentvolumeclaims", namespace):
        own = re.search(rf"-{re.escape(name)}(-etcd)?-\d+$", claim.name)
        if own is None or claim.phase != "Pending":
            continue
        wanted = claim.spec.get("storageClassName")
        if wanted and not host.named("storageclasses", wanted):
            return Reason(
                f"its volume {claim.name} waits for StorageClass {wanted}, which is not there"
                f" (there: {there})",
                f"make StorageClass {wanted} on the host; the volume and the pod come by themselves"
                " then",
            )
        if wanted is None and not any(item.annotations.get(_DEFAULT) == "true" for item in classes):
            return Reason(
                f"its volume {claim.name} names no StorageClass, and the host has no default one"
                f" (there: {there})",
                f'annotate one of the host\'s with {_DEFAULT}: "true"',
            )
    return None


def _why_not_ready(host: ClusterState, team: TeamState) -> Reason:
    """The first reason that its pods, their containers or its events give, and its fix if known."""
    name, namespace = team.wanted.name, team.wanted.namespace
    for pod in host.control_plane_pods(team.wanted):
        scheduled = pod.condition("PodScheduled")
        if scheduled.get("status") == "False":
            return Reason(f"pod {pod.name} has no node: {scheduled.get('message', '')}", "")
        if (known := host.explain(*pod.container_messages)) is not None:
            return known
    for event in host.all("events"):
        about = event.get("involvedObject") or {}
        if about.get("namespace") == namespace and about.get("name") in (name, f"{name}-0"):
            return Reason(f"it is not ready: {event.get('message', '')}"[:300], "")
    return Reason("it is not ready, and nothing says why", "")


def _certificate(host: ClusterState, team: TeamState) -> Findings:
    ends = team.certificate_ends
    if ends is None or ends > host.now + _SOON:
        return
    subject = f"certificate of vCluster {team.wanted.name}"
    day = f"{ends:%Y-%m-%d %H:%M} UTC"
    fix = _renew(host, team)
    if ends <= host.now:
        yield host.broken(subject, f"it ran out on {day}: nobody is let in", fix)
    else:
        yield host.warning(subject, f"it runs out on {day}", fix)


def _renew(host: ClusterState, team: TeamState) -> str:
    """From v0.31 on a vCluster renews its certificates when it starts, and each day it looks."""
    wanted, runs = team.wanted, host.vcluster_version(team.wanted)
    if (known := VCLUSTER.get(runs or "")) is not None and not known.renews:
        first = next(version for version, it in VCLUSTER.items() if it.renews)
        return (
            f"{runs} does not renew it: write {first} at {wanted.path}.vcluster.version, one line"
            f" at a time; {first} renews it when it starts. Then {team.update}"
        )
    return (
        f"renew it by a restart: `{host.kubectl} -n {wanted.namespace} rollout restart"
        f" {wanted.store.workload} {wanted.name}`; then {team.update}"
    )
