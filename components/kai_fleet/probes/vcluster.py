"""Probes around a vCluster: wait until its API answers, look at its record, clear its namespace."""

import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, explain, of_secret
from kai_fleet.guards.policies import TEAM_LABEL, USED_LABEL
from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError, RefusedError, complaint
from kai_fleet.kube.objects import KubeObject
from kai_fleet.kube.text import plain
from kai_fleet.probes.wait import (
    NotReadyError,
    cluster,
    control_plane_kind,
    say,
    still_missing,
    until_ready,
)
from kai_fleet.releases import helm_record

_DNS_NAME: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*)?)*"
)
_HELD: Final = ("pods", "persistentvolumeclaims")  # somebody else may have some there, too
_VACANT_SECONDS: Final = 20.0  # a release that was just uninstalled is gone by then


def address_of(service: Mapping[str, Any], access: str, host: str | None) -> str | None:
    """`host:port` at which a vCluster's Service is reached by this type of access, an IPv6 address
    in brackets; None while it has none. `host` goes before what a load balancer says; behind an
    Ingress or a Gateway it is the whole of it.

    A load balancer says a DNS name or an address, which is neither link-local, where clouds have
    their metadata, nor of many. Another one is none.
    """
    metadata, ports = service["metadata"], (service.get("spec") or {}).get("ports") or [{}]
    match access:
        case "Ingress" | "Gateway":
            return host
        case "NodePort":
            port = _port(ports[0].get("nodePort"))
            return f"{_bracketed(host)}:{port}" if host and port else None
        case "LoadBalancer":
            ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
            name = next((entry.get("hostname") or entry.get("ip") for entry in ingress), None)
            port = _port(ports[0].get("port"))
            where = _host_of(str(name)) if name else None
            return f"{_bracketed(host) if host else where}:{port}" if where and port else None
    port = _port(ports[0].get("port"))
    return f"{metadata['name']}.{metadata['namespace']}.svc:{port}" if port else None


def _port(port: object) -> int | None:
    return port if isinstance(port, int) and 0 < port < 1 << 16 else None


def _bracketed(host: str) -> str:
    """A host as a URL has it."""
    return f"[{host}]" if ":" in host else host


def _host_of(name: str) -> str | None:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        # What looks like a number is read as an address by some, as 2852039166 is.
        is_name = _DNS_NAME.fullmatch(name) and not name.rpartition(".")[2].isdigit()
        return name if is_name else None
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return None
    return _bracketed(str(address))


def wait() -> None:
    """Print `https://…` on stdout, everything else on stderr."""
    name, namespace = os.environ["VCLUSTER_NAME"], os.environ["VCLUSTER_NAMESPACE"]
    access, host = os.environ["VCLUSTER_ACCESS"], os.environ.get("VCLUSTER_HOST") or None
    api, here = cluster(), f"/api/v1/namespaces/{namespace}"
    address = ""

    def missing() -> list[str]:
        nonlocal address
        place = address_of(api.get(f"{here}/services/{name}"), access, host)
        if place is None:
            return [f"an address for Service {name} of type {access}"]
        address = f"https://{place}"
        secret = api.find(f"{here}/secrets/vc-{name}")
        if secret is None:
            return [f"Secret vc-{name}", *_without_node(api, name, namespace)]
        try:
            return _not_answering(of_secret(secret.get("data") or {}, address, name))
        except TenantKubeconfigError as error:
            if error.foreign:
                workload = control_plane_kind(api, name, namespace)
                raise NotReadyError(explain(name, namespace, error, workload)) from None
            return [f"the way in in Secret vc-{name}, which {error}"]

    until_ready(
        f"vCluster {name}",
        missing,
        float(os.environ["VCLUSTER_TIMEOUT"]),
        f"kubectl -n {namespace} get pods and kubectl -n {namespace} logs -l"
        f" app=vcluster,release={name}",
    )
    _warn_if_no_node(api, name)
    print(address)


def _without_node(api: Api, name: str, namespace: str) -> list[str]:
    """Why the control plane's pods have no node, in the scheduler's words."""
    path, labels = f"/api/v1/namespaces/{namespace}/pods", f"app=vcluster,release={name}"
    pods = map(KubeObject, api.list(path, labelSelector=labels))
    return [
        f"pod {pod.name} has no node ({plain(condition.get('message'), 300)})"
        for pod in pods
        if (condition := pod.condition("PodScheduled")).get("status") == "False"
    ]


def _warn_if_no_node(api: Api, name: str) -> None:
    """Warn of a pool without a Ready node. It is no error: it may scale from zero (V16)."""
    pool = os.environ.get("VCLUSTER_NODE_POOL")
    if not pool:
        return
    try:
        nodes = api.list("/api/v1/nodes", labelSelector=pool)
    except KubeError as error:
        say(f"warning: nodes with the labels {pool} are not looked at ({complaint(error)})")
        return
    if not any(KubeObject(node).is_true("Ready") for node in nodes):
        say(
            f"warning: no Ready node has the labels {pool}: every pod of {name}, its DNS among"
            " them, stays Pending until one comes"
        )


def _not_answering(kubeconfig: str) -> list[str]:
    with closing(Api.of_kubeconfig(kubeconfig, seconds=5.0)) as api:
        api.get("/api/v1/namespaces", limit="1")
    return []


def look_at_record() -> None:
    """Stop where Helm's records of a vCluster's release are not what its chart makes.

    Helm believes its records, and a tenant may have written one before the guard stood. Where they
    cannot be read, Helm cannot read them either. Raises NotReadyError, with what to do.
    """
    namespace, _, release = os.environ["RECORD_RELEASE"].partition("/")
    try:
        secrets = cluster().list(
            f"/api/v1/namespaces/{namespace}/secrets",
            labelSelector=helm_record.SELECTOR.format(release),
        )
    except KubeError as error:
        problem = complaint(error)
        say(f"warning: Helm's record of {namespace}/{release} is not looked at ({problem})")
        return
    if records := helm_record.forged(secrets, release, namespace):
        sentence = helm_record.sentence(records, release, namespace)
        raise NotReadyError(f"{sentence}, and run this again. Nothing was done to the release.")


def end_pods() -> None:
    """Begin the end of what a vCluster leaves in its namespace: pods, volumes, its Secrets.

    Of a namespace that is deleted Kubernetes touches nothing for 5 s, and looks at pods that take
    time to end again only after half of their grace period. Pods that end meanwhile make it go at
    once. Where the namespace stays, because the platform keeps it for the team's stack, a volume
    that stayed would bring the old state back (V10). In a namespace that others made, their own
    pods and volumes stay. Nothing is waited for; what hinders it is reported and hinders nothing.
    """
    namespace = os.environ["PODS_NAMESPACE"]
    try:
        api = cluster()
        for path in _left_behind(api, namespace, os.environ["PODS_VCLUSTER"]):
            api.delete(path)
    except (NotReadyError, KubeError) as error:
        problem = complaint(error) if isinstance(error, KubeError) else str(error)
        say(f"warning: pods of {namespace} are left to Kubernetes ({problem})")


def _left_behind(api: Api, namespace: str, team: str) -> Iterator[str]:
    space = f"/api/v1/namespaces/{namespace}"
    synced = f"vcluster.loft.sh/managed-by={team}"
    everything = _is_of_team(api, space, team)
    held = [""] if everything else [synced, f"app in (vcluster,vcluster-etcd),release={team}"]
    # Without owners, as in host mode, what was synced and the way in stay behind, too (V4).
    for kind in ("pods", "persistentvolumeclaims", "services", "configmaps", "secrets"):
        for selector in held if kind in _HELD else [synced]:
            for item in api.list(f"{space}/{kind}", labelSelector=selector):
                yield f"{space}/{kind}/{item['metadata']['name']}"
    for name in (f"vc-{team}", f"{team}-certs"):
        yield f"{space}/secrets/{name}"


def _is_of_team(api: Api, space: str, team: str) -> bool:
    """Whether the platform made the namespace for the team, so that nothing there is another's."""
    try:
        labels = KubeObject(api.get(space)).labels
    except RefusedError:
        return False
    return labels.get(TEAM_LABEL) == team and USED_LABEL not in labels


def end_vacant() -> None:
    """Begin the end of a team's namespace, once no vCluster is in it that stays.

    A team with a stack of its own is removed by that stack. Without this, the platform's grant
    would take it along, with everything that runs in it. In a namespace that ends nothing new is
    made: what bounds it is removed after this, while Kubernetes takes its time for the namespace.
    The engine deletes it too, after its bounds, and waits. One that others made stays. Raises
    NotReadyError, with what to do.
    """
    namespace = os.environ["VACANT_NAMESPACE"]
    api, path = cluster(), f"/apis/apps/v1/namespaces/{namespace}"

    def vclusters() -> list[str]:
        try:
            sets = [
                it
                for kind in ("statefulsets", "deployments")  # without a volume of its own
                for it in api.list(f"{path}/{kind}", labelSelector="app=vcluster")
            ]
        except KubeError as error:
            raise NotReadyError(
                f"namespace {namespace} cannot be looked at: {complaint(error)}"
            ) from None
        return [it["metadata"]["name"] for it in sets if "deletionTimestamp" not in it["metadata"]]

    if names := still_missing(vclusters, _VACANT_SECONDS):
        team = namespace.removeprefix("team-")
        raise NotReadyError(
            f"namespace {namespace} holds the vCluster {names[0]}, so it stays: destroy the stack"
            f" of team {team} first (pulumi destroy there), or put kai-fleet:teamStacks.{team} back"
        )
    if os.environ.get("VACANT_NAMESPACE_STAYS"):
        return  # others made it
    try:
        api.delete(f"/api/v1/namespaces/{namespace}")
    except KubeError as error:
        say(f"warning: namespace {namespace} is left to the engine ({complaint(error)})")
