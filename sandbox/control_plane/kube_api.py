"""What the sandbox asks of its API servers beyond `kai_fleet.kube.api`: a merge, a watch."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import urllib3

from kai_fleet.kube import api
from kai_fleet.kube.api import JSON, Object
from kai_fleet.kube.errors import KubeError, Refused

__all__ = ["Api", "KubeError", "Object", "Refused", "Watch"]

STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_WATCH_SECONDS: Final = 240


class Api(api.Api):
    """An API server of the sandbox. Every call raises Refused or Unreachable."""

    def send(self, method: str, path: str, body: object, kind: str = JSON, **query: str) -> Object:
        """One object written, and as it is then."""
        found: Object = json.loads(self._ask(method, path, query, body, kind) or b"{}")  # type: ignore[arg-type]
        return found

    def set_condition(self, path: str, condition: Mapping[str, str]) -> None:
        """Write one condition of a built-in kind, and leave those that others write beside it.

        A merge patch would put the whole list in their place.
        """
        body: Object = {"status": {"conditions": [condition]}}
        self.patch(f"{path}/status", body, STRATEGIC_PATCH)

    def ensure(self, collection: str, body: Object) -> None:
        """Create, or merge into what is there."""
        try:
            self.post(collection, body)
        except Refused as why:
            if why.status != 409:
                raise
            self.patch(f"{collection}/{body['metadata']['name']}", body)

    def ready(self) -> bool:
        """Whether the server says that it serves."""
        try:
            return self._ask("GET", "/readyz", {}) == b"ok"
        except KubeError:
            return False

    def follow(self, path: str, **query: str) -> Iterator[Object]:
        """What happens to a collection from now on, until the server ends it."""
        about = {"watch": "1", "timeoutSeconds": str(_WATCH_SECONDS), **query}
        answer = self._way.pool.request(
            "GET",
            f"{self.host}{path}?{urlencode(about)}",
            headers=self._way.headers(),
            timeout=urllib3.Timeout(connect=5, read=_WATCH_SECONDS + 60),
            preload_content=False,
            retries=False,
        )
        try:
            yield from map(json.loads, answer)
        finally:
            answer.close()


class Watch(threading.Thread):
    """The objects of a collection, kept current by list and watch in the background.

    An API that does not answer leaves the last known objects in place.
    """

    def __init__(
        self, api: Api, path: str, changed: Callable[[], None], selector: str = ""
    ) -> None:
        super().__init__(daemon=True, name=f"watch {path}")
        self.synced = threading.Event()
        self._api, self._path, self._changed = api, path, changed
        self._query = {"labelSelector": selector} if selector else {}
        self._objects: dict[tuple[str, str], Object] = {}
        self._lock = threading.Lock()

    def objects(self) -> dict[tuple[str, str], Object]:
        """Namespace and name, and the object; never to be changed in place."""
        with self._lock:
            return dict(self._objects)

    def run(self) -> None:
        """List, then follow, then again."""
        pause = threading.Event()
        while True:
            try:
                listed = self._api.get(self._path, **self._query)
                with self._lock:
                    self._objects = {_key(item): item for item in listed["items"]}
                self.synced.set()
                self._changed()
                self._follow(listed["metadata"]["resourceVersion"])
            except (KubeError, KeyError, ValueError, urllib3.exceptions.HTTPError, OSError):
                pause.wait(1.0)
                self._changed()

    def _follow(self, version: str) -> None:
        for event in self._api.follow(self._path, resourceVersion=version, **self._query):
            if event["type"] == "ERROR":
                return
            with self._lock:
                if event["type"] == "DELETED":
                    self._objects.pop(_key(event["object"]), None)
                else:
                    self._objects[_key(event["object"])] = event["object"]
            self._changed()


def _key(item: Any) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]
