"""One API server's objects, as JSON over HTTP.

The official client's typed layers take six times as long for each object as the API server itself;
its reading of kubeconfigs is used (`kai_fleet.kube.kubeconfig`).
"""

from __future__ import annotations

import json
import time
from typing import Any, Final, Self
from urllib.parse import urlencode

import urllib3

from kai_fleet.kube.errors import Refused, Unreachable, words_of_network
from kai_fleet.kube.kubeconfig import Connection, connection

Object = dict[str, Any]
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
_PAGE: Final = 500
_FAILED: Final = 400
_ABSENT: Final = 404


class Api:
    """Every call raises Refused or Unreachable.

    `seconds` are for each answer, `connect` of them for the connection; `in_all` is for everything
    that is asked here together.
    """

    def __init__(
        self,
        way: Connection,
        seconds: float = 60.0,
        connect: float = 5.0,
        in_all: float | None = None,
    ) -> None:
        self.host = way.host
        self._way = way
        self._seconds, self._connect, self._in_all = seconds, connect, in_all
        self._ends = None if in_all is None else time.monotonic() + in_all

    @classmethod
    def of_kubeconfig(cls, content: str, **limits: float) -> Self:
        """The cluster of a kubeconfig's content. Raises UnusableKubeconfig."""
        return cls(connection(content), **limits)

    @classmethod
    def of_context(cls, file: str | None, context: str | None, **limits: float) -> Self:
        """A cluster of a kubeconfig file, the usual ones where None. Raises UnusableKubeconfig."""
        return cls(connection(file=file, context=context), **limits)

    def get(self, path: str, **query: str) -> Object:
        """What is at a path."""
        try:
            found = json.loads(self._ask("GET", path, query))
        except ValueError:
            raise Unreachable("what answers there is no Kubernetes API") from None
        return found if isinstance(found, dict) else {}

    def find(self, path: str) -> Object | None:
        """What is at a path, None where nothing is."""
        try:
            return self.get(path)
        except Refused as why:
            if why.status != _ABSENT:
                raise
            return None

    def list(self, path: str, **query: str) -> list[Object]:
        """Every object of a collection, page by page."""
        found: list[Object] = []
        more: dict[str, str] = {}
        while True:
            page = self.get(path, limit=str(_PAGE), **query, **more)
            found += page.get("items") or []
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return found
            more = {"continue": token}

    def post(self, path: str, body: Object, **query: str) -> None:
        """Make an object."""
        self._ask("POST", path, query, body)

    def put(self, path: str, body: Object, **query: str) -> None:
        """Have an object so, and nothing else in it."""
        self._ask("PUT", path, query, body)

    def patch(self, path: str, body: Object, kind: str = MERGE_PATCH, **query: str) -> None:
        """Change what the patch names; `kind` is its media type."""
        self._ask("PATCH", path, query, body, kind)

    def delete(self, path: str) -> bool:
        """Begin with an object's removal; whether it was there."""
        try:
            self._ask("DELETE", path, {})
        except Refused as why:
            if why.status != _ABSENT:
                raise
            return False
        return True

    def close(self) -> None:
        """Give the connections back."""
        self._way.pool.clear()

    def _ask(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: Object | None = None,
        kind: str = JSON,
    ) -> bytes:
        url = f"{self.host}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            # No retries and no redirects: a refusal is an answer here.
            answer = self._way.pool.request(
                method,
                url,
                body=None if body is None else json.dumps(body),
                headers={"Content-Type": kind, **self._way.headers()},
                timeout=self._limits(),
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as why:
            raise Unreachable(words_of_network(why)) from None
        if answer.status >= _FAILED:
            raise Refused(answer.status, answer.reason or "", answer.data)
        return answer.data

    def _limits(self) -> urllib3.Timeout:
        if self._ends is None:
            return urllib3.Timeout(connect=min(self._connect, self._seconds), read=self._seconds)
        left = self._ends - time.monotonic()
        if left <= 0:
            raise Unreachable(f"it did not answer everything within {self._in_all:.0f} s")
        return urllib3.Timeout(connect=self._connect, total=left)
