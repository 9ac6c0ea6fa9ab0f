"""A real Prometheus for a test, on a free port, ended with it."""

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
import yaml

from sandbox.tools import toolbox


def tool(name: str) -> Path:
    """Prometheus or promtool, as the sandbox's tool table has them."""
    return toolbox.ensure([name], print)[name].path


@dataclass
class Prometheus:
    """Where one answers."""

    url: str

    def ask(self, path: str, **query: str) -> Any:
        """The `data` of an answer of its API."""
        answer = urllib3.request("GET", f"{self.url}/api/v1/{path}", fields=query, timeout=10)
        content = json.loads(answer.data)
        assert content["status"] == "success", content
        return content["data"]

    def values(self, expr: str) -> dict[frozenset[tuple[str, str]], float]:
        """An expression's samples of now, by their labels."""
        found = self.ask("query", query=expr)["result"]
        return {
            frozenset((k, v) for k, v in item["metric"].items() if k != "__name__"): float(
                item["value"][1]
            )
            for item in found
        }

    def until(self, expr: str, count: int, seconds: float = 30) -> dict[Any, float]:
        """The samples of an expression once there are so many."""
        ends = time.monotonic() + seconds
        while len(found := self.values(expr)) != count:
            assert time.monotonic() < ends, f"{expr} has {found}, and not {count} samples"
            time.sleep(0.5)
        return found


@contextlib.contextmanager
def running(folder: Path, config: dict[str, Any], *more: str) -> Iterator[Prometheus]:
    """One with this configuration, and the data that is in the folder already."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    file, log = folder / "prometheus.yml", folder / "prometheus.log"
    file.write_text(yaml.safe_dump(config))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                tool("prometheus"),
                f"--config.file={file}",
                f"--storage.tsdb.path={folder / 'data'}",
                "--storage.tsdb.retention.time=10y",
                f"--web.listen-address=127.0.0.1:{port}",
                *more,
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        ends = time.monotonic() + 60
        while not _ready(url):
            assert process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < ends, log.read_text()[-2000:]
            time.sleep(0.2)
        yield Prometheus(url)
    finally:
        process.terminate()
        process.wait(20)


def _ready(url: str) -> bool:
    try:
        return urllib3.request("GET", f"{url}/-/ready", timeout=2, retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False
