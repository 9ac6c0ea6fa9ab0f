"""`kubectl fleet` where the API server is a tenant's own: one sentence, in time."""

import gzip
import json
import time
from datetime import UTC, datetime

import pytest

from tests.unit.components.cluster.canned_api import kubeconfig
from tests.unit.components.cluster.raw_server import answering, drip
from tests.unit.kubectl.team_cluster import GPU, PATHS
from tests.unit.usage.usage_samples import node, pod, queue

COMMANDS = ("queues", "pods", "pending")
SECONDS = 20


def in_time(team, *words):
    begun = time.process_time()
    printed = team.run(*words)
    assert time.process_time() - begun < SECONDS
    return " ".join(printed.split())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["table", "json"])
def test_a_name_that_is_listed_again_and_again_counts_once(team, command, as_json):
    doubled = [queue("a", gpu=8), queue("a", "a", gpu=4), queue("train", "a"), queue("train", "a")]
    team.has("queues", doubled * 10)
    team.has("pods", [pod("w", asks={GPU: "1"})] * 10)
    found = in_time(team, command, *as_json)
    assert "error" not in found
    if command == "queues" and as_json:
        assert [item["name"] for item in json.loads(found)["queues"]] == ["a", "train"]
        assert json.loads(found)["queues"][1]["waitingPods"] == 1


def test_rings_of_queues_are_left_out(team):
    ring = [queue(f"r{n}", f"r{(n + 1) % 5000}", gpu=1) for n in range(4000)]
    team.has("queues", [queue("train", gpu=1), queue("self", "self"), *ring])
    assert [item["name"] for item in json.loads(in_time(team, "queues", "--json"))["queues"]] == [
        "train"
    ]


def chain(length):
    names = [f"q{n}" for n in range(length)]
    return [queue(name, above) for name, above in zip(names, [None, *names], strict=False)]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("queues", "says"),
    [
        (chain(4000), "queue q32 is on level 33 of the tree; at most 32 levels are shown"),
        (
            [queue(f"q{n}") for n in range(5001)],
            "the cluster has 5001 queues; at most 5000 are shown",
        ),
    ],
    ids=["deep", "many"],
)
def test_more_queues_or_levels_than_anybody_has_are_a_sentence(team, command, queues, says):
    team.has("queues", queues)
    assert in_time(team, command) == f"error: {says}"


def test_many_pods_queues_and_nodes_are_explained_in_time(team):
    team.has("queues", [queue("top"), *[queue(f"q{n}", "top") for n in range(4000)]])
    team.has("pods", [pod(f"p{n}", "top", asks={GPU: "1"}) for n in range(2000)])
    team.has("events", [])
    found = json.loads(in_time(team, "pending", "--json"))["pending"]
    assert len(found) == 2000
    assert {"q0, q1, q10" in item["fix"] for item in found} == {True}


def deep(levels):
    return b'{"items": ' + b"[" * levels + b"]" * levels + b"}"


ODD = {
    "lists in lists": deep(100_000),
    "a list that is none": b'{"items": 3}',
    "half a list": b'{"items": [{}',
    "an object without a name": b'{"items": [{}]}',
    "an object that is none": b'{"items": [[1]]}',
    "a name that is none": b'{"items": [{"metadata": {"name": {}}}]}',
    "a spec that is none": b'{"items": [{"metadata": {"name": "a"}, "spec": 7}]}',
    "a parent that is none": b'{"items": [{"metadata": {"name":"a"},"spec":{"parentQueue":[1]}}]}',
    "a quota without end": b'{"items": [{"metadata": {"name": "a"}, "spec": {"resources": {"gpu":'
    b'{"quota": ' + b"9" * 400 + b"}}}}]}",
    "no text": b'{"items": ["\xff"]}',
    "nothing": b"",
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("what", ODD)
def test_what_no_kubernetes_answers_is_a_sentence(team, what, command):
    team.handler.answers[PATHS["queues"]] = (200, ODD[what])
    found = in_time(team, command)
    assert found.startswith("error: the cluster ")
    assert "no Kubernetes" in found or "in time" in found


def test_amounts_without_end_are_read_in_time(team):
    texts = [f"1e{99_999 - n}" for n in range(500)]
    team.has("pods", [pod(text, asks={GPU: text, "memory": text}) for text in texts])
    assert "error" not in in_time(team, "queues", "--json")


@pytest.mark.parametrize("status", [301, 307])
def test_nobody_is_sent_elsewhere(team, status):
    team.handler.answers[PATHS["pods"]] = (status, {"items": []})
    assert f"it answers {status}" in in_time(team, "pods")


@pytest.fixture
def raw(team, tmp_path, monkeypatch):
    """Run a command where each connection is answered as a function does."""
    monkeypatch.setattr("kubectl_fleet.kubeconfig._TOTAL_SECONDS", 2.0)
    with answering() as serve:

        def run(answer):
            file = tmp_path / "raw"
            file.write_text(kubeconfig(serve(answer)))
            begun = time.monotonic()
            found = in_time(team, "queues", "--kubeconfig", str(file))
            assert time.monotonic() - begun < 15
            return found

        yield run


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"


def flood(found, what):
    while True:
        found.sendall(what * 4096)


def again(found):
    found.sendall(HEAD + b'\r\n{"metadata": {"continue": "x"}, "items": []}')


ENDLESS = {
    "its head": lambda found: drip(found, b"X"),
    "its headers": lambda found: (found.sendall(HEAD), drip(found, b"X: y\r\n")),
    "its body": lambda found: (found.sendall(HEAD + b"\r\n"), drip(found, b" ")),
    "its chunks": lambda found: (
        found.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n"),
        drip(found, b"1\r\n \r\n"),
    ),
    "a line of a chunk": lambda found: (
        found.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\nff;"),
        flood(found, b"x"),
    ),
    "interim answers": lambda found: flood(found, b"HTTP/1.1 100 Continue\r\n\r\n"),
    "its pages": again,
}


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_without_end_is_given_up(raw, what):
    assert raw(ENDLESS[what]).startswith("error: the cluster at http://127.0.0.1")


MUCH = {
    "empty": lambda found: (found.sendall(HEAD + b'\r\n{"items": ['), flood(found, b"{},")),
    "spaces": lambda found: (found.sendall(HEAD + b"\r\n"), flood(found, b" " * 64)),
    "an error": lambda found: (
        found.sendall(b"HTTP/1.1 500 No\r\nConnection: close\r\n\r\n"),
        flood(found, b"{},"),
    ),
}


@pytest.mark.parametrize("what", MUCH)
def test_an_answer_of_gigabytes_is_given_up(raw, what, monkeypatch):
    monkeypatch.setattr("kubectl_fleet.kubeconfig._TOTAL_SECONDS", 60.0)
    monkeypatch.setattr("kubectl_fleet.bounded.BoundedTransport.most", 1 << 20)
    assert "it answers more than 1 MiB, or 65536 values" in raw(MUCH[what])


def test_what_unpacks_to_gigabytes_is_not_unpacked(raw):
    body = gzip.compress(b" " * (64 << 20))
    packed = HEAD + b"Content-Encoding: gzip\r\n\r\n" + body
    assert "no Kubernetes API" in raw(lambda found: found.sendall(packed))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["table", "json"])
def test_no_name_writes_to_the_terminal(team, command, as_json):
    odd = "\x1b]0;title\x07\x1b[31mred"
    team.has("nodes", [node(f"n{odd}")])
    team.has("queues", [queue(f"q{odd}", gpu=8)])
    team.has("pods", [pod(f"p{odd}", f"q{odd}", f"n{odd}", asks={GPU: "1"}), pod(f"w{odd}")])
    about = {"kind": f"Odd{odd}", "name": f"x{odd}", "namespace": "default"}
    stamp = datetime.now(UTC).isoformat()
    denial = {"reason": "FailedCreate", "involvedObject": about, "lastTimestamp": stamp}
    team.has("events", [{"metadata": {"name": "e"}, **denial}])
    found = team.run(command, *as_json)
    assert "red" in found
    assert "\x1b" not in found
    assert "u001b" not in found


def test_a_name_is_no_command(team):
    about = {"kind": "Odd", "name": "x; reboot", "namespace": "default"}
    stamp = datetime.now(UTC).isoformat()
    denial = {"reason": "FailedCreate", "involvedObject": about, "lastTimestamp": stamp}
    team.has("events", [{"metadata": {"name": "e"}, **denial}])
    assert "describe odd 'x; reboot'`" in team.reported("pending", "--json")
