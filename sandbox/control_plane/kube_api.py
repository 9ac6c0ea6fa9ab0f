"""What the sandbox asks of its API servers beyond `kai_fleet.cluster.kube.api`."""

import json
from collections.abc import Mapping
from typing import Final

from kai_fleet.cluster.kube import api
from kai_fleet.cluster.kube.api import APPLY_PATCH, JSON, Object
from kai_fleet.cluster.kube.errors import KubeError, RefusedError

__all__ = ["AdminApi", "KubeError", "Object", "RefusedError"]

STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"


class AdminApi(api.Api):
    """An API server of the sandbox. Every call raises RefusedError or UnreachableError."""

    def send(self, method: str, path: str, body: object, kind: str = JSON, **query: str) -> Object:
        """One object written, and as it is then."""
        found: Object = json.loads(self._ask(method, path, query, body, kind) or b"{}")
        return found

    def set_condition(self, path: str, condition: Mapping[str, str]) -> None:
        """Write one condition of a built-in kind, and leave those that others write beside it.

        A merge patch would put the whole list in their place.
        """
        body: Object = {"status": {"conditions": [condition]}}
        self.patch(f"{path}/status", body, STRATEGIC_PATCH)

    def served(self, collection: str) -> list[Object]:
        """The objects of a kind; none where the server does not know it."""
        found: list[Object] = (self.find(collection) or {}).get("items", [])
        return found

    def ensure(self, collection: str, body: Object) -> None:
        """Create, or merge into what is there."""
        try:
            self.post(collection, body)
        except RefusedError as why:
            if why.status != 409:
                raise
            self.patch(f"{collection}/{body['metadata']['name']}", body)

    def apply(self, path: str, body: Object) -> None:
        """Have what is at a path as the body says; what only an earlier one said goes."""
        self.patch(path, body, APPLY_PATCH, fieldManager="kai-fleet-sandbox", force="true")

    def ready(self) -> bool:
        """Whether the server says that it serves."""
        try:
            return self._ask("GET", "/readyz", {}) == b"ok"
        except KubeError:
            return False
