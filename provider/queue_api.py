"""The Queue objects of one cluster: a request for each, because there is none for several."""

from __future__ import annotations

from typing import Final

from kubernetes import client

from provider.http_api import HttpApi, Object

API_VERSION: Final = "scheduling.run.ai/v2"
KIND: Final = "Queue"
PATH: Final = f"/apis/{API_VERSION}/queues"
_MANAGER: Final = "kai-fleet"


class QueueApi:
    """Every call raises what HttpApi does."""

    def __init__(self, api: client.ApiClient) -> None:
        self._api = HttpApi(api)

    def all(self) -> dict[str, Object]:
        """Every Queue of the cluster by name."""
        return {item["metadata"]["name"]: item for item in self._api.items(PATH)}

    def create(self, body: Object) -> None:
        """Make one."""
        self._api.post(PATH, body, fieldManager=_MANAGER)

    def replace(self, name: str, body: Object) -> None:
        """Have it so, and nothing else in it."""
        self._api.put(f"{PATH}/{name}", body, fieldManager=_MANAGER)

    def delete(self, name: str) -> None:
        """Begin with its removal; one that is gone is fine."""
        self._api.delete(f"{PATH}/{name}")
