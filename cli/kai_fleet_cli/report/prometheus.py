"""Queries to a Prometheus: at its address, or as a Service of the host through the API server."""

import http.client
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import urllib3

from kai_fleet.kube.api import Api
from kai_fleet.kube.bounded import bind, bounded
from kai_fleet.kube.errors import RefusedError, UnreachableError, words_of_network
from kai_fleet.kube.text import plain
from kai_fleet.settings.sections.monitoring import Prometheus

TOKEN: Final = "KAI_FLEET_PROMETHEUS_TOKEN"
_QUERY: Final = "/api/v1/query"
_SECONDS: Final = 30.0
_MOST: Final = 64 << 20  # bytes of an answer; a series of a queue takes 300
_TOO_MUCH: Final = 1e15  # GPUs summed over a window

# What to write for a stack to have one.
TURN_ON: Final = (
    "write kai-fleet:monitoring: {prometheus: {service: monitoring/prometheus-operated:9090}}"
    " (docs/monitoring.md)."
)
# From an expression to each series' labels and its value now. Raises UnreachableError.
Query: TypeAlias = Callable[[str], list[tuple[Mapping[str, str], float]]]


def of(server: Prometheus, host: Callable[[], Api]) -> Query:
    """Queries to a stack's Prometheus; `host` opens its cluster. Raises UnreachableError."""
    if server.url is not None:
        return at_url(server.url)
    return _through(host(), server.service or "")


def at_url(url: str) -> Query:
    """Queries to the Prometheus at an address, with the token of the environment."""
    token = os.environ.get(TOKEN, "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    where = f"Prometheus at {url}"
    pool = urllib3.PoolManager(maxsize=8, timeout=_SECONDS, retries=False)
    bind(pool)

    def query(expression: str) -> list[tuple[Mapping[str, str], float]]:
        try:
            # No redirects: the token is for this address.
            with bounded(_SECONDS, _MOST):
                answer = pool.request(
                    "GET", url.rstrip("/") + _QUERY, fields={"query": expression}, headers=headers
                )
        except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError) as error:
            raise UnreachableError(f"{where}: {words_of_network(error)}") from None
        status = answer.status
        if status in (401, 403):
            raise UnreachableError(f"{where} does not let you in; set {TOKEN} to a token")
        if 300 <= status < 400:
            raise UnreachableError(f"{where} answers {status}: write its own address")
        try:
            content = json.loads(answer.data)
        except (ValueError, RecursionError):
            raise UnreachableError(f"what answers at {url} ({status}) is no Prometheus") from None
        if status >= 400 and not isinstance(content, Mapping):
            raise UnreachableError(f"{where} answers {status}")
        return _series(content, url)

    return query


def _through(api: Api, service: str) -> Query:
    """Queries to the Service NAMESPACE/NAME:PORT of a cluster."""
    namespace, _, name = service.partition("/")
    path = f"/api/v1/namespaces/{namespace}/services/{name}/proxy{_QUERY}"

    def query(expression: str) -> list[tuple[Mapping[str, str], float]]:
        try:
            return _series(api.get(path, query=expression), service)
        except RefusedError as error:
            raise UnreachableError(f"Prometheus at Service {service} answers {error}") from None

    return query


def _series(content: Any, where: str) -> list[tuple[Mapping[str, str], float]]:
    if not isinstance(content, Mapping) or content.get("status") != "success":
        error = content.get("error") if isinstance(content, Mapping) else None
        raise UnreachableError(f"Prometheus at {where} answers: {plain(error or 'no result', 300)}")
    try:
        found = [(it["metric"], float(it["value"][1])) for it in content["data"]["result"]]
    except (KeyError, IndexError, TypeError, ValueError):
        raise UnreachableError(f"what answers at {where} is no Prometheus") from None
    # Tenants' KAIs are read too, and may say anything; NaN is less than nothing.
    return [(labels, value) for labels, value in found if abs(value) < _TOO_MUCH]
