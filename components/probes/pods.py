"""`run pods`: begin the end of every pod in a namespace that is about to be deleted.

Of a namespace that is deleted Kubernetes touches nothing for 5 s, and looks at pods that take time
to end again only after half of their grace period. Pods that end meanwhile make it go at once.
"""

from __future__ import annotations

import os

import urllib3
from kubernetes.client.exceptions import ApiException

from components.probes.wait import NotReady, http_api, say


def main() -> None:
    """Delete them, and do not wait; what hinders it is said and hinders nothing."""
    namespace = os.environ["PODS_NAMESPACE"]
    collection = f"/api/v1/namespaces/{namespace}/pods"
    try:
        api = http_api()
        for pod in api.items(collection):
            api.delete(f"{collection}/{pod['metadata']['name']}")
    except ApiException as why:
        _leave(namespace, f"{why.status} {why.reason}")
    except (urllib3.exceptions.HTTPError, OSError, ValueError, NotReady) as why:
        _leave(namespace, str(why) if isinstance(why, NotReady) else type(why).__name__)


def _leave(namespace: str, why: str) -> None:
    say(f"warning: pods of {namespace} are left to Kubernetes ({why})")


if __name__ == "__main__":
    main()
