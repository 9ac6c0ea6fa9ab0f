"""Errors of requests to an API server, and phrases for them."""

import json
import re
from http import HTTPStatus
from typing import Final

from kai_fleet.wording import plain

NO_API: Final = "what answers there is no Kubernetes API"
TOO_LATE: Final = "it does not answer in time"
_FROM_URLLIB3: Final = re.compile(r"^\w+\(host=.*?\): |Failed to establish a new connection: ")

_USUAL_WAIT, _SHORTEST_WAIT = 1.0, 0.2  # seconds
_DIGITS: Final = 9


class KubeError(Exception):
    """A request did not reach the cluster, or was refused."""


class UnreachableError(KubeError):
    """The API server did not answer, or not in time. Its message says why."""


class UnusableKubeconfigError(UnreachableError):
    """The kubeconfig cannot be read, or this client cannot use it."""


class RefusedError(KubeError):
    """The API server answered a request with an error.

    `status` and `reason` are HTTP's, `message` is the server's own, "" where it gives none.
    """

    def __init__(self, status: int, reason: str, body: bytes = b"") -> None:
        self.status = status
        self.reason = plain(reason, 200) or str(status)
        try:
            self.message = plain(json.loads(body)["message"])
        except (ValueError, KeyError, TypeError, RecursionError):
            self.message = ""
        super().__init__(f"{status} {self.reason}")


class AbsentError(RefusedError):
    """404: the object or the kind does not exist."""


class BusyError(RefusedError):
    """429: the server asks to be asked again in `seconds`, as it says in Retry-After."""

    def __init__(self, reason: str, body: bytes = b"", retry_after: str = "") -> None:
        super().__init__(HTTPStatus.TOO_MANY_REQUESTS, reason, body)
        # A date in place of seconds is HTTP's, too; Kubernetes writes none.
        is_number = retry_after.isascii() and retry_after.isdecimal() and len(retry_after) < _DIGITS
        self.seconds = max(float(retry_after), _SHORTEST_WAIT) if is_number else _USUAL_WAIT


def complaint(why: KubeError) -> str:
    """A phrase for messages about an API server's error."""
    if isinstance(why, RefusedError):
        return f"the API answers {why}" + (why.message and f": {why.message}")
    return f"{'' if isinstance(why, UnusableKubeconfigError) else 'the API does not answer: '}{why}"


def words_of_network(why: Exception) -> str:
    """A phrase for a network error of urllib3 or the system."""
    reason = getattr(why, "reason", None) or why
    if type(reason).__name__ == "ReadTimeoutError":
        return TOO_LATE
    is_of_tls = "certificate" in (text := short(reason)).lower()
    cause = "its certificate is not accepted" if is_of_tls else "it cannot be connected to"
    return f"{cause}: {text}"


def short(why: object) -> str:
    """The last part of a chain of messages, on one line; never a kubeconfig's content."""
    text = str(why).strip().splitlines()[0] if str(why).strip() else type(why).__name__
    return plain(_FROM_URLLIB3.sub("", text.rpartition(">: ")[2]), 200)
