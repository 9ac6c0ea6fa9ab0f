"""When objects begin to end, as seen from beside."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kubernetes import client


@contextmanager
def ends(api: client.ApiClient, namespace: str) -> Iterator[dict[str, float]]:
    """The moments, in seconds, at which a namespace and the pods in it were told to end or went."""
    core, over = client.CoreV1Api(api), threading.Event()
    there = {pod.metadata.name for pod in core.list_namespaced_pod(namespace).items} | {namespace}
    moments: dict[str, float] = {}

    def follow() -> None:
        while not over.wait(0.05):
            found = core.list_namespaced_pod(namespace).items
            found += core.list_namespace(field_selector=f"metadata.name={namespace}").items
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
