"""An API server of canned answers, and a kubeconfig for it."""

import contextlib
import json
import time
from http.server import BaseHTTPRequestHandler
from typing import Any

import yaml

from tests.unit.components.cluster import http_server


class Api(BaseHTTPRequestHandler):
    """An API server of canned answers that notes what it is asked."""

    answers: dict[str, tuple[int, object]] = {}
    otherwise: tuple[int, object] = (404, {})
    asked: list[tuple[str, str]] = []
    bodies: list[dict[str, Any]] = []  # of what was to be made or changed
    headers_seen: list[Any] = []
    delay = 0.0
    retry_after = ""

    def do_GET(self):
        self._answer("GET")

    def do_POST(self):
        self._answer("POST")

    def do_PATCH(self):
        self._answer("PATCH")

    def do_DELETE(self):
        self._answer("DELETE")

    def _answer(self, verb):
        path = self.path.partition("?")[0]
        type(self).asked.append((verb, self.path))
        type(self).headers_seen.append(self.headers)
        time.sleep(self.delay)
        status, body = self.answers.get(path, self.otherwise)
        if verb in ("POST", "PATCH"):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.bodies.append(body)
            # A path with `#name` is the answer for one object of a collection.
            name = body["metadata"].get("name") if verb == "POST" else "patch"
            status, body = self.answers.get(f"{path}#{name}", (201, body))
        if callable(body):
            body = body(self.path)
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        if status == 429 and self.retry_after:
            self.send_header("Retry-After", self.retry_after)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(text)

    def log_message(self, *_):
        """Nothing on the terminal."""


@contextlib.contextmanager
def serving(tls=None):
    """A server, as the class whose answers are to be set, and its address."""

    class Own(Api):
        answers: dict[str, tuple[int, object]] = {"/version": (200, {"major": "1"})}
        asked: list[tuple[str, str]] = []
        bodies: list[dict[str, Any]] = []
        headers_seen: list[Any] = []

    with http_server.listening(Own, tls) as server:
        yield Own, f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"


def kubeconfig(url, token="secret-token", user=None, **cluster):
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "lab",
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}}],
            "clusters": [{"name": "lab", "cluster": {"server": url, **cluster}}],
            "users": [{"name": "me", "user": user or {"token": token}}],
        }
    )
