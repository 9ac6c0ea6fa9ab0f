"""Official releases: downloaded once, and only what is verified."""

import dataclasses
import hashlib
import http.server
import io
import subprocess
import tarfile
import threading
from functools import partial

import pytest

from sandbox.tools import release_downloads, toolbox
from sandbox.tools.table import BUNDLES, Release
from tests.unit.components.cluster import http_server
from tests.unit.sandbox.tool_scripts import go, silent

KWOK = next(bundle for bundle in BUNDLES if bundle.first == "kwok")
BUILDS_KWOK = 'echo "echo kwok v0.8.0" > "$out"'


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def online(machine, monkeypatch):
    """A machine that reaches publishers; returns the folder of one of them."""
    monkeypatch.setenv("KAI_FLEET_RELEASES", "on")
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(release_downloads, "_unreachable", {})
    folder = machine / "published"
    folder.mkdir()
    return folder


@pytest.fixture
def publisher(online, monkeypatch):
    """A publisher on this machine; returns a function that publishes a file as KWOK's release."""
    folder = online

    def publish(content: bytes, checksum: str | None = None, published: str | None = None):
        (folder / "kwok").write_bytes(content)
        here = release_downloads.this_platform()
        address = f"http://127.0.0.1:{server.server_port}/"
        pinned = checksum or hashlib.sha256(content).hexdigest()
        release = Release("0.8.0", f"{address}kwok", {"kwok": ""}, sums={here: pinned})
        if published is not None:
            (folder / "sums.txt").write_text(published)
            release = dataclasses.replace(release, sums={}, published=f"{address}sums.txt")
        bundle = dataclasses.replace(KWOK, release=release)
        monkeypatch.setattr(toolbox, "BUNDLES", (bundle,))
        return server

    with http_server.listening(partial(Quiet, directory=str(folder))) as server:
        yield publish


def test_a_release_is_verified_and_kept(publisher):
    server = publisher(b"#!/bin/sh\necho kwok v0.8.0\n")
    tool = toolbox.ensure(["kwok"], silent)["kwok"]
    assert tool.origin == "release"
    assert subprocess.run([tool.path], capture_output=True, text=True).stdout == "kwok v0.8.0\n"
    server.shutdown()
    server.server_close()
    assert toolbox.ensure(["kwok"], silent)["kwok"] == tool, "it should come from the cache"


def test_a_release_that_is_not_what_was_pinned_is_refused(machine, publisher):
    publisher(b"tampered", checksum="ab" * 32)
    with pytest.raises(toolbox.ToolError) as refusal:
        toolbox.ensure(["kwok"], silent)
    text = str(refusal.value)
    assert "ab" * 32 in text and hashlib.sha256(b"tampered").hexdigest() in text
    assert "KAI_FLEET_RELEASES=off" in text
    assert not list((machine / "cache/tools").glob("kwok-*"))


def test_without_a_pinned_sum_the_publishers_own_counts(publisher):
    content = b"#!/bin/sh\necho kwok v0.8.0\n"
    publisher(content, published=f"{hashlib.sha256(content).hexdigest()}  kwok\n")
    assert toolbox.ensure(["kwok"], silent)["kwok"].origin == "release"


def test_a_release_without_any_sum_is_not_downloaded(machine, publisher):
    publisher(b"#!/bin/sh\n", published=f"{'0' * 64}  another-file\n")
    reported = []
    with pytest.raises(toolbox.ToolError, match="Install Go"):
        toolbox.ensure(["kwok"], reported.append)
    assert any("has no checksum of kwok" in line for line in reported)
    assert not any("downloading" in line for line in reported)


def test_a_publisher_that_cannot_be_reached_is_tried_once(machine, publisher, monkeypatch):
    publisher(b"").server_close()  # nobody listens any more
    release = toolbox.BUNDLES[0].release
    with pytest.raises(release_downloads.NoRelease, match="cannot be reached"):
        release_downloads.fetch("KWOK", release, machine, silent, threading.Event())
    monkeypatch.setattr("requests.get", None)  # a second try would fail on it
    with pytest.raises(release_downloads.NoRelease, match="cannot be reached"):
        release_downloads.fetch("KWOK", release, machine, silent, threading.Event())


def archive(files):
    """A .tar.gz of executables."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(text), 0o755
            tar.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def with_members(monkeypatch, **members):
    bundle = toolbox.BUNDLES[0]
    release = dataclasses.replace(bundle.release, members=members)
    monkeypatch.setattr(toolbox, "BUNDLES", (dataclasses.replace(bundle, release=release),))


def test_a_tool_comes_out_of_its_archive(publisher, monkeypatch):
    publisher(archive({"README.md": "Read me.", "kwok/kwok": "#!/bin/sh\necho kwok v0.8.0\n"}))
    with_members(monkeypatch, kwok="kwok/kwok")
    tool = toolbox.ensure(["kwok"], silent)["kwok"]
    assert (tool.origin, tool.version) == ("release", "0.8.0")


@pytest.mark.parametrize(
    ("content", "member", "reason"),
    [
        (archive({"kwok/other": "x"}), "kwok/kwok", "holds no file kwok/kwok"),
        (archive({"kwok/kwok": "x"})[:-60], "kwok/kwok", "cannot be unpacked"),
        (b"<html>Sign in to the network</html>", "kwok/kwok", "cannot be unpacked"),
        (b"#!/bin/sh\nexit 1\n", "", "its kwok does not run here"),
        (b"#!/bin/sh\necho kwok v0.1.0\n", "", "its kwok says that it is 0.1.0"),
    ],
    ids=["other members", "cut short", "a page", "does not run", "another version"],
)
def test_a_release_that_does_not_fit_gives_way_to_the_next_source(
    machine, publisher, monkeypatch, content, member, reason
):
    publisher(content)
    with_members(monkeypatch, extra=member, kwok=member)
    go(machine, build=BUILDS_KWOK)
    reported = []
    tool = toolbox.ensure(["kwok"], reported.append)["kwok"]
    assert tool.origin == "built"
    assert len([line for line in reported if "no official release" in line and reason in line]) == 1
    assert {path.name for path in tool.path.parent.iterdir()} == {"kwok", "origin"}
