"""What a tenant's own API server can do to whoever asks it: little, and not for long."""

import gzip
import json
import time

import pytest

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import RefusedError, UnreachableError
from tests.unit.components.cluster.canned_api import kubeconfig, serving
from tests.unit.components.cluster.raw_server import answering, drip

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture
def server():
    with serving() as both:
        yield both


@pytest.fixture
def raw():
    """A server that answers each connection as a function does; its address."""
    with answering() as serve:
        yield serve


SLOW = {
    "its head": lambda found: drip(found, b"X"),
    "its headers": lambda found: (found.sendall(HEAD), drip(found, b"X: y\r\n")),
    "its body": lambda found: (
        found.sendall(HEAD + b"Content-Length: 100000\r\n\r\n"),
        drip(found, b" "),
    ),
    "one chunk": lambda found: (
        found.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n"),
        drip(found, b" "),
    ),
}


@pytest.mark.parametrize("what", SLOW)
@pytest.mark.parametrize("limits", [{"seconds": 0.3}, {"total_seconds": 0.3}], ids=["one", "all"])
def test_an_answer_that_never_ends_is_given_up_in_time(raw, what, limits):
    url = raw(SLOW[what])
    begun = time.monotonic()
    with pytest.raises(UnreachableError, match=r"does not answer in time|timed out"):
        Api.of_kubeconfig(kubeconfig(url), **limits).get("/version")
    assert time.monotonic() - begun < 2


def flood(found, head=b"Connection: close\r\n\r\n"):
    found.sendall(HEAD + head)
    while True:
        found.sendall(b" " * 65536)


ENDLESS = {
    "a body": flood,
    "a body of that length": lambda item: flood(item, b"Content-Length: 9999999999\r\n\r\n"),
    "a chunk": lambda item: flood(item, b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n"),
    "an error": lambda item: (item.sendall(b"HTTP/1.1 500 No\r\n"), flood(item)),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_of_gigabytes_is_given_up(raw, what):
    url = raw(ENDLESS[what])
    with pytest.raises(UnreachableError, match="it answers more than 1 MiB"):
        Api.of_kubeconfig(kubeconfig(url), most_bytes=1 << 20).get("/version")


@pytest.mark.parametrize(
    ("body", "header"),
    [
        (gzip.compress(b" " * (64 << 20)), b"Content-Encoding: gzip\r\n"),
        (b"[" * 500_000, b""),
    ],
    ids=["a little that unpacks to gigabytes", "JSON that is too deep"],
)
def test_what_would_take_memory_to_read_is_not_read(raw, body, header):
    length = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
    url = raw(lambda found: found.sendall(HEAD + header + length + body))
    with pytest.raises(UnreachableError, match="what answers there is no Kubernetes API"):
        Api.of_kubeconfig(kubeconfig(url)).get("/version")


@pytest.mark.parametrize("status", [301, 307, 304])
def test_nobody_is_sent_elsewhere(raw, server, status):
    api, url = server
    head = f"HTTP/1.1 {status} Away\r\nLocation: {url}/secret\r\nContent-Length: 2\r\n\r\n".encode()
    here = raw(lambda found: found.sendall(head + b"{}"))
    with pytest.raises(RefusedError, match=f"{status} Away"):
        Api.of_kubeconfig(kubeconfig(here)).get("/version")
    assert api.asked == []


def test_what_is_read_moves_no_cursor(server):
    api, url = server
    message = "a\x1b[2Jb\x9b1mc\u202ed\r\u200be\tf\ng"
    api.answers["/api/v1/events"] = (200, {"items": [{"message": message, "\x1bk": [message]}]})
    (event,) = Api.of_kubeconfig(kubeconfig(url)).list("/api/v1/events")
    assert event == {"message": "a[2Jb1mcde\tf\ng", "k": ["a[2Jb1mcde\tf\ng"]}


def test_a_refusal_in_a_tenants_words_is_one_plain_line(raw):
    body = json.dumps({"message": "no\x1b[2J\nerror: fake " + "x" * 9000}).encode()
    head = b"HTTP/1.1 403 No\x1b[31m\r\nContent-Length: %d\r\n\r\n" % len(body)
    url = raw(lambda found: found.sendall(head + body))
    with pytest.raises(RefusedError) as why:
        Api.of_kubeconfig(kubeconfig(url)).get("/version")
    assert str(why.value) == "403 No[31m"
    assert why.value.message.startswith("no[2J error: fake xxx")
    assert len(why.value.message) == 2000


MANY = {
    "bytes": ([{"text": "x" * 300_000}], "more than 1 MiB, which is more than is read of it"),
    "mappings": ([{"mappings": [{}] * 10_000}], "more than 65536 values"),
    "lists": ([{"lists": [[]] * 10_000}], "more than 65536 values"),
    "members": ([{"members": [{"a": 1}] * 10_000}], "more than 65536 values"),
    "objects": ([{"metadata": {"name": "a"}}] * 400, "more than 1024 objects"),
}


@pytest.mark.parametrize("what", MANY)
def test_all_answers_together_are_bounded(server, what):
    """Each of these alone is within the bounds; a command that has read them holds them all."""
    api, url = server
    items, says = MANY[what]
    api.otherwise = (200, {"items": items})
    client = Api.of_kubeconfig(kubeconfig(url), total_seconds=30.0, most_bytes=1 << 20)
    assert client.list("/first")
    with pytest.raises(UnreachableError, match=says):
        client.lists({str(n): f"/{n}" for n in range(6)}, 6)
    with pytest.raises(UnreachableError, match=says):
        client.get("/again")
    client.restart_limits(30.0)
    assert client.list("/first")


def test_who_asks_again_and_again_has_the_bounds_for_each_answer(server):
    api, url = server
    api.otherwise = (200, {"items": MANY["objects"][0]})
    client = Api.of_kubeconfig(kubeconfig(url), most_bytes=1 << 20)
    assert {len(client.list("/poll")) for _ in range(5)} == {400}


def answered(raw, body, *headers):
    head = HEAD + b"".join(line + b"\r\n" for line in headers)
    length = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    return Api.of_kubeconfig(kubeconfig(raw(lambda found: found.sendall(head + length + body))))


def nested(levels, innermost=b'"x"'):
    return b'{"items": ' + b"[" * levels + innermost + b"]" * levels + b"}"


ODD = {
    "lists in lists": nested(150),
    "lists in lists, and a character that is dropped": nested(700, b'"\\u001b"'),
    "mappings in mappings": b'{"a": ' * 150 + b"1" + b"}" * 150,
    "an integer of a million digits": b'{"items": [' + b"9" * 1_000_000 + b"]}",
    "no number": b'{"items": [NaN]}',
    "an endless number": b'{"items": [-Infinity]}',
    "half a list": b'{"items": [{}',
    "no text": b'{"items": ["\xff"]}',
}


@pytest.mark.parametrize("what", ODD)
def test_what_no_kubernetes_writes_is_not_read(raw, what):
    with pytest.raises(UnreachableError, match="what answers there is no Kubernetes API"):
        answered(raw, ODD[what]).list("/api/v1/pods")


def test_an_error_is_bounded_as_an_answer_is(raw):
    head = b"HTTP/1.1 403 No\r\nConnection: close\r\n\r\n"
    body = b'{"message": [' + b"{}," * 2_000_000 + b"{}]}"
    url = raw(lambda found: found.sendall(head + body))
    with pytest.raises(UnreachableError, match="more than 1048576 values"):
        Api.of_kubeconfig(kubeconfig(url), most_bytes=16 << 20).get("/version")


@pytest.mark.parametrize(
    "length", [b"5", b"99999999999", b"-1", b"x", b"5, 6"], ids=lambda length: length.decode()
)
def test_a_wrong_length_is_no_answer_and_holds_up_nobody(raw, length):
    head = HEAD + b"Connection: close\r\nContent-Length: " + length + b"\r\n\r\n"
    url = raw(lambda found: found.sendall(head + b'{"items": [{}]'))
    begun = time.monotonic()
    with pytest.raises(UnreachableError):
        Api.of_kubeconfig(kubeconfig(url), total_seconds=1.0).get("/version")
    assert time.monotonic() - begun < 3


def go_on(found):
    while True:
        found.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


WITHOUT_END = {
    "interim answers": go_on,
    "a line of a chunk": lambda item: flood(item, b"Transfer-Encoding: chunked\r\n\r\nff;"),
    "lines behind the last chunk": lambda item: (
        item.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"),
        drip(item, b"X: y\r\n"),
    ),
    "a header": lambda item: flood(item, b"X: "),
    "headers": lambda item: (item.sendall(HEAD), [item.sendall(b"X: y\r\n") for _ in range(9999)]),
}


@pytest.mark.parametrize("what", WITHOUT_END)
def test_what_is_no_body_has_an_end_too(raw, what):
    url = raw(WITHOUT_END[what])
    begun = time.monotonic()
    with pytest.raises(UnreachableError):
        Api.of_kubeconfig(kubeconfig(url), total_seconds=1.0).get("/version")
    assert time.monotonic() - begun < 3
