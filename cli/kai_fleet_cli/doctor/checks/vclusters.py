"""Each team's vCluster: there, ready, of the declared version, reached, its certificate valid."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from kai_fleet.cluster.tenant_kubeconfig import name_writer
from kai_fleet.releases import VCLUSTER
from kai_fleet_cli.doctor.causes import Fault, explain, fault
from kai_fleet_cli.doctor.snapshot import (
    Cluster,
    Snapshot,
    TeamState,
    control_plane,
    control_plane_pods,
    vcluster_version,
)

_SOON: Final = timedelta(days=30)


def vcluster(team: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """One team; of one with a stack of its own the namespace alone."""
    host, space = snapshot.host, team.desired.namespace
    found = host.named("namespaces", space)
    if found is None and "namespaces" not in host.unreadable:
        yield fault("namespace-absent", host, space)
    elif found is not None and "deletionTimestamp" in found["metadata"]:
        yield fault("namespace-going", host, space)
    elif not team.desired.granted:
        yield from _vcluster(team, host)


def _vcluster(team: TeamState, host: Cluster) -> Iterator[Fault]:
    desired, name, space = team.desired, team.desired.name, team.desired.namespace
    own = {"space": space, "workload": desired.workload, "update": team.update}
    kubectl = f"{host.kubectl} -n {space}"
    if team.foreign:
        values = {"unreached": team.unreached, "writer": name_writer(name)}
        yield fault("kubeconfig-foreign", host, name, again=team.new_kubeconfig(host), **values)
    item = control_plane(host, desired)
    if item is None and not {"statefulsets", "deployments"} & host.unreadable.keys():
        # Where the chart's Service is left, the release stands, and an update leaves it.
        left = host.named("services", name, space) is not None
        again = host.made_again(name, space) if left else team.update
        yield fault("vcluster-absent", host, name, again=again, **own)
        return
    replicas = item.spec.get("replicas", 1) if item is not None else 0
    if item is not None and replicas == 0:
        yield fault("vcluster-scaled-to-0", host, name, **own)
        return
    logs = f"{name}-0" if desired.workload == "statefulset" else f"deployment/{name}"
    if item is not None and item.status.get("readyReplicas", 0) < replicas:
        look = f"look with: `{kubectl} logs {logs}` and `{kubectl} describe pod {name}-0`"
        yield _not_ready(team, host, look)
    elif team.inside is None and not team.foreign:
        look = f"look with: `{kubectl} get pods,services,secrets` and `{kubectl} logs {logs}`"
        yield fault(
            "vcluster-unreached", host, name, unreached=team.unreached + _hint(team), look=look
        )
    runs = vcluster_version(host, desired)
    if runs and desired.version and runs != f"v{desired.version.removeprefix('v')}":
        own |= {"runs": runs, "declared": desired.version, "path": desired.version_key}
        yield fault("vcluster-version", host, name, **own)
    ends = team.certificate_ends
    if ends is not None and ends <= host.now + _SOON:
        row = "certificate-expired" if ends <= host.now else "certificate-expires"
        yield fault(row, host, name, day=f"{ends:%Y-%m-%d %H:%M}", fix=_renew(team, host, runs))


def _hint(team: TeamState) -> str:
    access = team.desired.access
    if access is not None and access.type == "ClusterIP":
        return "; access type ClusterIP is reached from inside the host only"
    if access is not None and access.led_by_name:
        where = f"{access.endpoint} has to resolve to the {access.type}'s controller"
        return f"; {where}, which has to pass TLS through"
    return ""


def _not_ready(team: TeamState, host: Cluster, look: str) -> Fault:
    """What its volumes, its pods or their events give as the reason, and the fix if known."""
    name, space = team.desired.name, team.desired.namespace
    claims = host.within("persistentvolumeclaims", space)
    own = [
        *control_plane_pods(host, team.desired),
        *(claim for claim in claims if name in claim.name),
    ]
    own += filter(None, [control_plane(host, team.desired)])
    texts = [text for item in own for text in host.messages_of(item)]
    known = explain(host, "vCluster", name, texts)
    cause = known.cause if known else f"is not ready: {next(iter(texts), 'nothing gives a reason')}"
    fix = known.fix if known else look
    return fault("vcluster-not-ready", host, name, cause=cause[:400], fix=fix)


def _renew(team: TeamState, host: Cluster, runs: str | None) -> str:
    """From v0.31 on a vCluster renews its certificates when it starts."""
    desired = team.desired
    if (known := VCLUSTER.get(runs or "")) is not None and not known.renews:
        first = next(version for version, release in VCLUSTER.items() if release.renews)
        return (
            f"{runs} does not renew it: write {first} at {desired.version_key}, one line at a"
            f" time; {first} renews it when it starts. Then {team.update}"
        )
    restart = f"{host.kubectl} -n {desired.namespace} rollout restart {desired.workload}"
    return f"renew it by a restart: `{restart} {desired.name}`; then {team.update}"
