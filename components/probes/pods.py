"""`run pods`: begin the end of every pod in a namespace that is about to be deleted.

Of a namespace that is deleted Kubernetes touches nothing for 5 s, and looks at pods that take time
to end again only after half of their grace period. Pods that end meanwhile make it go at once.
"""

from __future__ import annotations

import os

from components.probes.wait import NotReady, http_api, say
from provider.http_api import UNANSWERED, complaint


def main() -> None:
    """Delete them, and do not wait; what hinders it is said and hinders nothing."""
    namespace = os.environ["PODS_NAMESPACE"]
    collection = f"/api/v1/namespaces/{namespace}/pods"
    try:
        api = http_api()
        for pod in api.items(collection):
            api.delete(f"{collection}/{pod['metadata']['name']}")
    except NotReady as why:
        _leave(namespace, str(why))
    except UNANSWERED as why:
        _leave(namespace, complaint(why))


def _leave(namespace: str, why: str) -> None:
    say(f"warning: pods of {namespace} are left to Kubernetes ({why})")


if __name__ == "__main__":
    main()
