"""Poll a cluster until nothing is missing, or until a timeout."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from kai_fleet.cluster.kube.api import Api, Object
from kai_fleet.cluster.kube.errors import KubeError, RefusedError, UnreachableError, complaint
from kai_fleet.cluster.kube.identity import SYSTEM, uid_of
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, explain, kubeconfig_of_secret
from kai_fleet.values import value_at
from kai_fleet.wording import short_line

# What is missing, or why: a phrase each.
Phrases = Callable[[], list[str]]
_ROUND_SECONDS = 60.0  # for all requests of one poll
_POLL_SECONDS = 0.25
_FIRST_SECONDS = 5.0  # from one look for reasons until the next
_SAME_SECONDS = 60.0  # until the same line is printed once more
# Exit code. The text of the error would not do: a tenant's API server could imitate the host's.
HOST_FAILED = 75


class NotReadyError(Exception):
    """The time is up, or waiting longer cannot help."""


class HostFailedError(NotReadyError):
    """The host's API server, on which all teams wait, has failed for too long."""


def cluster() -> Api:
    """A client of the cluster that the environment names.

    PROBE_KUBECONFIG is a kubeconfig's content, PROBE_CONTEXT a context's name; the user's defaults
    replace what is absent or "". With PROBE_SECRET, `NAMESPACE/vc-TEAM`, they give the host: the
    client is that of the vCluster at PROBE_SERVER, with the kubeconfig in that Secret.

    Raises:
        NotReadyError: The Secret cannot be read, or was forged; or PROBE_SERVER is not set.
        UnusableKubeconfigError: The host's kubeconfig cannot be used.
    """
    host = _host()
    namespace, _, team = os.environ.get("PROBE_SECRET", "").partition("/vc-")
    if not team:
        return host
    try:
        secret = host.get(f"/api/v1/namespaces/{namespace}/secrets/vc-{team}")
        return open_vcluster(host, namespace, team, secret, variable("PROBE_SERVER"))
    except KubeError as error:
        raise NotReadyError(
            f"Secret vc-{team} of namespace {namespace} cannot be read: {complaint(error)}. Look"
            f" with: kubectl -n {namespace} get secrets,statefulsets"
        ) from None


def open_vcluster(
    host: Api, namespace: str, name: str, secret: Object, server: str, seconds: float = 60.0
) -> Api:
    """A client of the vCluster at a URL, with the kubeconfig in its Secret.

    Sends nothing to the vCluster. `seconds` is the timeout of each request.

    Raises:
        NotReadyError: vCluster did not write the Secret.
        KubeError: The host cannot be asked what the control plane is, for that message.
        UnusableKubeconfigError: TLS takes no such certificate or key.
    """
    try:
        kubeconfig = kubeconfig_of_secret(secret.get("data") or {}, server, name)
    except TenantKubeconfigError as error:
        workload = control_plane(host, name, namespace) or "statefulset"
        raise NotReadyError(explain(name, namespace, error, workload)) from None
    return Api.of_kubeconfig(kubeconfig, seconds=seconds)


def client_for_removal() -> Api | None:
    """A client of `cluster` for deleting something there; None if there is nothing left to delete.

    PROBE_CLUSTER is the vCluster's UID; states of earlier versions lack it. Nothing is left to
    delete, and a line on stderr says so, in three cases: the vCluster is gone; it has another UID;
    or its API server does not answer, and the UID is unknown or the Service has another port.

    Raises:
        NotReadyError: As `cluster` does, or the vCluster has no UID.
        UnreachableError: It does not answer at its Service's port.
        KubeError: The host refuses or does not answer, a kubeconfig cannot be used, or the vCluster
            refuses to give its UID.
    """
    namespace, _, team = os.environ.get("PROBE_SECRET", "").partition("/vc-")
    if not team:
        return cluster()
    host = _host()
    if control_plane(host, team, namespace) is None:
        _say_nothing_left(team, "is gone")
        return None
    recorded_uid = os.environ.get("PROBE_CLUSTER")
    inside = cluster()
    try:
        uid = uid_of(inside)
    except UnreachableError:
        if recorded_uid and _has_port_of_server(host, namespace, team):
            raise
        _say_nothing_left(team, "does not answer where it was")
        return None
    if not uid:
        raise NotReadyError(f"namespace {SYSTEM} of vCluster {team} has no UID")
    if recorded_uid in (None, uid):
        return inside
    _say_nothing_left(team, "is another one now")
    return None


def _say_nothing_left(team: str, why: str) -> None:
    say(f"vCluster {team} {why}: nothing is left to be removed")


def _has_port_of_server(host: Api, namespace: str, name: str) -> bool:
    """Whether the Service of a vCluster has the port of PROBE_SERVER, as port or node port.

    It is 443 for a URL without one. Raises KubeError.
    """
    server_port = urlsplit(variable("PROBE_SERVER")).port or 443
    service = host.find(f"/api/v1/namespaces/{namespace}/services/{name}") or {}
    for port in value_at(service, "spec.ports") or []:
        if server_port in (port.get("port"), port.get("nodePort")):
            return True
    return False


def _host() -> Api:
    """A client of the host. Raises UnusableKubeconfigError."""
    return Api.of_kubeconfig(
        os.environ.get("PROBE_KUBECONFIG"), context=os.environ.get("PROBE_CONTEXT")
    )


def control_plane(host: Api, name: str, namespace: str) -> str | None:
    """What kubectl calls a vCluster's control plane; None if it is gone. Raises KubeError.

    It is a `statefulset`, or a `deployment` if it has no volume; of both the first.
    """
    for kind in ("statefulset", "deployment"):
        workload = host.find(f"/apis/apps/v1/namespaces/{namespace}/{kind}s/{name}") or {}
        if "spec" in workload:
            return kind
    return None


def require_release(api: Api, part: str, namespace: str, release: str) -> None:
    """Raise NotReadyError if the Helm release of a missing part is gone, or its namespace.

    `part` begins the message: `Service ml`. Only a release that Helm calls `deployed` is there. An
    account that may not read the namespace gets a message about the release alone. Raises KubeError
    if the release cannot be read.
    """
    labels = f"owner=helm,name={release},status=deployed"  # an uninstalling release has another
    if api.list(f"/api/v1/namespaces/{namespace}/secrets", labelSelector=labels):
        return
    space: Object | None = {}
    with suppress(RefusedError):
        space = api.find(f"/api/v1/namespaces/{namespace}")
    if space is None:
        raise NotReadyError(f"{part} is gone with namespace {namespace}")
    lost = f"{part} of namespace {namespace} is gone"
    if value_at(space, "metadata.deletionTimestamp"):
        raise NotReadyError(f"{lost} with it, because it is being terminated")
    raise NotReadyError(f"{lost}, as after somebody uninstalled release {release}")


def until_ready(
    api: Api,
    what: str,
    missing: Phrases,
    timeout_seconds: float,
    how_to_look: str,
    why: Phrases = list,
) -> None:
    """Poll until nothing is missing. Progress goes to stderr, where the engine shows it.

    Args:
        api: The polled cluster. Its answers to one poll get 60 s: a tenant's may go on and on.
        what: The name of the thing, for messages.
        missing: What it lacks; it is ready if the list is empty. A KubeError counts as a phrase.
        timeout_seconds: How long to poll.
        how_to_look: Commands for the message after the timeout.
        why: Further reasons, looked for when they are printed: first after five seconds. After a
            KubeError there are none.

    Raises NotReadyError after the timeout, and what else `missing` and `why` raise.
    """
    began = time.monotonic()
    last_looked = began
    last_printed = began
    printed = ""
    while True:
        phrases = _answered(api, missing)
        now = time.monotonic()
        if not phrases:
            say(f"{what} is ready after {now - began:.0f} s")
            return
        if now - last_looked > min(_FIRST_SECONDS, began + timeout_seconds - last_looked):
            last_looked = now
            phrases += _reasons(api, why)
            words = short_line("; ".join(phrases))
            if now - began > timeout_seconds:
                raise NotReadyError(
                    f"{what} is not ready after {timeout_seconds:.0f} s. Missing: {words}. Look"
                    f" with: {how_to_look}. Then run the update again: it goes on from here."
                )
            if words != printed or now - last_printed > _SAME_SECONDS:
                last_printed = now
                printed = words
                say(f"{what}: waiting for {words} ({now - began:.0f} s)")
        time.sleep(_POLL_SECONDS)


def _answered(api: Api, missing: Phrases) -> list[str]:
    """What is missing; or the error of a cluster whose API may still be starting, in words."""
    try:
        api.restart_limits(_ROUND_SECONDS)
        return missing()
    except KubeError as error:
        return [complaint(error)]


def _reasons(api: Api, why: Phrases) -> list[str]:
    """The reasons; none if the cluster refuses or does not answer."""
    with suppress(KubeError):
        api.restart_limits(_ROUND_SECONDS)
        return why()
    return []


def variable(name: str) -> str:
    """A variable of the environment. Raises NotReadyError, which names it, if it is not set."""
    value = os.environ.get(name)
    if value is None:
        raise NotReadyError(f"{name} is not set. An update sets it for this command: run one")
    return value


def say(text: str) -> None:
    """Print one line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)
