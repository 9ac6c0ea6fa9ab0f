"""A small client of the Kubernetes API for the sandbox's own processes.

The `kubernetes` package takes a second and 60 MiB to import; the supervisor wants neither.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import urllib3

MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
Object = dict[str, Any]


class ApiError(RuntimeError):
    """The API refused, or (status 0) did not answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Credentials:
    """PEM files that identify both ends."""

    authority: Path
    certificate: Path
    key: Path


class Https:
    """One server, reached with a client certificate."""

    def __init__(self, server: str, credentials: Credentials) -> None:
        self.server = server
        self._credentials = credentials
        context = ssl.create_default_context(cafile=str(credentials.authority))
        context.load_cert_chain(credentials.certificate, credentials.key)
        self._pool = urllib3.PoolManager(maxsize=4, retries=False, ssl_context=context)

    def open(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
        timeout: float = 10,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        """Send one request. Raises ApiError."""
        try:
            answer = self._pool.request(
                method,
                self.server + path,
                body=None if body is None else json.dumps(body).encode(),
                headers={"Content-Type": content_type, "Accept": "application/json"},
                timeout=urllib3.Timeout(connect=5, read=timeout),
                preload_content=not stream,
            )
        except (urllib3.exceptions.HTTPError, OSError) as why:
            raise ApiError(0, f"{self.server} does not answer: {why}") from why
        if answer.status >= 400:
            message = _message(answer.data)
            answer.release_conn()
            raise ApiError(answer.status, message)
        return answer


class Api(Https):
    """A Kubernetes API server. Every method raises ApiError."""

    def get(self, path: str, selector: str = "") -> Object:
        """One object, or a list."""
        query = f"?{urlencode({'labelSelector': selector})}" if selector else ""
        return _document(self.open("GET", path + query))

    def find(self, path: str) -> Object | None:
        """One object or list, or None where there is none (or no such kind)."""
        try:
            return self.get(path)
        except ApiError as why:
            if why.status == 404:
                return None
            raise

    def post(self, path: str, body: Mapping[str, Any]) -> Object:
        """Create."""
        return _document(self.open("POST", path, body))

    def patch(self, path: str, body: Mapping[str, Any]) -> Object:
        """Change what the merge patch names."""
        return _document(self.open("PATCH", path, body, MERGE_PATCH))

    def set_condition(self, path: str, condition: Mapping[str, str]) -> None:
        """Write one condition of a built-in kind, and leave those that others write beside it.

        A merge patch would put the whole list in their place.
        """
        body = {"status": {"conditions": [condition]}}
        self.open("PATCH", f"{path}/status", body, STRATEGIC_PATCH)

    def delete(self, path: str) -> None:
        """Delete; what is not there is deleted already."""
        try:
            self.open("DELETE", path)
        except ApiError as why:
            if why.status != 404:
                raise

    def ensure(self, collection: str, body: Mapping[str, Any]) -> None:
        """Create, or merge into what is there."""
        try:
            self.post(collection, body)
        except ApiError as why:
            if why.status != 409:
                raise
            self.patch(f"{collection}/{body['metadata']['name']}", body)

    def ready(self) -> bool:
        """Whether the server says that it serves."""
        try:
            return self.open("GET", "/readyz", timeout=5).status == 200
        except ApiError:
            return False


class Watch(threading.Thread):
    """The objects of a collection, kept current by list and watch in the background.

    An API that does not answer leaves the last known objects in place.
    """

    def __init__(
        self, api: Api, path: str, changed: Callable[[], None], selector: str = ""
    ) -> None:
        super().__init__(daemon=True, name=f"watch {path}")
        self.synced = threading.Event()
        self._api, self._path, self._selector, self._changed = api, path, selector, changed
        self._objects: dict[tuple[str, str], Object] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()

    def objects(self) -> dict[tuple[str, str], Object]:
        """Namespace and name, and the object; never to be changed in place."""
        with self._lock:
            return dict(self._objects)

    def stop(self) -> None:
        """Stop at the next answer of the API."""
        self._over.set()

    def run(self) -> None:
        """List, then follow, then again."""
        while not self._over.is_set():
            try:
                listed = self._api.get(self._path, self._selector)
                with self._lock:
                    self._objects = {_key(item): item for item in listed.get("items", [])}
                self.synced.set()
                self._changed()
                self._follow(listed["metadata"]["resourceVersion"])
            except ApiError as why:
                self._lost(5.0 if why.status == 404 else 1.0)  # 404: no such kind, or not yet
            except (KeyError, ValueError, urllib3.exceptions.HTTPError, OSError):
                self._lost(1.0)

    def _lost(self, pause: float) -> None:
        self._over.wait(pause)
        if not self._over.is_set():
            self._changed()

    def _follow(self, version: str) -> None:
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "240"}
        if self._selector:
            query["labelSelector"] = self._selector
        answer = self._api.open("GET", f"{self._path}?{urlencode(query)}", timeout=300, stream=True)
        try:
            for line in answer:
                event = json.loads(line)
                if self._over.is_set() or event["type"] == "ERROR":
                    return
                with self._lock:
                    if event["type"] == "DELETED":
                        self._objects.pop(_key(event["object"]), None)
                    else:
                        self._objects[_key(event["object"])] = event["object"]
                self._changed()
        finally:
            answer.close()


def _key(item: Object) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _document(answer: urllib3.BaseHTTPResponse) -> Object:
    document = json.loads(answer.data or b"{}")
    return document if isinstance(document, dict) else {}


def _message(data: bytes) -> str:
    try:
        return str(json.loads(data)["message"])
    except (ValueError, KeyError, TypeError):
        return data.decode(errors="replace")[:300]
