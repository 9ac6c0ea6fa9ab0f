"""Poll a cluster until nothing is missing, or until a timeout."""

import os
import sys
import time
from collections.abc import Callable
from typing import Final

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError, UnusableKubeconfigError, complaint
from kai_fleet.cluster.kube.kubeconfig import connection
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, explain, of_secret
from kai_fleet.foreign_text import plain

# What is still missing, one phrase each; none means ready.
Missing = Callable[[], list[str]]
_SECONDS_BETWEEN_QUESTIONS: Final = 0.25
_SECONDS_BETWEEN_LINES: Final = 5.0


class NotReadyError(Exception):
    """The time is up, or the cluster cannot be reached at all."""


def cluster() -> Api:
    """The cluster of PROBE_KUBECONFIG (a kubeconfig's content) or PROBE_CONTEXT (a name).

    With PROBE_SECRET, `NAMESPACE/NAME`, it is the vCluster whose kubeconfig that Secret there has,
    at PROBE_SERVER. Raises NotReadyError when what is needed cannot be read.
    """
    environment = os.environ
    content, context = environment.get("PROBE_KUBECONFIG"), environment.get("PROBE_CONTEXT")
    try:
        host = Api(connection(content, context=context))
    except UnusableKubeconfigError as error:
        raise NotReadyError(str(error)) from None
    if not environment.get("PROBE_SECRET"):
        return host
    namespace, _, name = environment["PROBE_SECRET"].partition("/")
    try:
        secret = host.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        inside = of_secret(secret.get("data") or {}, environment["PROBE_SERVER"], name)
        return Api(connection(inside))
    except TenantKubeconfigError as error:
        team = name.removeprefix("vc-")
        workload = control_plane_kind(host, team, namespace)
        raise NotReadyError(explain(team, namespace, error, workload)) from None
    except KubeError as error:
        raise NotReadyError(
            f"Secret {name} of namespace {namespace}, the kubeconfig of the vCluster, cannot be"
            f" read: {complaint(error)}. Look with: kubectl -n {namespace} get"
            " secrets,statefulsets"
        ) from None
    finally:
        host.close()


def control_plane_kind(host: Api, name: str, namespace: str) -> str:
    """Kind of a vCluster's control plane for kubectl: a Deployment if it has no volume."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    try:
        found = host.find(f"{path}/{name}") or {}
    except KubeError:
        found = {}
    return "deployment" if "spec" in found else "statefulset"


def until_ready(what: str, missing: Missing, timeout: float, how_to_look: str) -> None:
    """Return when nothing is missing; raise NotReadyError after `timeout` seconds.

    A cluster that refuses or does not answer counts as missing: its API may still be starting.
    Progress goes to stderr, where the engine shows it.
    """
    start = last = time.monotonic()
    while True:
        try:
            left = missing()
        except KubeError as error:
            left = [complaint(error)]
        now = time.monotonic()
        if not left:
            say(f"{what} is ready after {now - start:.0f} s")
            return
        words = plain("; ".join(left))
        if now - start > timeout:
            raise NotReadyError(
                f"{what} is not ready after {timeout:.0f} s. Missing: {words}. Look with:"
                f" {how_to_look}. Then run the update again: it goes on from here."
            )
        if now - last > _SECONDS_BETWEEN_LINES:
            last = now
            say(f"{what}: waiting for {words} ({now - start:.0f} s)")
        time.sleep(_SECONDS_BETWEEN_QUESTIONS)


def say(text: str) -> None:
    """Print one line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)
