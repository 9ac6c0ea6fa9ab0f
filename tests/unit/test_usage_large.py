"""A large fleet: 100 teams, 1,000 queues, 5,000 pods, asked once each and at once."""

from __future__ import annotations

import contextlib
import json
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler

import pytest

from kai_fleet.cli.doctor import gather
from kai_fleet.cli.stack_file import reading
from kai_fleet.cli.usage.query import usage_of
from kai_fleet.kube.api import Api
from tests.unit import canned_api, doctor_samples, http_server
from tests.unit.test_usage_now import pod, queue

TEAMS, QUEUES, PODS = 100, 10, 50
PATHS = {name: path for name, path, _ in gather._KINDS}


class Many(BaseHTTPRequestHandler):
    """Many API servers at one address, each below its cluster's name."""

    protocol_version = "HTTP/1.1"
    answers: dict[str, bytes] = {}
    asked: Counter[str] = Counter()

    def do_GET(self):
        path = self.path.partition("?")[0]
        self.asked[path] += 1
        content = self.answers.get(path, b"")
        self.send_response(200 if content else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):
            self.wfile.write(content)

    def log_message(self, *_):
        """Nothing on the terminal."""


def of_cluster(cluster, **kinds):
    """Its answers, as bytes by path."""
    found = {f"/{cluster}/version": b"{}"}
    for kind, items in kinds.items():
        found[f"/{cluster}{PATHS[kind]}"] = json.dumps({"items": items}).encode()
    return found


@pytest.fixture
def many(tmp_path, monkeypatch):
    """The address, and the teams of a stack whose file lies there."""
    names = [f"t{n:03d}" for n in range(TEAMS)]
    leaves = [f"q{n}" for n in range(QUEUES - 1)]
    answers, on_host = {}, []
    for name in names:
        pods = [pod(f"p{n}", leaves[n % len(leaves)]) for n in range(PODS)]
        pods[0]["spec"].pop("nodeName")
        on_host += [
            {**it, "metadata": {**it["metadata"], "namespace": f"team-{name}"}} for it in pods
        ]
        answers |= of_cluster(
            name,
            nodes=[doctor_samples.node("n")],
            queues=[queue("top", gpu=60), *(queue(leaf, "top", 5) for leaf in leaves)],
            pods=pods,
        )
    answers |= of_cluster("host", pods=on_host, nodes=[doctor_samples.node("n")])
    tree = {"top": {"children": {leaf: {"gpu": 5} for leaf in leaves}}}
    teams = {
        name: {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": name},
            "gpus": 60,
            "queues": tree,
        }
        for name in names
    }
    config = {"kai-fleet:cluster": {"name": "lab", "context": "lab"}, "kai-fleet:teams": teams}
    (tmp_path / "Pulumi.lab.yaml").write_text(json.dumps({"config": config}))

    class Own(Many):
        pass

    Own.answers, Own.asked = answers, Counter()
    with http_server.listening(Own) as server:
        url = f"http://127.0.0.1:{server.server_port}"

        def host(cls, file, context, **limits):
            return cls.of_kubeconfig(canned_api.kubeconfig(f"{url}/host"), **limits)

        def way(reader, seen, team):
            return gather._Way(canned_api.kubeconfig(f"{url}/{team.name}"))

        monkeypatch.setattr(reading, "ROOT", tmp_path)
        monkeypatch.setattr(Api, "of_context", classmethod(host))
        monkeypatch.setattr(gather, "_way_in", way)
        yield Own, url


def bare(url, answers):
    """Only to open every tenth cluster and fetch the same, one after the other; times ten."""
    begun = time.process_time()
    for cluster in sorted({path.split("/")[1] for path in answers})[::10]:
        api = Api.of_kubeconfig(canned_api.kubeconfig(f"{url}/{cluster}"))
        for path in answers:
            if path.startswith(f"/{cluster}/"):
                api.get(path.removeprefix(f"/{cluster}"))
        api.close()
    return 10 * (time.process_time() - begun)


def test_it_costs_little_more_than_to_read_what_the_clusters_answer(many):
    server, url = many
    usage_of("lab", team="t000")  # what is imported once is not counted
    reads = bare(url, server.answers)
    server.asked.clear()
    heard = []
    begun = time.process_time()
    found = usage_of("lab", heard=lambda done, of: heard.append((done, of)))
    took = time.process_time() - begun
    assert set(server.asked.values()) == {1}
    assert sum(len(team.queues) for team in found.teams) == TEAMS * (QUEUES - 1)
    assert sum(team.shares.used for team in found.teams) == TEAMS * (PODS - 1)
    assert len(found.waits) == 10
    assert heard[-1] == (TEAMS + 1, TEAMS + 1)
    assert len(heard) == TEAMS + 1
    assert took < 2.5 * reads, f"{took:.1f} s of a processor, and {reads:.1f} s to read alone"
