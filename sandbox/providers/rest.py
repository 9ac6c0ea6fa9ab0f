"""The Kubernetes API over HTTPS, no more than an apply needs."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlencode

import urllib3

from provider.plugin import PluginError

from . import kubeconfig

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"

# A refused or reset connection is retried this long: an API server that restarts
# (a vCluster after its upgrade) refuses connections for about a second.
_RECONNECT_SECONDS = 15.0


class ApiError(PluginError):
    """The API server refused a request; the text is the server's own."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason

    @property
    def missing(self) -> bool:
        """Whether the object, or something that it needs, is not there."""
        return self.code == 404

    @property
    def from_webhook_down(self) -> bool:
        """Whether an admission webhook could not be called, as just after its install."""
        return "failed calling webhook" in str(self) or "failed to call webhook" in str(self)


class UnreachableError(PluginError):
    """The cluster does not answer."""


class Cluster:
    """One cluster's API server, as one user. Safe for many threads."""

    def __init__(self, target: kubeconfig.Target) -> None:
        self.target = target
        self._seen = threading.local()
        self._headers = {"User-Agent": "kai-fleet-sandbox"}
        self._pool = self._open()

    def _open(self) -> urllib3.PoolManager:
        user, cluster = self.target.user, self.target.cluster
        if user.get("exec") or user.get("auth-provider"):
            raise PluginError(
                f"the kubeconfig's user of context {self.target.context!r} gets its credentials "
                "from a helper program, which the sandbox's stand-in provider does not run: "
                "put the official plugin pulumi-resource-kubernetes on PATH"
            )
        token = user.get("token") or (self.target.file(user, "tokenFile") or b"").decode().strip()
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        elif "username" in user:
            pair = f"{user['username']}:{user.get('password', '')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        named = cluster.get("tls-server-name")
        names = {"server_hostname": named, "assert_hostname": named} if named else {}
        return urllib3.PoolManager(maxsize=16, retries=False, ssl_context=self._tls(), **names)

    def _tls(self) -> ssl.SSLContext:
        user, cluster = self.target.user, self.target.cluster
        authority = self.target.file(cluster, "certificate-authority")
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate = self.target.file(user, "client-certificate")
        key = self.target.file(user, "client-key")
        if certificate and key:
            # ssl loads a certificate only from files.
            with ExitStack() as files:
                paths = [
                    str(files.enter_context(kubeconfig.written(data)))
                    for data in (certificate, key)
                ]
                context.load_cert_chain(paths[0], paths[1])
        return context

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        patient: bool = True,
        accept: str = "application/json",
        **parameters: str | None,
    ) -> dict[str, Any]:
        """The server's answer. `patient` outlasts an API server that is just restarting."""
        query = urlencode({key: value for key, value in parameters.items() if value is not None})
        url = f"{self.target.server.rstrip('/')}{path}{'?' + query if query else ''}"
        headers = {**self._headers, "Accept": accept}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = content_type
        response = self._send(method, url, data, headers, patient)
        answer = _document(response.data)
        if response.status >= 400:
            raise ApiError(
                response.status,
                str(answer.get("reason", "")),
                str(answer.get("message") or f"HTTP {response.status} from {method} {path}"),
            )
        self._keep_warnings(response)
        return answer

    def _send(
        self, method: str, url: str, data: bytes | None, headers: dict[str, str], patient: bool
    ) -> urllib3.BaseHTTPResponse:
        deadline = time.monotonic() + (_RECONNECT_SECONDS if patient else 0.0)
        pause = 0.25
        while True:
            try:
                response = self._pool.request(
                    method,
                    url,
                    body=data,
                    headers=headers,
                    timeout=urllib3.Timeout(connect=5.0 if patient else 3.0, read=60.0),
                )
            except urllib3.exceptions.HTTPError as error:
                # A write that broke off mid-way may have been done, so only a connection
                # that never stood is tried again; a read always may be.
                never_stood = isinstance(error, urllib3.exceptions.NewConnectionError)
                if time.monotonic() < deadline and (never_stood or method == "GET"):
                    time.sleep(pause)
                    pause = min(pause * 2, 2.0)
                    continue
                raise UnreachableError(
                    f"the Kubernetes API server at {self.target.server} (context "
                    f"{self.target.context!r}) is unreachable: {_cause(error)}"
                ) from None
            if response.status == 429 and time.monotonic() < deadline:
                time.sleep(pause)
                continue
            return response

    def _keep_warnings(self, response: urllib3.BaseHTTPResponse) -> None:
        for header in response.headers.getlist("Warning"):
            # 299 - "text"
            _, _, text = header.partition('"')
            if text:
                kept = getattr(self._seen, "warnings", [])
                self._seen.warnings = [*kept, text.rstrip('"').replace('\\"', '"')]

    def take_warnings(self) -> list[str]:
        """The server's warnings to this thread since its last call, each once."""
        taken = list(dict.fromkeys(getattr(self._seen, "warnings", [])))
        self._seen.warnings = []
        return taken


def _document(data: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(data) if data else {}
    except ValueError:
        return {"message": data.decode(errors="replace").strip()}
    return answer if isinstance(answer, dict) else {}


def _cause(error: BaseException) -> str:
    if isinstance(error, urllib3.exceptions.MaxRetryError) and error.reason is not None:
        error = error.reason
    text = str(error)
    # urllib3 begins with the repr of the connection.
    return text.partition(": ")[2] or text if text.startswith("<") else text
