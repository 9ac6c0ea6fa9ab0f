"""Official releases: downloaded once, and only what is verified."""

import dataclasses
import hashlib
import http.server
import subprocess
from functools import partial

import pytest

from sandbox import release_downloads, tools
from sandbox.tool_specs import Release
from sandbox.tool_table import BUNDLES
from tests.unit import http_server
from tests.unit.tool_scripts import silent

KWOK = next(bundle for bundle in BUNDLES if bundle.tools == ("kwok",))


@pytest.fixture
def publisher(machine, monkeypatch):
    """A publisher on this machine; returns a function that publishes a file as KWOK's release."""
    monkeypatch.setenv("KAI_FLEET_RELEASES", "on")
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(release_downloads, "_unreachable", {})
    folder = machine / "published"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    def publish(content: bytes, checksum: str | None = None, published: str | None = None):
        (folder / "kwok").write_bytes(content)
        here = release_downloads.this_platform()
        address = f"http://127.0.0.1:{server.server_port}/"
        pinned = checksum or hashlib.sha256(content).hexdigest()
        release = Release("0.8.0", f"{address}kwok", {"kwok": ""}, sums={here: pinned})
        if published is not None:
            (folder / "sums.txt").write_text(published)
            release = dataclasses.replace(
                release, sums={}, published=f"{address}sums.txt", published_for=(here,)
            )
        bundle = dataclasses.replace(KWOK, release=release)
        monkeypatch.setattr(tools, "BUNDLES", (bundle,))
        return server

    with http_server.listening(partial(Quiet, directory=str(folder))) as server:
        yield publish


def test_a_release_is_verified_and_kept(publisher):
    server = publisher(b"#!/bin/sh\necho kwok v0.8.0\n")
    tool = tools.ensure(["kwok"], silent)["kwok"]
    assert tool.origin == "release"
    assert subprocess.run([tool.path], capture_output=True, text=True).stdout == "kwok v0.8.0\n"
    server.shutdown()
    server.server_close()
    assert tools.ensure(["kwok"], silent)["kwok"] == tool, "it should come from the cache"


def test_a_release_that_is_not_what_was_pinned_is_refused(machine, publisher):
    publisher(b"tampered", checksum="ab" * 32)
    with pytest.raises(tools.ToolError) as refusal:
        tools.ensure(["kwok"], silent)
    text = str(refusal.value)
    assert "ab" * 32 in text and hashlib.sha256(b"tampered").hexdigest() in text
    assert "KAI_FLEET_RELEASES=off" in text
    assert not list((machine / "cache/tools").glob("kwok-*"))


def test_without_a_pinned_sum_the_publishers_own_counts(publisher):
    content = b"#!/bin/sh\n"
    publisher(content, published=f"{hashlib.sha256(content).hexdigest()}  kwok\n")
    assert tools.ensure(["kwok"], silent)["kwok"].origin == "release"


def test_a_release_without_any_sum_is_not_downloaded(machine, publisher):
    publisher(b"#!/bin/sh\n", published=f"{'0' * 64}  another-file\n")
    said = []
    with pytest.raises(tools.ToolError, match="Install Go"):
        tools.ensure(["kwok"], said.append)
    assert any("has no checksum of kwok" in line for line in said)
    assert not any("downloading" in line for line in said)


def test_a_publisher_that_cannot_be_reached_is_tried_once(machine, publisher, monkeypatch):
    publisher(b"").server_close()  # nobody listens any more
    release = tools.BUNDLES[0].release
    with pytest.raises(release_downloads.Unreachable, match="cannot be reached"):
        release_downloads.fetch("KWOK", release, machine, silent)
    monkeypatch.setattr(release_downloads, "_PatientHandler", None)  # a second try would fail on it
    with pytest.raises(release_downloads.Unreachable, match="cannot be reached"):
        release_downloads.fetch("KWOK", release, machine, silent)
