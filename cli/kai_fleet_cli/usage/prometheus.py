"""Asking a Prometheus: at its address, or as a Service of the host through the API server."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import urllib3

from kai_fleet.kube.api import Api
from kai_fleet.kube.bounded import bind, bounded
from kai_fleet.kube.errors import RefusedError, UnreachableError, words_of_network
from kai_fleet.kube.text import plain

TOKEN: Final = "KAI_FLEET_PROMETHEUS_TOKEN"
_QUERY: Final = "/api/v1/query"
_SECONDS: Final = 30.0
_FAILED: Final = 400
_ELSEWHERE: Final = range(300, 400)
_MOST: Final = 64 << 20  # bytes of an answer; a series of a queue takes 300


@dataclass(frozen=True)
class Sample:
    """One series' value at the moment of the question."""

    labels: Mapping[str, str]
    value: float


Ask: TypeAlias = Callable[[str], list[Sample]]


def at_url(url: str) -> Ask:
    """Raises UnreachableError, when asked, with where and why."""
    token = os.environ.get(TOKEN, "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    pool = urllib3.PoolManager(maxsize=8, timeout=_SECONDS, retries=False)
    bind(pool)

    def ask(expr: str) -> list[Sample]:
        try:
            # No redirects: the token is for this address.
            with bounded(_SECONDS, _MOST):
                answer = pool.request(
                    "GET", f"{url.rstrip('/')}{_QUERY}", fields={"query": expr}, headers=headers
                )
        except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError) as why:
            raise UnreachableError(f"Prometheus at {url}: {words_of_network(why)}") from None
        if answer.status in (401, 403):
            raise UnreachableError(
                f"Prometheus at {url} does not let you in; set {TOKEN} to a token"
            )
        if answer.status in _ELSEWHERE:
            raise UnreachableError(
                f"Prometheus at {url} answers {answer.status}: write its own address"
            )
        return _samples(answer.data, answer.status, url)

    return ask


def through(api: Api, service: str) -> Ask:
    """The Service NAMESPACE/NAME:PORT of a cluster. Raises UnreachableError as above."""
    namespace, _, name = service.partition("/")
    path = f"/api/v1/namespaces/{namespace}/services/{name}/proxy{_QUERY}"

    def ask(expr: str) -> list[Sample]:
        try:
            return _read(api.get(path, query=expr), service)
        except RefusedError as why:
            raise UnreachableError(f"Prometheus at Service {service} answers {why}") from None

    return ask


def _samples(data: bytes, status: int, where: str) -> list[Sample]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise UnreachableError(f"what answers at {where} ({status}) is no Prometheus") from None
    if status >= _FAILED and not isinstance(content, Mapping):
        raise UnreachableError(f"Prometheus at {where} answers {status}")
    return _read(content, where)


def _read(content: Any, where: str) -> list[Sample]:
    if not isinstance(content, Mapping) or content.get("status") != "success":
        error = content.get("error") if isinstance(content, Mapping) else None
        raise UnreachableError(f"Prometheus at {where} answers: {plain(error or 'no result', 300)}")
    try:
        return [
            Sample(found["metric"], float(found["value"][1])) for found in content["data"]["result"]
        ]
    except (KeyError, IndexError, TypeError, ValueError):
        raise UnreachableError(f"what answers at {where} is no Prometheus") from None
