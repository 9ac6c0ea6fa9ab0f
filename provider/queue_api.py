"""The Queue objects of one cluster over plain HTTP.

The Kubernetes client's models and layers take as long as the API server itself, and a thousand
queues are a thousand requests: there is none for several objects.
"""

from __future__ import annotations

import json
from typing import Any, Final

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

API_VERSION: Final = "scheduling.run.ai/v2"
KIND: Final = "Queue"
_PATH: Final = f"/apis/{API_VERSION}/queues"
_MANAGER: Final = "fieldManager=kai-fleet"
_TIMEOUT: Final = urllib3.Timeout(connect=5, read=60)  # seconds
_REFUSED: Final = 400
Object = dict[str, Any]


class QueueApi:
    """Every call raises ApiException, urllib3's HTTPError or OSError."""

    def __init__(self, api: client.ApiClient) -> None:
        self._configuration = api.configuration
        self._pool: urllib3.PoolManager = api.rest_client.pool_manager

    def all(self) -> dict[str, Object]:
        """Every Queue of the cluster by name."""
        listed = json.loads(self._ask("GET", _PATH))
        return {item["metadata"]["name"]: item for item in listed["items"]}

    def create(self, body: Object) -> None:
        """Make one."""
        self._ask("POST", f"{_PATH}?{_MANAGER}", body)

    def replace(self, name: str, body: Object) -> None:
        """Have it so, and nothing else in it."""
        self._ask("PUT", f"{_PATH}/{name}?{_MANAGER}", body)

    def delete(self, name: str) -> None:
        """Begin with its removal."""
        self._ask("DELETE", f"{_PATH}/{name}")

    def _ask(self, method: str, path: str, body: Object | None = None) -> bytes:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        for setting in self._configuration.auth_settings().values():
            headers[setting["key"]] = setting["value"]
        answer = self._pool.request(
            method,
            f"{self._configuration.host}{path}",
            body=None if body is None else json.dumps(body),
            headers=headers,
            timeout=_TIMEOUT,
            retries=False,
        )
        if answer.status >= _REFUSED:
            refused = ApiException(status=answer.status, reason=answer.reason)
            refused.body = answer.data.decode(errors="replace")
            raise refused
        return answer.data
