"""Kubernetes' API over plain HTTP, as JSON.

The Kubernetes client builds hundreds of model classes before its first question of a kind, two
thirds of a second, and its layers take as long for each object as the API server itself.
"""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from provider.cluster_client import headers

# What a question raises where a cluster refuses it or does not answer.
UNANSWERED: Final = (ApiException, urllib3.exceptions.HTTPError, OSError, ValueError)
_CONNECT: Final = 5.0  # seconds
_REFUSED: Final = 400
_ABSENT: Final = 404
Object = dict[str, Any]


class HttpApi:
    """One cluster's; it has so many seconds for each answer.

    Every call raises one of UNANSWERED.
    """

    def __init__(self, api: client.ApiClient, seconds: float = 60.0) -> None:
        self._timeout = urllib3.Timeout(connect=min(_CONNECT, seconds), read=seconds)
        self._configuration = api.configuration
        self._pool: urllib3.PoolManager = api.rest_client.pool_manager

    def get(self, path: str, **query: str) -> Object:
        """What is at a path."""
        found: Object = json.loads(self._ask("GET", path, query))
        return found

    def find(self, path: str) -> Object | None:
        """What is at a path, None where nothing is."""
        try:
            return self.get(path)
        except ApiException as why:
            if why.status != _ABSENT:
                raise
            return None

    def items(self, path: str, **query: str) -> list[Object]:
        """The objects of a collection."""
        found: list[Object] = self.get(path, **query)["items"]
        return found

    def post(self, path: str, body: Object, **query: str) -> None:
        """Make an object."""
        self._ask("POST", path, query, body)

    def put(self, path: str, body: Object, **query: str) -> None:
        """Have an object so, and nothing else in it."""
        self._ask("PUT", path, query, body)

    def delete(self, path: str) -> bool:
        """Begin with an object's removal; whether it was there."""
        try:
            self._ask("DELETE", path, {})
        except ApiException as why:
            if why.status != _ABSENT:
                raise
            return False
        return True

    def _ask(
        self, method: str, path: str, query: dict[str, str], body: Object | None = None
    ) -> bytes:
        answer = self._pool.request(
            method,
            f"{self._configuration.host}{path}" + (f"?{urlencode(query)}" if query else ""),
            body=None if body is None else json.dumps(body),
            headers={"Content-Type": "application/json", **headers(self._configuration)},
            timeout=self._timeout,
            retries=False,
        )
        if answer.status >= _REFUSED:
            refused = ApiException(status=answer.status, reason=answer.reason)
            refused.body = answer.data.decode(errors="replace")
            raise refused
        return answer.data


def complaint(why: Exception) -> str:
    """What one of UNANSWERED says of the API, in a phrase."""
    if isinstance(why, ApiException):
        return f"the API answers {why.status} {why.reason}"
    return f"the API does not answer ({type(why).__name__})"
