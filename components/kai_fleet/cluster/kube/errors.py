"""Errors of requests to an API server, and phrases for them."""

import json
import re
from http import HTTPStatus

from kai_fleet.wording import short_line

NO_API = "what answers there is no Kubernetes API"
TOO_LATE = "it does not answer in time"
_FROM_URLLIB3 = re.compile(r"^\w+\(host=.*?\): |Failed to establish a new connection: ")

_DEFAULT_RETRY_SECONDS = 1.0
_SHORTEST_RETRY_SECONDS = 0.2
_MOST_CHARACTERS = 200


class KubeError(Exception):
    """A request did not reach the cluster, or the cluster refused it."""


class UnreachableError(KubeError):
    """The API server did not answer, or not in time. Its message says why."""


class UnusableKubeconfigError(UnreachableError):
    """The kubeconfig cannot be read, or this client cannot use it."""


class RefusedError(KubeError):
    """The API server answered a request with an error.

    `status` and `reason` are those of HTTP; without a reason the status stands there. `message` is
    the server's own text, "" without one. Both texts are safe to show: one line without control
    characters, of at most 2000 characters.
    """

    def __init__(self, status: int, reason: str, body: bytes = b"") -> None:
        self.status = status
        self.reason = short_line(reason, _MOST_CHARACTERS) or str(status)
        try:
            self.message = short_line(json.loads(body)["message"])
        except (ValueError, KeyError, TypeError, RecursionError):
            self.message = ""
        super().__init__(f"{status} {self.reason}")


class AbsentError(RefusedError):
    """404: the object or its kind does not exist."""


class BusyError(RefusedError):
    """429: the server asks the client to repeat the request after `seconds`.

    These are the seconds in the header Retry-After, at least 0.2; 1 second for any other text. HTTP
    allows a date there, too, but Kubernetes never writes one.
    """

    def __init__(self, reason: str, body: bytes, retry_after: str) -> None:
        super().__init__(HTTPStatus.TOO_MANY_REQUESTS, reason, body)
        self.seconds = _DEFAULT_RETRY_SECONDS
        if re.fullmatch("[0-9]{1,8}", retry_after):
            self.seconds = max(float(retry_after), _SHORTEST_RETRY_SECONDS)


def complaint(why: KubeError) -> str:
    """A phrase for messages about an API server's error, which is safe to show."""
    if isinstance(why, RefusedError):
        phrase = f"the API answers {why}"
        return f"{phrase}: {why.message}" if why.message else phrase
    if isinstance(why, UnusableKubeconfigError):
        return str(why)
    return f"the API does not answer: {why}"


def words_of_network(why: Exception) -> str:
    """A phrase for a network error from the client, urllib3 or the operating system."""
    reason = getattr(why, "reason", None) or why
    if type(reason).__name__ == "ReadTimeoutError":
        return TOO_LATE
    text = short(reason)
    if "certificate" in text.lower():
        return f"its certificate is not accepted: {text}"
    return f"it cannot be connected to: {text}"


def short(why: object) -> str:
    """The innermost cause in an error's text, on one line of at most 200 characters.

    It stands in the last line, where urllib3 chains causes with ">: ". An error without a text
    becomes the name of its class. No secret is hidden: give it no error that quotes a kubeconfig.
    """
    lines = str(why).strip().splitlines()
    last_line = lines[-1] if lines else type(why).__name__
    innermost = last_line.rpartition(">: ")[2]
    return short_line(_FROM_URLLIB3.sub("", innermost), _MOST_CHARACTERS)
