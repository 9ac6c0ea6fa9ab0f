"""Each team's vCluster: there, ready, of the declared version, reached, its certificate valid."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from kai_fleet.cluster.tenant_kubeconfig import name_writer
from kai_fleet.fleet.cluster import Team
from kai_fleet.releases import VCLUSTER
from kai_fleet_cli.doctor.causes import Fault, explain, fault
from kai_fleet_cli.doctor.snapshot import Snapshot, TeamState

_SOON: Final = timedelta(days=30)


def vcluster(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    """One team; of one with a stack of its own the namespace alone."""
    host, team = snapshot.host, state.team
    found = host.named("namespaces", team.namespace)
    if host.lacks("namespaces", team.namespace):
        yield fault("namespace-absent", host, team.namespace)
    elif found is not None and "deletionTimestamp" in found["metadata"]:
        yield fault("namespace-going", host, team.namespace)
    elif not state.granted:
        yield from _vcluster(state, snapshot)


def _vcluster(state: TeamState, snapshot: Snapshot) -> Iterator[Fault]:
    host, team, name = snapshot.host, state.team, state.team.name
    own = {"space": team.namespace, "workload": team.store.workload, "update": snapshot.update}
    kubectl = f"{host.kubectl} -n {team.namespace}"
    if state.foreign:
        values = {"unreached": state.unreached, "writer": name_writer(name)}
        yield fault("kubeconfig-foreign", host, name, again=state.new_kubeconfig(host), **values)
    item = state.control_plane(host)
    if item is None and not {"statefulsets", "deployments"} & host.unreadable.keys():
        # Where the chart's Service is left, the release stands, and an update leaves it.
        left = host.named("services", name, team.namespace) is not None
        again = host.made_again(name, team.namespace) if left else snapshot.update
        yield fault("vcluster-absent", host, name, again=again, **own)
        return
    replicas = item.spec.get("replicas", 1) if item is not None else 0
    if item is not None and replicas == 0:
        yield fault("vcluster-scaled-to-0", host, name, **own)
        return
    logs = f"{name}-0" if team.store.workload == "statefulset" else f"deployment/{name}"
    if item is not None and item.status.get("readyReplicas", 0) < replicas:
        claims = host.within("persistentvolumeclaims", team.namespace)
        of_it = (claim for claim in claims if name in claim.name)
        texts = host.messages_of(*state.control_plane_pods(host), *of_it, item)
        known = explain(host, "vCluster", name, texts)
        cause = f"is not ready: {next(iter(texts), 'nothing gives a reason')}"[:400]
        fix = f"look with: `{kubectl} logs {logs}` and `{kubectl} describe pod {name}-0`"
        cause, fix = (known.cause, known.fix) if known else (cause, fix)
        yield fault("vcluster-not-ready", host, name, cause=cause, fix=fix)
    elif state.inside is None and not state.foreign:
        look = f"look with: `{kubectl} get pods,services,secrets` and `{kubectl} logs {logs}`"
        why = state.unreached + _hint(team)
        yield fault("vcluster-unreached", host, name, unreached=why, look=look)
    runs = state.running_version(host)
    if runs and team.version and runs != f"v{team.version.removeprefix('v')}":
        own |= {"runs": runs, "declared": team.version}
        path = team.written_at("vcluster", "version")
        yield fault("vcluster-version", host, name, path=path, **own)
    ends = state.certificate_ends
    if ends is not None and ends <= host.now + _SOON:
        row = "certificate-expired" if ends <= host.now else "certificate-expires"
        fix = _renew(team, runs, kubectl, snapshot.update)
        yield fault(row, host, name, day=f"{ends:%Y-%m-%d %H:%M}", fix=fix)


def _hint(team: Team) -> str:
    access = team.access
    if access is not None and access.type == "ClusterIP":
        return "; access type ClusterIP is reached from inside the host only"
    if access is not None and access.led_by_name:
        where = f"{access.endpoint} has to resolve to the {access.type}'s controller"
        return f"; {where}, which has to pass TLS through"
    return ""


def _renew(team: Team, runs: str | None, kubectl: str, update: str) -> str:
    """From v0.31 on a vCluster renews its certificates when it starts."""
    if (known := VCLUSTER.get(runs or "")) is not None and not known.renews:
        first = next(version for version, release in VCLUSTER.items() if release.renews)
        return (
            f"{runs} does not renew it: write {first} at {team.written_at('vcluster', 'version')},"
            f" one line at a time; {first} renews it when it starts. Then {update}"
        )
    restart = f"{kubectl} rollout restart {team.store.workload} {team.name}"
    return f"renew it by a restart: `{restart}`; then {update}"
