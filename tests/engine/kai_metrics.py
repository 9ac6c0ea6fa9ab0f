"""A stand-in for the metrics of a KAI: real names and labels of its version, numbers of ours."""

import contextlib
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from tests.unit.components.monitoring.kai_metric_names import kai_metrics

PORT = 8080  # of the metrics of every KAI
# By queue: GPUs allocated, guaranteed, and what KAI would give it of what it asks for.
Queues = Mapping[str, tuple[float, float, float]]
_AMOUNTS = ("kai_queue_allocated_gpus", "kai_queue_deserved_gpus", "kai_queue_fair_share_gpu")


def exposed(version: str, component: str, queues: Queues) -> str:
    """What the component's `/metrics` says, as Prometheus reads it; each metric of that version."""
    lines = []
    for name, metric in kai_metrics(version).items():
        if metric.component != component or metric.type == "histogram":
            continue
        lines.append(f"# TYPE {name} {metric.type}")
        if "queue_name" not in metric.labels:
            labels = ",".join(f'{label}="x"' for label in metric.labels)
            lines.append(f"{name}{{{labels}}} 1")
            continue
        at = _AMOUNTS.index(name) if name in _AMOUNTS else None
        for queue, amounts in queues.items():
            values = {"queue_name": queue, "queue_metadata_name": queue, "queue_display_name": ""}
            labels = ",".join(f'{label}="{values[label]}"' for label in metric.labels)
            lines.append(f"{name}{{{labels}}} {1 if at is None else amounts[at]}")
    return "\n".join(lines) + "\n"


def _server(address: str, text: str) -> ThreadingHTTPServer:
    """It has a text at `/metrics` of one of this machine's own addresses."""

    class Metrics(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = text.encode() if self.path == "/metrics" else b""
            self.send_response(200 if content else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer((address, PORT), Metrics)
    Thread(target=server.serve_forever, daemon=True).start()
    return server


@contextlib.contextmanager
def every(texts: Mapping[str, str]) -> Iterator[None]:
    """Serve each text at its address."""
    servers = [_server(*each) for each in texts.items()]
    try:
        yield
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
