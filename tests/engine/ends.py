"""When objects begin to end, as seen from beside."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kubernetes import client
from kubernetes.client.exceptions import ApiException


@contextmanager
def ends(api: client.ApiClient, namespace: str) -> Iterator[dict[str, float]]:
    """The moments, in seconds, at which a namespace and the pods in it were told to end or went."""
    core, over = client.CoreV1Api(api), threading.Event()
    there = {pod.metadata.name for pod in core.list_namespaced_pod(namespace).items} | {namespace}
    moments: dict[str, float] = {}

    def follow() -> None:
        while not over.wait(0.05):
            found = [*core.list_namespaced_pod(namespace).items, *_namespace(core, namespace)]
            stay = {it.metadata.name for it in found if it.metadata.deletion_timestamp is None}
            for name in there - stay - set(moments):
                moments[name] = time.monotonic()

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield moments
    finally:
        over.set()
        thread.join()


def _namespace(core: client.CoreV1Api, name: str) -> list[client.V1Namespace]:
    try:
        return [core.read_namespace(name)]
    except ApiException as why:
        if why.status != 404:
            raise
        return []
