"""`run pods`: begin the end of every pod in a namespace that is about to be deleted.

Of a namespace that is deleted Kubernetes touches nothing for 5 s, and looks at pods that take time
to end again only after half of their grace period. Pods that end meanwhile make it go at once.
"""

from __future__ import annotations

import os

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from components.probes.wait import cluster, reported, say


@reported
def main() -> None:
    """Delete them, and do not wait; what hinders it is said and hinders nothing."""
    namespace = os.environ["PODS_NAMESPACE"]
    core = client.CoreV1Api(cluster())
    try:
        for pod in core.list_namespaced_pod(namespace, _request_timeout=10).items:
            _delete(core, pod.metadata.name, namespace)
    except ApiException as why:
        say(f"warning: pods of {namespace} are left to Kubernetes ({why.status} {why.reason})")
    except urllib3.exceptions.HTTPError as why:
        say(f"warning: pods of {namespace} are left to Kubernetes ({type(why).__name__})")


def _delete(core: client.CoreV1Api, pod: str, namespace: str) -> None:
    try:
        core.delete_namespaced_pod(pod, namespace, _request_timeout=10)
    except ApiException as why:
        if why.status != 404:  # it has gone by itself
            raise


if __name__ == "__main__":
    main()
