"""A tenant's own server in place of its vCluster's API server: it answers what the tenant likes.

Whoever may write in the team's namespace has the keys that vCluster keeps there, and says by the
Service who answers at its address.
"""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.faults.case import Case

# Of a request's method and path: status and message; SILENCE; None is what Kubernetes answers.
Answer = tuple[int, str] | str | None
SILENCE = "silence"
READS = ("GET", "HEAD")
LEFT_OUT = ("connection", "transfer-encoding", "content-length", "host", "authorization")


def hangs(method: str, path: str) -> Answer:
    return SILENCE


def fails(method: str, path: str) -> Answer:
    return 503, "the server is currently unable to handle the request"


def is_full(method: str, path: str) -> Answer:
    return None if method in READS else (500, "etcdserver: mvcc: database space exceeded")


def is_busy(method: str, path: str) -> Answer:
    """It puts off who lists KAI's own kinds, as an API server does that has just started."""
    kinds = ("/queues", "/schedulingshards", "/podgroups", "/bindrequests")
    return (429, "too many requests") if path.partition("?")[0].endswith(kinds) else None


def is_old(method: str, path: str) -> Answer:
    """It says that it is a version that Pulumi's plugin does not speak to."""
    return (
        (200, '{"major": "1", "minor": "9", "gitVersion": "v1.9.0"}')
        if "/version" in path
        else None
    )


@contextmanager
def answering(case: Case, team: str, answer: Callable[[str, str], Answer]) -> Iterator[None]:
    """The team's API answers so for a while."""
    name = f"vcluster-team-{team}.{team}-kube-apiserver"
    supervisor, server = case.part("supervisor"), case.part(name)
    command, environment = server.cmdline(), server.environ()
    (address,) = {item.partition("=")[2] for item in command if item.startswith("--bind-address=")}
    (port,) = {int(item.partition("=")[2]) for item in command if item.startswith("--secure-port=")}
    folder, elsewhere = case.inside(team).parent / "certs", _free()
    moved = [f"--secure-port={elsewhere}" if "--secure-port=" in item else item for item in command]
    supervisor.send_signal(signal.SIGSTOP)  # it would start it again
    try:
        server.kill()
        _until(lambda: not _is_open(address, port))
        with _own(moved, environment), _serving((address, port), folder, elsewhere, answer):
            _until(lambda: _is_open(address, elsewhere))
            yield
    finally:
        supervisor.send_signal(signal.SIGCONT)


@contextmanager
def _own(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    """The real API server, where only the tenant's asks it."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet) as real:
        try:
            yield
        finally:
            real.kill()


@contextmanager
def _serving(
    at: tuple[str, int], certificates: Path, real: int, answer: Callable[[str, str], Answer]
) -> Iterator[None]:
    own = _Server(at, certificates, (at[0], real), answer)
    threading.Thread(target=own.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        own.over.set()
        own.shutdown()
        own.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self,
        at: tuple[str, int],
        certificates: Path,
        real: tuple[str, int],
        answer: Callable[[str, str], Answer],
    ) -> None:
        super().__init__(at, _Handler, bind_and_activate=False)
        _until(self._is_bound)
        self.server_activate()
        self.real, self.answer, self.over = real, answer, threading.Event()
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        own.load_cert_chain(certificates / "server.crt", certificates / "server.key")
        self.socket = own.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.client.load_verify_locations(certificates / "ca.crt")
        self.client.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")

    def _is_bound(self) -> bool:
        """Whether it has the address, which a process that was killed gives up a little later."""
        with suppress(OSError):
            self.server_bind()
            return True
        return False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who asked has gone."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Nothing: every controller of the vCluster asks."""

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        reported = self.server.answer(self.command, self.path)
        if reported == SILENCE:
            self.server.over.wait()
            self.close_connection = True  # else its controllers wait for the answer forever
        elif isinstance(reported, tuple):
            self._say(*reported)
        else:
            self._forward(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815

    def _say(self, status: int, message: str) -> None:
        failure = f'{{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": {status},'
        body = (message if status == 200 else f'{failure} "message": "{message}"}}').encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self._close_after_answer()
        self.end_headers()
        self.wfile.write(body)

    def _forward(self, body: bytes) -> None:
        given = {key: item for key, item in self.headers.items() if key.lower() not in LEFT_OUT}
        real = HTTPSConnection(*self.server.real, context=self.server.client, timeout=60)
        real.request(self.command, self.path, body or None, given)
        answer = real.getresponse()
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in LEFT_OUT:
                self.send_header(key, value)
        self._close_after_answer()
        self.end_headers()
        with suppress(OSError):
            while piece := answer.read1(1 << 16):  # a watch has no end
                self.wfile.write(piece)
                self.wfile.flush()

    def _close_after_answer(self) -> None:
        """Let no client keep its connection, on which this server would answer after its end."""
        self.send_header("Connection", "close")
        self.close_connection = True


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _is_open(address: str, port: int) -> bool:
    with suppress(OSError), socket.create_connection((address, port), 1):
        return True
    return False


def _until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not true():
        assert time.monotonic() < until
        time.sleep(0.1)
