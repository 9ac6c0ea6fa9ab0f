"""`fleet releases --upstream`, against a registry on this machine that answers as ghcr.io does."""

import json
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler

import pytest
from typer.testing import CliRunner

from kai_fleet.releases import KAI, VCLUSTER
from kai_fleet_cli.__main__ import app
from kai_fleet_cli.commands import releases as newer
from tests.unit import http_server

NAME = "kai-scheduler/kai-scheduler"
PAGES = [["v0.9.20", "v0.16.8", "v0.20.1"], ["v0.16.9", "v0.16.10", "v0.18.0-rc.1"], ["latest"]]


class Registry(BaseHTTPRequestHandler):
    """A page at a time, to whoever brings the token that it hands out to anybody."""

    pages = PAGES
    mood = "well"

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        asked = dict(urllib.parse.parse_qsl(url.query))
        here = f"http://127.0.0.1:{self.server.server_port}"
        if self.mood == "slow":
            time.sleep(2)
        if self.mood == "ill":
            return self.answer(503, {})
        if self.mood == "garbage":
            return self.wfile.write(b"no HTTP at all\r\n")
        if self.mood == "no registry":
            return self.answer(200, "<html>", raw=True)
        if url.path == "/token":
            fine = asked == {"service": "here", "scope": f"repository:{NAME}:pull"}
            return self.answer(200 if fine else 401, {"token": "t"} if fine else {})
        if self.mood == "private" or self.headers.get("Authorization") != "Bearer t":
            scope = f'service="here",scope="repository:{NAME}:pull"'
            return self.answer(
                401, {}, {"WWW-Authenticate": f'Bearer realm="{here}/token",{scope}'}
            )
        assert url.path == f"/v2/{NAME}/tags/list"
        page = int(asked.get("last", 0))
        more = {}
        if page + 1 < len(self.pages):
            more["Link"] = f'</v2/{NAME}/tags/list?last={page + 1}&n=3>; rel="next"'
        return self.answer(200, {"name": NAME, "tags": self.pages[page]}, more)

    def answer(self, status, document, headers=None, raw=False):
        content = (document if raw else json.dumps(document)).encode()
        self.send_response(status)
        for key, value in {**(headers or {}), "Content-Length": len(content)}.items():
            self.send_header(key, str(value))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def reference(monkeypatch):
    handler = type("Handler", (Registry,), {})
    with http_server.listening(handler) as server:
        found = f"oci://127.0.0.1:{server.server_port}/{NAME}"
        monkeypatch.setattr(newer, "HOMES", {"KAI": found})
        monkeypatch.setattr(handler, "reference", found, raising=False)
        yield handler


def releases(*options):
    ran = CliRunner().invoke(app, ["releases", "--upstream", *options])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def test_newer_patches_are_told_once_for_each_line(reference):
    assert "KAI upstream: newer than what is known here: v0.16.10" in releases().splitlines()
    (found,) = json.loads(releases("--json"))["upstream"]
    assert found == {"project": "KAI", "newer": ["v0.16.10"], "silent": ""}


def test_every_page_is_read_with_the_token_that_the_registry_names(reference):
    assert newer.tags(reference.reference) == [tag for page in PAGES for tag in page]


def test_what_is_known_here_is_nothing_newer(reference):
    reference.pages = [[*KAI, "v0.20.1"]]
    assert "KAI upstream: nothing newer than what is known here" in releases().splitlines()


@pytest.mark.parametrize(
    ("mood", "said"),
    [
        ("ill", "answers 503 Service Unavailable"),
        ("no registry", "answers with something that is no JSON"),
        ("garbage", "answers with something that is no HTTP"),
        ("private", "gives its tags to nobody without an account"),
        ("slow", "cannot be reached (timed out)"),
    ],
)
def test_a_registry_that_does_not_say_is_one_sentence_and_no_error(
    reference, monkeypatch, mood, said
):
    monkeypatch.setattr(newer, "SECONDS", 0.5)
    reference.mood = mood
    (line,) = (line for line in releases().splitlines() if "upstream" in line)
    assert line.startswith("KAI upstream: 127.0.0.1:")
    assert line.endswith(said)


def test_a_registry_that_is_not_there_is_one_sentence_and_no_error(monkeypatch):
    monkeypatch.setattr(newer, "HOMES", {"KAI": "oci://127.0.0.1:9/a/b"})
    assert "KAI upstream: 127.0.0.1:9 cannot be reached (" in releases()


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        (["v0.7.99", "v0.11.3", "v0.6.1"], ["v0.7.99"]),
        (["v0.17.1", "v0.17.2", "v0.18.1", "v1.0.0"], ["v0.17.2", "v0.18.1", "v1.0.0"]),
        (["v0.19.0-rc.1", "0.19.0-alpine", "main", "v0.18", "sha256-ab.sig"], []),
    ],
)
def test_a_newer_version_is_a_final_one_of_a_known_line_or_of_a_newer_line(tags, found):
    assert newer.newer(tags, KAI) == found


def test_images_have_versions_without_a_v():
    assert newer.newer(["0.37.0", "0.37.2", "0.38.0-rc.1", "0.38.0"], VCLUSTER) == [
        "v0.37.2",
        "v0.38.0",
    ]
