"""The requests of the sandbox that `kai_fleet.cluster.kube.api` does not have."""

from collections.abc import Mapping
from typing import Final

from kai_fleet.cluster.kube import api
from kai_fleet.cluster.kube.api import APPLY_PATCH, Object
from kai_fleet.cluster.kube.errors import KubeError, RefusedError

__all__ = ["AdminApi", "KubeError", "Object", "RefusedError"]

STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"


class AdminApi(api.Api):
    """An API server of the sandbox. Every call raises RefusedError or UnreachableError."""

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
        """Create an object, or merge it into the existing one."""
        try:
            self.post(collection, body)
        except RefusedError as why:
            if why.status != 409:
                raise
            self.patch(f"{collection}/{body['metadata']['name']}", body)

    def apply(self, path: str, body: Object) -> None:
        """Apply on the server's side: fields that only an earlier body had are removed."""
        self.patch(path, body, APPLY_PATCH, fieldManager="kai-fleet-sandbox", force="true")

    def ready(self) -> bool:
        """Whether the server reports that it is ready."""
        try:
            return self.text("/readyz") == "ok"
        except KubeError:
            return False
