"""A chart registry on this machine, which can be made to fail in the ways that registries do."""

import hashlib
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

Mood = Literal["well", "error", "slow", "another"]
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.cncf.helm.config.v1+json"
CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


class Registry:
    """Serves one packaged chart by the OCI protocol; `mood` is how it does so."""

    def __init__(self, chart: Path, certificate: Path, key: Path) -> None:
        self.mood: Mood = "well"
        self.asked: list[str] = []
        content = chart.read_bytes()
        config = json.dumps({"name": "kai-scheduler", "version": "v0.9.3"}).encode()
        self.blobs = {_digest(content): content, _digest(config): config}
        self.manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": _descriptor(CONFIG, config),
                "layers": [_descriptor(CHART, content)],
            }
        ).encode()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                registry.answer(self)

            def do_HEAD(self) -> None:
                self.do_GET()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def chart(self) -> str:
        """The chart's reference."""
        return f"oci://127.0.0.1:{self._server.server_address[1]}/charts/kai-scheduler"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request, in this mood."""
        kind, content = "application/json", b"{}"
        if self.mood == "error":
            return _send(handler, 500, kind, b'{"errors":[{"code":"UNKNOWN"}]}')
        if self.mood == "slow":
            time.sleep(1.0)
        *_, what, which = handler.path.split("/") if handler.path != "/v2/" else ("", "", "")
        if what == "manifests":
            kind, content = MANIFEST, self.manifest
        elif what == "blobs":
            kind, content = "application/octet-stream", self.blobs[which]
            if self.mood == "another" and len(content) > 1000:
                content = content[:-1] + bytes([content[-1] ^ 1])
        elif what == "tags" or which.startswith("list"):
            content = json.dumps({"name": "charts/kai-scheduler", "tags": ["v0.9.3"]}).encode()
        return _send(handler, 200, kind, content)


def _send(handler: BaseHTTPRequestHandler, status: int, kind: str, content: bytes) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(content)))
    if kind == MANIFEST:
        handler.send_header("Docker-Content-Digest", _digest(content))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(content)


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}
