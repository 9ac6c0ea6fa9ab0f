"""Poll a cluster until nothing is missing, or until a timeout."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from kai_fleet.cluster.kube.api import Api, Object
from kai_fleet.cluster.kube.errors import KubeError, RefusedError, UnreachableError, complaint
from kai_fleet.cluster.kube.identity import SYSTEM, uid_of
from kai_fleet.cluster.kube.kubeconfig import connection
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, explain, of_secret
from kai_fleet.values import get
from kai_fleet.wording import plain

Phrases = Callable[[], list[str]]
_ROUND_SECONDS: Final = 60.0
_FIRST_SECONDS, _SAME_SECONDS = 5.0, 60.0  # until a line about something new, and once more
HOST_FAILED: Final = 75  # exit code; by its words a tenant's API server could look like the host's


class NotReadyError(Exception):
    """The time is up, or waiting is of no use."""


class HostFailedError(NotReadyError):
    """The host's API server, on which all teams wait, has failed for too long."""


def cluster() -> Api:
    """The cluster of PROBE_KUBECONFIG (a kubeconfig's content) or PROBE_CONTEXT (a name).

    With PROBE_SECRET, `NAMESPACE/NAME`, it is the vCluster whose kubeconfig that Secret there has,
    at PROBE_SERVER. Raises NotReadyError, UnusableKubeconfigError.
    """
    host = _host()
    namespace, _, name = os.environ.get("PROBE_SECRET", "").partition("/")
    if not name:
        return host
    try:
        secret = host.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        inside = of_secret(secret.get("data") or {}, os.environ["PROBE_SERVER"], name)
        return Api(connection(inside))
    except TenantKubeconfigError as error:
        team = name.removeprefix("vc-")
        kind = control_plane(host, team, namespace) or "statefulset"
        raise NotReadyError(explain(team, namespace, error, kind)) from None
    except KubeError as error:
        raise NotReadyError(
            f"Secret {name} of namespace {namespace} cannot be read: {complaint(error)}. Look with:"
            f" kubectl -n {namespace} get secrets,statefulsets"
        ) from None


def remaining() -> Api | None:
    """That of `cluster`, for who removes something; None where nothing of it is left, because its
    vCluster is gone, or another one has its name.

    PROBE_CLUSTER is the UID of its namespace kube-system; states of earlier versions lack it.
    """
    namespace, _, team = os.environ.get("PROBE_SECRET", "").partition("/vc-")
    if not team:
        return cluster()
    uid = os.environ.get("PROBE_CLUSTER")
    host = _host()
    why = "is gone"
    if control_plane(host, team, namespace) is not None:
        inside = cluster()
        why = "is another one now"
        try:
            found = uid_of(inside)
            if not found:
                raise NotReadyError(f"namespace {SYSTEM} of vCluster {team} has no UID")
            if uid in (None, found):
                return inside
        except UnreachableError:
            if uid and _is_at(host, namespace, team):
                raise
            why = "does not answer where it was"
    say(f"vCluster {team} {why}: nothing is left to be removed")
    return None


def _is_at(host: Api, namespace: str, name: str) -> bool:
    """Whether the Service of a vCluster has the port of PROBE_SERVER."""
    service = host.find(f"/api/v1/namespaces/{namespace}/services/{name}") or {}
    written = (service.get("spec") or {}).get("ports") or []
    ports = [port.get(key) for port in written for key in ("port", "nodePort")]
    return (urlsplit(os.environ["PROBE_SERVER"]).port or 443) in ports


def _host() -> Api:
    content, context = os.environ.get("PROBE_KUBECONFIG"), os.environ.get("PROBE_CONTEXT")
    return Api(connection(content, context=context))


def control_plane(host: Api, name: str, namespace: str) -> str | None:
    """What kubectl calls a vCluster's control plane; None if it is gone."""
    for kind in ("statefulset", "deployment"):  # the second, if it has no volume
        if "spec" in (host.find(f"/apis/apps/v1/namespaces/{namespace}/{kind}s/{name}") or {}):
            return kind
    return None


def require_release(api: Api, part: str, namespace: str, release: str) -> None:
    """Raise NotReadyError where a part is gone with its Helm release, or with its namespace."""
    labels = f"owner=helm,name={release},status=deployed"  # not one that is uninstalling
    if api.list(f"/api/v1/namespaces/{namespace}/secrets", labelSelector=labels):
        return
    space: Object | None = {}
    with suppress(RefusedError):  # who may not look at it is told of the release alone
        space = api.find(f"/api/v1/namespaces/{namespace}")
    if space is None:
        raise NotReadyError(f"{part} is gone with namespace {namespace}")
    lost = f"{part} of namespace {namespace} is gone"
    if get(space, "metadata", "deletionTimestamp"):
        raise NotReadyError(f"{lost} with it, because it is being terminated")
    raise NotReadyError(f"{lost}, as after somebody uninstalled release {release}")


def until_ready(
    api: Api, what: str, missing: Phrases, timeout: float, how_to_look: str, why: Phrases = list
) -> None:
    """Return when nothing is `missing`, one phrase each; raise NotReadyError after `timeout`
    seconds. `why` is asked for reasons where they are printed. Each time that they ask, what `api`
    answers is bounded together: a tenant's may go on and on.

    A cluster that refuses or does not answer counts as missing: its API may still be starting.
    Progress goes to stderr, where the engine shows it.
    """
    start = last = asked = time.monotonic()
    printed = ""
    while True:
        try:
            api.begin(_ROUND_SECONDS)
            left = missing()
        except KubeError as error:
            left = [complaint(error)]
        now = time.monotonic()
        if not left:
            say(f"{what} is ready after {now - start:.0f} s")
            return
        if now - asked > min(_FIRST_SECONDS, start + timeout - asked):
            asked = now
            with suppress(KubeError):
                api.begin(_ROUND_SECONDS)
                left += why()
            words = plain("; ".join(left))
            if now - start > timeout:
                raise NotReadyError(
                    f"{what} is not ready after {timeout:.0f} s. Missing: {words}. Look with:"
                    f" {how_to_look}. Then run the update again: it goes on from here."
                )
            if words != printed or now - last > _SAME_SECONDS:
                last, printed = now, words
                say(f"{what}: waiting for {words} ({now - start:.0f} s)")
        time.sleep(0.25)


def say(text: str) -> None:
    """Print one line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)
