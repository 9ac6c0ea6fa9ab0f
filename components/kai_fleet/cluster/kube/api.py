"""A small Kubernetes client with limits on time and size: tenants' API servers are untrusted."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Self, TypedDict, Unpack

from kubernetes.client import ApiException
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

from kai_fleet.cluster.kube.answer_limits import TENANT_BYTES, AnswerLimits, require_shallow
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
from kai_fleet.values import get
from kai_fleet.wording import json_without_controls, may_have_controls

# JSON of one object.
Object = dict[str, Any]
# The `items` of lists by kind, unchecked: a tenant's server may send anything. See `well_named`.
Lists = dict[str, Any]
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_CHUNK_BYTES = 256 << 10
_GRACE_SECONDS = 0.1  # so that the client's own timeout, which says more, comes first
# ApiException only for errors of TLS: `call_api` raises it for no status.
_NETWORK_ERRORS = (ApiException, HTTPError, http.client.HTTPException, OSError)


class Limits(TypedDict, total=False):
    """What `Api` allows an API server: its arguments of the same names."""

    seconds: float
    total_seconds: float | None
    most_bytes: int


class Api:
    """A client of one API server. Its requests raise RefusedError or UnreachableError.

    A path begins with a slash: `/api/v1/pods`. `query` has the parameters of a URL, unescaped.
    `host` is the server's URL, `context` the context in the kubeconfig.

    Control characters in answers are removed, except tabs and line breaks: tenants choose the
    texts. A GET that a busy server refuses (429) is repeated after the time that the server names,
    but only within the first half of the time limit, and of a minute.

    Args:
        connection: The server and the credentials.
        seconds: The timeout of each request, without `total_seconds`.
        total_seconds: The seconds for all requests together, until `restart_limits` sets another.
        most_bytes: The bytes of each answer; with `total_seconds`, those of all answers together.
    """

    connect_seconds = 5.0

    def __init__(
        self,
        connection: Connection,
        seconds: float = 60.0,
        total_seconds: float | None = None,
        most_bytes: int = TENANT_BYTES,
    ) -> None:
        self.host = connection.host
        self.context = connection.context
        self._connection = connection
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._answer_limits = (
            None if total_seconds is None else AnswerLimits(total_seconds, self._most_bytes)
        )

    @classmethod
    def of_kubeconfig(
        cls,
        content: str | None = None,
        *,
        context: str | None = None,
        file: str | None = None,
        **limits: Unpack[Limits],
    ) -> Self:
        """A client with a kubeconfig, as `connection` reads it. Raises UnusableKubeconfigError."""
        return cls(connection(content, context=context, file=file), **limits)

    def restart_limits(self, total_seconds: float) -> None:
        """Limit all later requests together to this time; all bytes are available again."""
        self._answer_limits = AnswerLimits(total_seconds, self._most_bytes)

    def get(self, path: str, **query: str) -> Object:
        """GET an object, or a list of objects; {} if the answer is JSON but no mapping.

        Raises AbsentError if it, or its kind, does not exist.
        """
        limits = self._limits()
        while True:
            try:
                return _parsed(self._ask("GET", path, query, limits=limits), limits)
            except BusyError as error:
                if not limits.allows_wait(error.seconds):
                    raise
                time.sleep(error.seconds)

    def text(self, path: str) -> str:
        """GET a text that is not JSON, such as metrics. A busy server is not asked again.

        Control characters are kept, and bytes that are no UTF-8 are replaced.
        """
        return self._ask("GET", path, {}).decode(errors="replace")

    def find(self, path: str) -> Object | None:
        """GET an object; None if it, or its kind, does not exist."""
        with suppress(AbsentError):
            return self.get(path)
        return None

    def list(self, path: str, **query: str) -> list[Object]:
        """All objects of a collection, in one response: pages cost more than they save.

        Empty if the answer has no `items`. Items that are no mappings are left out. Raises
        UnreachableError if `items` is no list, RefusedError if the list is incomplete, AbsentError
        if the kind does not exist.
        """
        items = _items(self.get(path, **query))
        if not isinstance(items, list):
            raise UnreachableError(NO_API)
        return [item for item in items if isinstance(item, dict)]

    def lists(
        self, paths: Mapping[str, str], at_once: int, namespace: str | None = None
    ) -> tuple[Lists, dict[str, RefusedError]]:
        """Objects by kind, and by kind the error of each list that was refused.

        A kind that does not exist counts as refused, with AbsentError, and so does an incomplete
        list. Each kind is in one of the two mappings, in the order of `paths`.

        Args:
            paths: The path of each kind's list. `{}` in it stands for `namespaces/NAMESPACE/`, or
                for nothing without `namespace`.
            at_once: How many lists are requested at the same time.
            namespace: The only namespace to read.

        Raises:
            UnreachableError: The server does not answer, or it answers 401: that refuses all kinds.
        """
        scope = f"namespaces/{namespace}/" if namespace else ""
        objects: Lists = {}
        refused: dict[str, RefusedError] = {}
        with ThreadPoolExecutor(max_workers=at_once) as pool:
            answers = {
                kind: pool.submit(self.get, path.format(scope)) for kind, path in paths.items()
            }
        for kind, answer in answers.items():
            try:
                objects[kind] = _items(answer.result())
            except RefusedError as error:
                if error.status == HTTPStatus.UNAUTHORIZED:
                    raise UnreachableError("it does not accept the credentials (401)") from None
                refused[kind] = error
        return objects, refused

    def post(self, path: str, body: Object, **query: str) -> Object:
        """Create an object, and return it. Writes are sent once, also to a busy server."""
        return _parsed(self._ask("POST", path, query, body), self._limits())

    def patch(self, path: str, body: object, kind: str = MERGE_PATCH, **query: str) -> None:
        """Patch an object; `kind` is the media type of the patch. An apply creates it if absent."""
        self._ask("PATCH", path, query, body, kind)

    def delete(self, path: str, **query: str) -> bool:
        """Delete an object without waiting until it is gone. Returns whether it existed."""
        with suppress(AbsentError):
            self._ask("DELETE", path, query)
            return True
        return False

    def close(self) -> None:
        """Close the connections."""
        self._connection.client.close()

    def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object = None,
        media_type: str = JSON,
        limits: AnswerLimits | None = None,
    ) -> bytes:
        """Send one request, and return the body of the answer.

        Raises UnreachableError, RefusedError.
        """
        limits = limits or self._limits()
        seconds = limits.seconds_left()
        timeouts = (min(self.connect_seconds, seconds), seconds)

        def send() -> bytes:
            response = self._connection.send(method, path, query, body, media_type, timeouts)
            return _content(response, limits)

        # In a thread: the client's timeouts apply to each chunk, so a server that sends one every
        # few seconds would never time out.
        answer = _in_thread(send)
        try:
            return answer.result(seconds + _GRACE_SECONDS)
        except TimeoutError:
            raise UnreachableError(TOO_LATE) from None
        except _NETWORK_ERRORS as error:
            raise UnreachableError(words_of_network(error)) from None

    def _limits(self) -> AnswerLimits:
        """The limits of all requests together, else new ones for one request."""
        return self._answer_limits or AnswerLimits(self._seconds, self._most_bytes)


def _in_thread(work: Callable[[], bytes]) -> Future[bytes]:
    """Start `work` in a thread that does not keep the process alive.

    The Future gets its result, or its exception.
    """
    outcome = Future[bytes]()

    def run() -> None:
        try:
            outcome.set_result(work())
        except Exception as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome


def _content(response: BaseHTTPResponse, limits: AnswerLimits) -> bytes:
    """The body of an answer.

    Raises UnreachableError beyond the limits, RefusedError for a status other than 2xx, and errors
    of the network. Compressed data was not requested, and is not decompressed: it could expand to
    gigabytes.
    """
    body = bytearray()
    try:
        while chunk := response.read1(_CHUNK_BYTES, decode_content=False):
            body += chunk
            limits.take(chunk)
    except UnreachableError:
        response.close()
        raise
    response.release_conn()
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise _refusal(response, bytes(body))
    return bytes(body)


def _refusal(response: BaseHTTPResponse, body: bytes) -> RefusedError:
    """The error for a status: AbsentError for 404, BusyError for 429, RefusedError for others."""
    reason = response.reason or ""
    if response.status == HTTPStatus.NOT_FOUND:
        return AbsentError(response.status, reason, body)
    if response.status == HTTPStatus.TOO_MANY_REQUESTS:
        return BusyError(reason, body, response.headers.get("Retry-After", ""))
    return RefusedError(response.status, reason, body)


def _items(answer: Object) -> object:
    """The `items` of a list, of whatever type; [] without any.

    Raises RefusedError, with the status 206, if the list is incomplete.
    """
    if get(answer, "metadata", "continue"):
        status = HTTPStatus.PARTIAL_CONTENT
        raise RefusedError(status, status.phrase)
    return answer.get("items") or []


def _parsed(data: bytes, limits: AnswerLimits) -> Object:
    """An answer as JSON without control characters; {} for JSON that is no mapping.

    Raises UnreachableError if it is no JSON, or exceeds the limits.
    """
    try:
        text = data.decode()
        content = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise UnreachableError(NO_API) from None
    if not isinstance(content, dict):
        return {}
    require_shallow(content)
    limits.take_objects(content.get("items"))
    return json_without_controls(content) if may_have_controls(text) else content


def _refuse_constant(word: str) -> None:
    """Refuse NaN and Infinity, which Python's parser accepts and Kubernetes never writes."""
    raise ValueError(word)
