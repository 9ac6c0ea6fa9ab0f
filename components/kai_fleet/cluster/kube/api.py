"""One API server's objects as JSON, read within bounds: a tenant's own may answer anything."""

import http.client
import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, Self
from urllib.parse import urlencode

import urllib3

from kai_fleet.cluster.kube.errors import (
    AbsentError,
    RefusedError,
    UnreachableError,
    words_of_network,
)
from kai_fleet.cluster.kube.kubeconfig import Connection, connection
from kai_fleet.foreign_text import cleaned, may_have_controls

Object = dict[str, Any]
Lists = dict[str, list[Any]]
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
# Bytes of an answer. Two thousand pods have 20 MiB; JSON takes up to 20 times as much in memory.
OF_TENANTS: Final = 32 << 20
OF_OPERATORS: Final = 512 << 20
_PIECE: Final = 256 << 10
_NO_API: Final = "what answers there is no Kubernetes API"
_TOO_LATE: Final = "it does not answer in time"


class Api:
    """Every call raises RefusedError or UnreachableError.

    `seconds` are for each answer, `connect` of them for the connection; `in_all` is for all
    requests together. `most` are the bytes of an answer. What is read has no control characters but
    tabs and line breaks: tenants choose texts, and their own API servers answer what they like.
    """

    def __init__(
        self,
        way: Connection,
        seconds: float = 60.0,
        connect: float = 5.0,
        in_all: float | None = None,
        most: float = OF_TENANTS,
    ) -> None:
        self.host = way.host
        self._way = way
        self._most = int(most)
        self._seconds, self._connect, self._in_all = seconds, connect, in_all
        self._ends = None if in_all is None else time.monotonic() + in_all

    @classmethod
    def of_kubeconfig(cls, content: str, **limits: float) -> Self:
        """The cluster of a kubeconfig's content. Raises UnusableKubeconfigError."""
        return cls(connection(content), **limits)

    @classmethod
    def of_context(cls, file: str | None, context: str | None, **limits: float) -> Self:
        """A cluster of a kubeconfig file; None: the usual ones. Raises UnusableKubeconfigError."""
        return cls(connection(file=file, context=context), **limits)

    def get(self, path: str, **query: str) -> Object:
        """What is at a path."""
        return _parsed(self._ask("GET", path, query))

    def find(self, path: str) -> Object | None:
        """What is at a path, None where nothing is."""
        with suppress(AbsentError):
            return self.get(path)
        return None

    def list(self, path: str, **query: str) -> list[Object]:
        """Every object of a collection, in one answer: what pages cost is more than they save."""
        items = self.get(path, **query).get("items") or []
        if not isinstance(items, list):
            raise UnreachableError(_NO_API)
        return [item for item in items if isinstance(item, dict)]

    def lists(
        self, paths: Mapping[str, str], at_once: int, namespace: str | None = None
    ) -> tuple[Lists, dict[str, RefusedError]]:
        """The objects of each kind by its path, and of the other kinds why they were refused.

        `{}` in a path is where the one `namespace` goes, where it is not all. Credentials that are
        not accepted raise UnreachableError: then every kind is refused.
        """
        where = f"namespaces/{namespace}/" if namespace else ""
        found: Lists = {}
        refused: dict[str, RefusedError] = {}
        with ThreadPoolExecutor(max_workers=at_once) as pool:
            answers = {
                kind: pool.submit(self.get, path.format(where)) for kind, path in paths.items()
            }
        for kind, answer in answers.items():
            try:
                found[kind] = answer.result().get("items") or []
            except RefusedError as error:
                if error.status == HTTPStatus.UNAUTHORIZED:
                    raise UnreachableError("it does not accept the credentials (401)") from None
                refused[kind] = error
        return found, refused

    def post(self, path: str, body: Object, **query: str) -> Object:
        """Create an object. Returns it as it is then."""
        return _parsed(self._ask("POST", path, query, body))

    def patch(self, path: str, body: object, kind: str = MERGE_PATCH, **query: str) -> None:
        """Change what the patch names; `kind` is its media type."""
        self._ask("PATCH", path, query, body, kind)

    def delete(self, path: str) -> bool:
        """Begin to remove an object. Returns whether it was there."""
        with suppress(AbsentError):
            self._ask("DELETE", path, {})
            return True
        return False

    def close(self) -> None:
        """Give the connections back."""
        self._way.pool.clear()

    def _ask(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: object = None,
        kind: str = JSON,
    ) -> bytes:
        """Send one request, in a thread of its own: urllib3's timeouts are for each piece that
        arrives, and one piece every few seconds would never end.
        """
        url = f"{self.host}{path}" + (f"?{urlencode(query)}" if query else "")
        seconds = self._seconds if self._ends is None else self._ends - time.monotonic()
        if seconds <= 0:
            raise UnreachableError(f"it did not answer everything within {self._in_all:.0f} s")
        headers = self._way.headers()
        headers["Content-Type"] = kind
        answer: Future[bytes] = Future()

        def send() -> None:
            try:
                # No retries and no redirects: a refusal is an answer here.
                response = self._way.pool.request(
                    method,
                    url,
                    body=None if body is None else json.dumps(body),
                    headers=headers,
                    timeout=urllib3.Timeout(connect=min(self._connect, seconds), read=seconds),
                    retries=False,
                    preload_content=False,
                )
                answer.set_result(self._content(response, time.monotonic() + seconds))
            except Exception as error:
                answer.set_exception(error)

        threading.Thread(target=send, daemon=True).start()
        try:
            return answer.result(seconds + 0.1)
        except TimeoutError:
            raise UnreachableError(_TOO_LATE) from None
        except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError) as error:
            raise UnreachableError(words_of_network(error)) from None

    def _content(self, response: urllib3.BaseHTTPResponse, ends: float) -> bytes:
        """The whole body. What is packed is not unpacked: it was not requested, and a little of it
        may stand for gigabytes.
        """
        data = bytearray()
        while piece := response.read1(_PIECE, decode_content=False):
            data += piece
            if len(data) > self._most or time.monotonic() > ends:
                response.close()
                most = f"it answers more than {self._most >> 20} MiB, which is more than is read"
                raise UnreachableError(_TOO_LATE if time.monotonic() > ends else f"{most} of it")
        response.release_conn()
        if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            absent = response.status == HTTPStatus.NOT_FOUND
            kind = AbsentError if absent else RefusedError
            raise kind(response.status, response.reason or "", bytes(data))
        return bytes(data)


def _parsed(data: bytes) -> Object:
    try:
        text = data.decode()
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreachableError(_NO_API) from None
    if may_have_controls(text):
        content = cleaned(content)
    return content if isinstance(content, dict) else {}
