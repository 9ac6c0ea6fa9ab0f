"""One request to an API server as it is, also of a kind that the client has no method for."""

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from kubernetes import client
from kubernetes.client.exceptions import ApiException


def _is_conflict(refused: ApiException) -> bool:
    """Whether somebody wrote to the object, or to a quota that counts it, in between.

    That is no verdict: the quota controller updates a namespace's quotas while tests write to it.
    A name that is taken is a 409 as well, of the reason AlreadyExists.
    """
    return refused.status == 409 and '"reason":"Conflict"' in refused.body


class Http:
    """The API server, as one account. Every call raises ApiException."""

    def __init__(self, api: client.ApiClient, headers: Mapping[str, str] | None = None) -> None:
        self._api, self._headers = api, dict(headers or {})

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        patch = "json-patch+json" if isinstance(body, list) else "strategic-merge-patch+json"
        kind = patch if method == "PATCH" else "json"
        own = self._api.configuration
        token = own.get_api_key_with_prefix("authorization")
        attempts_left = 30
        while True:
            answer = self._api.rest_client.pool_manager.request(
                method,
                f"{own.host}{path}" + (f"?{urlencode(query)}" if query else ""),
                body=None if body is None else json.dumps(body),
                headers={
                    "Content-Type": f"application/{kind}",
                    **({"authorization": token} if token else {}),
                    **self._headers,
                },
                retries=False,
            )
            if answer.status < 400:
                return json.loads(answer.data)
            refused = ApiException(status=answer.status)
            refused.body = answer.data.decode()
            if not attempts_left or not _is_conflict(refused):
                raise refused
            attempts_left -= 1
            time.sleep(0.1)

    def get(self, path: str, **query: str) -> Any:
        return self.ask("GET", path, **query)

    def items(self, path: str) -> list[Any]:
        return list(self.get(path)["items"])

    def post(self, path: str, body: Any, **query: str) -> None:
        self.ask("POST", path, body, **query)
