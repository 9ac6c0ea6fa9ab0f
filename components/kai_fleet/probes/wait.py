"""Asking a cluster again and again, until what is wanted holds or the time is up."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable

from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, of_secret, told
from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError, UnusableKubeconfigError, complaint
from kai_fleet.kube.kubeconfig import connection
from kai_fleet.kube.text import plain

# What is still missing, one phrase each; none means ready.
Missing = Callable[[], list[str]]
_EVERY = 0.25  # seconds between two questions
_NEWS = 5.0  # seconds between two lines of progress


class NotReadyError(Exception):
    """The time is up, or the cluster cannot be asked at all."""


def cluster() -> Api:
    """The cluster of PROBE_KUBECONFIG (a kubeconfig's content) or PROBE_CONTEXT (a name).

    With PROBE_SECRET, `NAMESPACE/NAME`, it is the vCluster whose kubeconfig that Secret there has,
    at PROBE_SERVER. Raises NotReadyError when what is needed cannot be read.
    """
    content, context = os.environ.get("PROBE_KUBECONFIG"), os.environ.get("PROBE_CONTEXT")
    secret = os.environ.get("PROBE_SECRET")
    try:
        found = Api(connection(content) if content else connection(context=context))
    except UnusableKubeconfigError as why:
        raise NotReadyError(str(why)) from None
    return _inside(found, secret, os.environ["PROBE_SERVER"]) if secret else found


def _inside(host: Api, secret: str, server: str) -> Api:
    namespace, _, name = secret.partition("/")
    try:
        data = host.get(f"/api/v1/namespaces/{namespace}/secrets/{name}").get("data") or {}
        return Api(connection(of_secret(data, server, name)))
    except KubeError as why:
        problem = f"cannot be read: {complaint(why)}"
    except TenantKubeconfigError as why:
        raise NotReadyError(told(name.removeprefix("vc-"), namespace, why)) from None
    finally:
        host.close()
    raise NotReadyError(
        f"Secret {name} of namespace {namespace}, the kubeconfig of the vCluster, {problem}. Look"
        f" with: kubectl -n {namespace} get secrets,statefulsets"
    )


def until_ready(what: str, missing: Missing, timeout: float, how_to_look: str) -> None:
    """Return when `missing` is empty; raise NotReadyError after `timeout` seconds.

    Progress goes to stderr, where the engine shows it. A cluster that refuses or does not
    answer counts as missing: its API may still be starting (13 in the measurements).
    """
    start = told = time.monotonic()
    while True:
        try:
            left = missing()
        except KubeError as why:
            left = [complaint(why)]
        now, lacks = time.monotonic(), plain("; ".join(left))
        if not left:
            say(f"{what} is ready after {now - start:.0f} s")
            return
        if now - start > timeout:
            raise NotReadyError(
                f"{what} is not ready after {timeout:.0f} s. Missing: {lacks}."
                f" Look with: {how_to_look}. Then run the update again: it goes on from here."
            )
        if now - told > _NEWS:
            told = now
            say(f"{what}: waiting for {lacks} ({now - start:.0f} s)")
        time.sleep(_EVERY)


def say(text: str) -> None:
    """One line of progress."""
    print(text, file=sys.stderr, flush=True)


def reported(main: Callable[[], None]) -> Callable[[], None]:
    """The main function of a probe: exit 1 with one sentence when what it waits for never comes.

    The API server of a vCluster is its tenant's: what it answers may be no object of Kubernetes'.
    """

    @functools.wraps(main)
    def probe() -> None:
        try:
            main()
        except NotReadyError as why:
            say(str(why))
            raise SystemExit(1) from None
        except (KeyError, TypeError, AttributeError, ValueError) as why:
            say(f"the API server answers what no Kubernetes does ({type(why).__name__})")
            raise SystemExit(1) from None

    return probe
