"""Asking one API server within a fixed time; there is no way to write through it.

It needs Kubernetes' own client, which is slow to import: who seldom asks imports it when asking.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from kubernetes import client

from provider.client_files import of_content, of_file
from provider.cluster_client import UNUSABLE, headers

SECONDS: Final = 10.0  # for everything that is asked of one API server
_PAGE: Final = 500
_FAILED: Final = 400


class Unreachable(Exception):  # noqa: N818 - its message is what a finding shows
    """The API server did not answer, or not in time; or there is no way to it.

    `reason` is what it was found by in a library's words, on one line; `kind` is that error's name.
    """

    def __init__(self, message: str, cause: Exception | None = None) -> None:
        super().__init__(message)
        self.reason = _short(message if cause is None else cause)
        self.kind = type(self if cause is None else cause).__name__


class Refused(Exception):  # noqa: N818 - its message is what a finding shows
    """The API server answered, and not with what was asked for; `status` is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def client_of_context(file: str | None, context: str | None) -> client.ApiClient:
    """A client for a context of a kubeconfig file, the usual one where None; raises Unreachable."""
    try:
        return of_file(file, context)
    except UNUSABLE as why:
        raise Unreachable(f"the kubeconfig cannot be used: {_short(why)}", why) from None


def client_of_kubeconfig(text: str, context: str | None = None) -> client.ApiClient:
    """A client for a context of a kubeconfig's content; raises Unreachable."""
    try:
        return of_content(text, context)
    except UNUSABLE as why:
        raise Unreachable(f"its kubeconfig cannot be used: {_short(why)}", why) from None


class Reader:
    """GET, and nothing else. `seconds` are for all its questions, `connect` for each connection."""

    def __init__(
        self, api: client.ApiClient, seconds: float = SECONDS, connect: float | None = None
    ) -> None:
        self._configuration = api.configuration
        self._pool = api.rest_client.pool_manager
        self._ends = time.monotonic() + seconds
        self._seconds, self._connect = seconds, connect

    @classmethod
    def of_context(cls, file: str | None, context: str | None, seconds: float = SECONDS) -> Reader:
        """A cluster of a kubeconfig file (the usual one if None); raises Unreachable."""
        return cls(client_of_context(file, context), seconds)

    @classmethod
    def of_kubeconfig(cls, text: str, seconds: float = SECONDS) -> Reader:
        """The cluster of a kubeconfig's content; raises Unreachable."""
        return cls(client_of_kubeconfig(text), seconds)

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """The JSON at a path. Raises Unreachable and Refused."""
        left = self._ends - time.monotonic()
        if left <= 0:
            raise Unreachable(f"it did not answer everything within {self._seconds:.0f} s")
        url = f"{self._configuration.host}{path}"
        try:
            # Neither urllib3's retries nor the client's models: a refusal is an answer here.
            answer = self._pool.request(
                "GET",
                f"{url}?{urlencode(query)}" if query else url,
                headers=headers(self._configuration),
                timeout=urllib3.Timeout(connect=self._connect, total=left),
                retries=False,
            )
        except (urllib3.exceptions.HTTPError, OSError) as why:
            raise Unreachable(_network(why), why) from None
        if answer.status >= _FAILED:
            raise Refused(answer.status, str(answer.reason or answer.status))
        try:
            read = json.loads(answer.data)
        except ValueError as why:
            raise Unreachable("what answers there is no Kubernetes API", why) from None
        return read if isinstance(read, dict) else {}

    def list(self, path: str, **query: str) -> list[Mapping[str, Any]]:
        """Every object of a collection, page by page."""
        found: list[Mapping[str, Any]] = []
        more: dict[str, str] = {}
        while True:
            page = self.get(path, limit=str(_PAGE), **query, **more)
            found += page.get("items") or []
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return found
            more = {"continue": token}

    def close(self) -> None:
        """Give the connections back."""
        self._pool.clear()


def _network(why: Exception) -> str:
    reason = getattr(why, "reason", None) or why
    text = _short(reason)
    if "CERTIFICATE_VERIFY_FAILED" in text or "certificate" in text.lower():
        return f"its certificate is not accepted: {text}"
    # urllib3 counts a refused connection among its time-outs.
    refused = isinstance(reason, urllib3.exceptions.NewConnectionError)
    if not refused and isinstance(reason, urllib3.exceptions.TimeoutError):
        return "it does not answer in time"
    return f"it cannot be connected to: {text}"


def _short(why: object) -> str:
    """The last part of a chain of messages, on one line; never a kubeconfig's content."""
    text = str(why).strip().splitlines()[0] if str(why).strip() else type(why).__name__
    return text.rpartition(">: ")[2][:200]
