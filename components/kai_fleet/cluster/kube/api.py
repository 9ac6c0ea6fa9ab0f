"""A small Kubernetes client with limits on time and size: tenants' API servers are untrusted."""

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
    NO_API,
    TOO_LATE,
    AbsentError,
    BusyError,
    RefusedError,
    UnreachableError,
    words_of_network,
)
from kai_fleet.cluster.kube.kubeconfig import Connection, connection
from kai_fleet.cluster.kube.round import OF_TENANTS, Round, require_shallow
from kai_fleet.wording import cleaned, may_have_controls

Object = dict[str, Any]
Lists = dict[str, list[Any]]
JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
_PIECE: Final = 256 << 10


class Api:
    """A client of one API server. Calls raise RefusedError or UnreachableError.

    `seconds` is the timeout of each request, and `most` the bytes of its answer; with `in_all` both
    bound all requests together, until `begin`. Control characters in answers are dropped, but for
    tabs and line breaks: tenants choose the texts. What a server that is busy puts off (429) is
    asked again when it says, in the first half of the time that there is.
    """

    connect_seconds = 5.0

    def __init__(
        self,
        connection: Connection,
        seconds: float = 60.0,
        in_all: float | None = None,
        most: float = OF_TENANTS,
    ) -> None:
        self.host, self.context = connection.host, connection.context
        self._connection = connection
        self._seconds, self._most = seconds, int(most)
        self._round = None if in_all is None else Round(in_all, self._most)

    @classmethod
    def of_kubeconfig(cls, content: str, **limits: float) -> Self:
        """The cluster of a kubeconfig's content. Raises UnusableKubeconfigError."""
        return cls(connection(content), **limits)

    @classmethod
    def of_context(cls, file: str | None, context: str | None, **limits: float) -> Self:
        """A cluster of a kubeconfig file; None: the usual ones. Raises UnusableKubeconfigError."""
        return cls(connection(file=file, context=context), **limits)

    def begin(self, in_all: float) -> None:
        """Bound all requests from here on together, anew: they have `in_all` seconds."""
        self._round = Round(in_all, self._most)

    def get(self, path: str, **query: str) -> Object:
        """GET an object. Raises AbsentError if there is none."""
        within = self._bounds()
        while True:
            try:
                return _parsed(self._ask("GET", path, query, within=within), within)
            except BusyError as error:
                if not within.allows_wait(error.seconds):
                    raise
                time.sleep(error.seconds)

    def text(self, path: str) -> str:
        """GET what is no JSON, such as metrics."""
        return self._ask("GET", path, {}).decode(errors="replace")

    def find(self, path: str) -> Object | None:
        """GET an object; None if there is none."""
        with suppress(AbsentError):
            return self.get(path)
        return None

    def list(self, path: str, **query: str) -> list[Object]:
        """All objects of a collection in one response: pages cost more than they save."""
        items = _all_of(self.get(path, **query))
        if not isinstance(items, list):
            raise UnreachableError(NO_API)
        return [item for item in items if isinstance(item, dict)]

    def lists(
        self, paths: Mapping[str, str], at_once: int, namespace: str | None = None
    ) -> tuple[Lists, dict[str, RefusedError]]:
        """Objects by kind, and the errors of kinds whose list was refused.

        `{}` in a path stands for `namespaces/NAMESPACE/`, or for nothing without `namespace`. 401
        raises UnreachableError, as it refuses every kind.
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
                found[kind] = _all_of(answer.result())
            except RefusedError as error:
                if error.status == HTTPStatus.UNAUTHORIZED:
                    raise UnreachableError("it does not accept the credentials (401)") from None
                refused[kind] = error
        return found, refused

    def post(self, path: str, body: Object, **query: str) -> Object:
        """Create an object, and return it."""
        return _parsed(self._ask("POST", path, query, body), self._bounds())

    def patch(self, path: str, body: object, kind: str = MERGE_PATCH, **query: str) -> None:
        """Patch an object; `kind` is the media type of the patch."""
        self._ask("PATCH", path, query, body, kind)

    def delete(self, path: str) -> bool:
        """Delete an object, without waiting for it. Returns whether it existed."""
        with suppress(AbsentError):
            self._ask("DELETE", path, {})
            return True
        return False

    def close(self) -> None:
        """Close the connections."""
        self._connection.pool.clear()

    def _ask(
        self,
        method: str,
        path: str,
        query: dict[str, str],
        body: object = None,
        kind: str = JSON,
        within: Round | None = None,
    ) -> bytes:
        """Send one request in a thread: urllib3's timeouts apply to each chunk, so a server that
        sends one every few seconds would never time out.
        """
        url = f"{self.host}{path}" + (f"?{urlencode(query)}" if query else "")
        within = within or self._bounds()
        seconds = within.seconds_left()
        headers = {**self._connection.headers(), "Content-Type": kind}
        answer: Future[bytes] = Future()

        def send() -> None:
            connect = min(self.connect_seconds, seconds)
            try:
                # No retries and no redirects: a refusal is an answer here.
                response = self._connection.pool.request(
                    method,
                    url,
                    body=None if body is None else json.dumps(body),
                    headers=headers,
                    timeout=urllib3.Timeout(connect=connect, read=seconds),
                    retries=False,
                    preload_content=False,
                )
                answer.set_result(_content(response, within))
            except Exception as error:
                answer.set_exception(error)

        threading.Thread(target=send, daemon=True).start()
        try:
            return answer.result(seconds + 0.1)
        except TimeoutError:
            raise UnreachableError(TOO_LATE) from None
        except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError) as error:
            raise UnreachableError(words_of_network(error)) from None

    def _bounds(self) -> Round:
        """Those of all requests together, else those of one."""
        return self._round or Round(self._seconds, self._most)


def _content(response: urllib3.BaseHTTPResponse, within: Round) -> bytes:
    """The whole body. Compressed data was not requested, and is not decompressed: it could expand
    to gigabytes.
    """
    data = bytearray()
    try:
        while piece := response.read1(_PIECE, decode_content=False):
            data += piece
            within.take(piece)
    except UnreachableError:
        response.close()
        raise
    response.release_conn()
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise _refusal(response, bytes(data))
    return bytes(data)


def _refusal(response: urllib3.BaseHTTPResponse, body: bytes) -> RefusedError:
    reason = response.reason or ""
    if response.status == HTTPStatus.NOT_FOUND:
        return AbsentError(response.status, reason, body)
    if response.status == HTTPStatus.TOO_MANY_REQUESTS:
        return BusyError(reason, body, response.headers.get("Retry-After", ""))
    return RefusedError(response.status, reason, body)


def _all_of(answer: Object) -> Any:
    """The items of a list. Raises RefusedError for a server that gives a part of it only."""
    metadata = answer.get("metadata")
    if isinstance(metadata, dict) and metadata.get("continue"):
        part = HTTPStatus.PARTIAL_CONTENT
        raise RefusedError(part, part.phrase)
    return answer.get("items") or []


def _parsed(data: bytes, within: Round) -> Object:
    try:
        text = data.decode()
        content = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise UnreachableError(NO_API) from None
    if not isinstance(content, dict):
        return {}
    require_shallow(content)
    within.take_objects(content.get("items"))
    return cleaned(content) if may_have_controls(text) else content


def _no_number(word: str) -> None:
    """Refuse NaN and Infinity, which Python's parser takes and Kubernetes never writes."""
    raise ValueError(word)
