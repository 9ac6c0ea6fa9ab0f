"""100 teams, 1,000 queues, 5,000 pods over HTTPS: asked for once each, and many at once."""

import base64
import contextlib
import json
import ssl
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler

import pytest
import trustme

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.kubeconfig import connection
from kai_fleet_cli.doctor import read
from kai_fleet_cli.doctor.read import READS
from kai_fleet_cli.doctor.snapshot import TeamState
from kai_fleet_cli.report import build
from kai_fleet_cli.report.page import page
from kai_fleet_cli.stack_file import reading
from tests.unit.cli.doctor import doctor_samples
from tests.unit.components.cluster import canned_api, http_server
from tests.unit.usage.usage_samples import queue

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]  # a busy machine is no reason to fail
TEAMS, QUEUES, PODS, WAIT = 100, 10, 50, 1
AT_ONCE, SECONDS = 20, 60.0
PATHS = {kind: path.format("").partition("?")[0] for kind, path in READS.items()}


class Many(BaseHTTPRequestHandler):
    """Many API servers at one address, each below its cluster's name."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answers: dict[str, bytes] = {}
    asked: Counter[str] = Counter()
    now = most = 0  # how many are being answered
    lock = threading.Lock()
    met = threading.Event()  # until then each waits for others that are asked beside it

    def do_GET(self):
        cls = type(self)
        with cls.lock:
            cls.asked[self.path] += 1
            cls.now += 1
            cls.most = max(cls.most, cls.now)
            if cls.most == AT_ONCE:
                cls.met.set()
        alone = self.path.startswith("/host/") or self.path.endswith("/version")
        if not alone and not cls.met.wait(SECONDS):
            cls.met.set()  # nobody else comes: the others do not wait for that as well
        content = self.answers.get(self.path.partition("?")[0], b"")
        self.send_response(200 if content else 404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):
            self.wfile.write(content)
        with cls.lock:
            cls.now -= 1

    def log_message(self, *_):
        """Nothing on the terminal."""


def of_cluster(cluster, **kinds):
    """Its answers, as bytes by path."""
    found = {f"/{cluster}{path}": b'{"items": []}' for path in PATHS.values()}
    found[f"/{cluster}/version"] = b"{}"
    for kind, items in kinds.items():
        found[f"/{cluster}{PATHS[kind]}"] = json.dumps({"items": items}).encode()
    return found


def moved(item, namespace):
    """A pod of a vCluster, as it is on the host."""
    return {**item, "metadata": {**item["metadata"], "namespace": namespace}}


@pytest.fixture(scope="module")
def fleet():
    """The answers of all clusters, and the stack's file."""
    names = [f"t{n:03d}" for n in range(TEAMS)]
    leaves = [f"q{n}" for n in range(QUEUES - 1)]
    answers, on_host, nodes = {}, [], []
    for name in names:
        here = doctor_samples.node(name, "64")
        here["metadata"]["labels"]["pool"] = name
        nodes.append(here)
        one = {"nvidia.com/gpu": "1"}
        pods = [
            doctor_samples.pod(f"p{n}", leaves[n % len(leaves)], name, limits=one)
            for n in range(PODS)
        ]
        for waiting in pods[:WAIT]:
            waiting["spec"].pop("nodeName")
        on_host += [moved(entry, f"team-{name}") for entry in pods]
        answers |= of_cluster(
            name,
            nodes=[here],
            queues=[queue("top", gpu=60), *(queue(leaf, "top", gpu=5) for leaf in leaves)],
            pods=pods,
        )
    answers |= of_cluster("host", pods=on_host, nodes=nodes)
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
    return answers, {"config": config}


@pytest.fixture
def many(fleet, tmp_path, monkeypatch):
    """The server that has them."""
    answers, file = fleet
    (tmp_path / "Pulumi.lab.yaml").write_text(json.dumps(file))
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    trusted = base64.b64encode(authority.cert_pem.bytes()).decode()

    class Own(Many):
        pass

    Own.answers, Own.asked, Own.met = answers, Counter(), threading.Event()
    with http_server.listening(Own, tls) as server:
        url = f"https://127.0.0.1:{server.server_port}"

        def kubeconfig(cluster):
            settings = {"certificate-authority-data": trusted}
            return canned_api.kubeconfig(f"{url}/{cluster}", **settings)

        def patient(cls, content=None, **limits):  # a busy machine is no slow cluster
            return cls(connection(content or kubeconfig("host")))

        monkeypatch.setattr(reading, "ROOT", tmp_path)
        monkeypatch.setattr(Api, "connect_seconds", 60.0)
        monkeypatch.setattr(Api, "of_kubeconfig", classmethod(patient))
        monkeypatch.setattr(
            read,
            "_access",
            lambda api, host, team: TeamState(team, kubeconfig=kubeconfig(team.name)),
        )
        yield Own


def test_a_report_asks_every_cluster_once_and_many_at_once(many):
    found = build.read_report("lab")
    assert set(many.asked.values()) == {1}
    assert len(many.asked) >= (TEAMS + 1) * (1 + len(PATHS))
    assert {path.split("/")[1] for path in many.asked} == {
        path.split("/")[1] for path in many.answers
    }
    assert many.most >= AT_ONCE
    assert found.missing == []
    assert (len(found.teams), sum(map(len, found.queues.values()))) == (100, 1000)
    assert found.figures == {"promised": 6000, "in use": 4900, "free": 1500, "waiting": 100}
    assert page(found).count('scope="row"') > 1000
