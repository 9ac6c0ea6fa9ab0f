"""Acquiring tools: what is accepted, what is refused, what a person is told."""

import dataclasses
import fcntl
import hashlib
import http.server
import importlib.metadata
import os
import re
import stat
import subprocess
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from sandbox import go_builds, lifecycle, plugin_folder, release_downloads, tools
from sandbox.tool_specs import Bundle, Release
from sandbox.tool_table import (
    BUNDLES,
    COMMAND_PROVIDER,
    KUBERNETES_PROVIDER,
    LANGUAGE_HOST,
    ON_PATH,
    POLICY_LAUNCHER,
)

KWOK = next(bundle for bundle in BUNDLES if bundle.tools == ("kwok",))


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with an empty cache, nothing but the basics on PATH, and no publisher in reach."""
    monkeypatch.setenv("KAI_FLEET_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KAI_FLEET_RELEASES", "off")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    monkeypatch.setenv("PATH", str(bin_folder))
    for name in ("sh", "mkdir", "echo", "cat", "sleep"):
        (bin_folder / name).symlink_to(f"/bin/{name}")
    return tmp_path


def script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def go(machine: Path, *, version="go1.26.1", toolchain="local", build="exit 1") -> Path:
    return script(
        machine / "bin/go",
        f'[ "$1" = env ] && {{ echo {version}; echo {toolchain}; exit 0; }}',
        'out=; take=; for a do [ -n "$take" ] && out=$a; take=; [ "$a" = -o ] && take=1; done',
        build,
    )


def silent(_: str) -> None:
    pass


# The table


def test_every_tool_comes_from_one_bundle_and_is_checked_on_path():
    bundled = [name for bundle in BUNDLES for name in bundle.tools]
    assert sorted(bundled) == sorted(ON_PATH)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: bundle.title)
def test_a_release_can_be_verified_and_holds_every_tool(bundle):
    release = bundle.release
    assert set(bundle.tools) <= set(release.members)
    assert release.offers("linux/amd64")
    for platform, checksum in release.sums.items():
        assert re.fullmatch(r"(linux|darwin)/(amd64|arm64)", platform)
        assert re.fullmatch(r"[0-9a-f]{64}|[0-9a-f]{128}", checksum)
        assert "{" not in release.address(platform)
        assert not any("{" in path for path in release.archive_members(platform).values())
    assert len(set(release.sums.values())) == len(release.sums), "a sum was pasted twice"
    for platform in release.published_for:
        assert release.checksums_address(platform).startswith("https://")


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: bundle.title)
def test_the_versions_of_the_table_will_do(bundle):
    for name in bundle.tools:
        check = ON_PATH[name]
        for version in {bundle.version, bundle.release.version}:
            numbers = tuple(map(int, version.split(".")))
            assert check.companion or check.accepts(numbers), f"{name} {version}"


@pytest.mark.parametrize("bundle", [b for b in BUNDLES if b.builds], ids=lambda b: b.title)
def test_go_builds_make_the_version_that_the_table_says(bundle):
    first, *_ = bundle.builds
    text = (go_builds.GO_MODULES / first.module / "go.mod").read_text()
    assert re.search(rf"^require \S+ v{re.escape(bundle.version)}$", text, re.MULTILINE)
    for recipe in bundle.builds:
        text = (go_builds.GO_MODULES / recipe.module / "go.mod").read_text()
        wanted = re.search(r"^go (\d+)\.(\d+)", text, re.MULTILINE)
        assert recipe.go == (int(wanted[1]), int(wanted[2]))
        required = re.search(r"^require (\S+) ", text, re.MULTILINE)[1]
        assert all(package.startswith(required) for package in recipe.binaries.values())


@pytest.mark.parametrize(
    ("name", "package"),
    [(KUBERNETES_PROVIDER, "pulumi-kubernetes"), (COMMAND_PROVIDER, "pulumi-command")],
)
def test_a_provider_has_the_version_of_its_sdk(name, package):
    bundle = next(bundle for bundle in BUNDLES if name in bundle.tools)
    assert bundle.version == importlib.metadata.version(package)


# PATH


@pytest.mark.parametrize(
    ("name", "answer", "version"),
    [
        ("kubectl", "Client Version: v1.34.9\\nKustomize Version: v5.7.1", "1.34.9"),
        ("kube-apiserver", "Kubernetes v1.34.0", "1.34.0"),
        ("etcd", "etcd Version: 3.6.7\\nGo Version: go1.24.7", "3.6.7"),
        ("helm", "v3.18.4+gd80839c", "3.18.4"),
        ("pulumi", "v3.272.0", "3.272.0"),
    ],
)
def test_a_tool_on_path_is_used_when_its_version_will_do(machine, name, answer, version):
    path = script(machine / "bin" / name, f"printf '{answer}\\n'")
    tool = tools.ensure([name], silent)[name]
    assert (tool.origin, tool.version, tool.path) == ("path", version, path)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("kubectl", "Client Version: v1.32.4"),
        ("etcd", "etcd Version: 3.5.1"),
        ("helm", "v4.0.1"),
        ("pulumi", "v3.189.0"),
        ("kwok", "something else altogether"),
    ],
)
def test_a_tool_on_path_in_another_version_is_named_and_not_used(machine, name, answer):
    path = script(machine / "bin" / name, f"echo '{answer}'")
    said = []
    with pytest.raises(tools.ToolError):  # there is no Go to build one with
        tools.ensure([name], said.append)
    assert any(str(path) in line and "is needed" in line for line in said)


def test_a_tool_of_the_cache_that_is_on_path_is_not_taken_for_an_installed_one(machine):
    go(machine, build='echo "echo kwok v0.8.0" > "$out/kwok"')
    built = tools.ensure(["kwok"], silent)["kwok"]
    (machine / "bin/kwok").symlink_to(built.path)
    assert tools.ensure(["kwok"], silent)["kwok"] == built


def test_companions_are_taken_from_where_the_installed_cli_is(machine):
    script(machine / "opt/pulumi", "echo v3.272.0")
    (machine / "bin/pulumi").symlink_to(machine / "opt/pulumi")
    beside = {name: script(machine / "opt" / name) for name in (LANGUAGE_HOST, POLICY_LAUNCHER)}
    found = tools.ensure([LANGUAGE_HOST, POLICY_LAUNCHER], silent)
    assert {name: tool.path for name, tool in found.items()} == beside
    assert {tool.origin for tool in found.values()} == {"path"}


# Official releases


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

    handler = partial(Quiet, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

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

    yield publish
    server.shutdown()
    server.server_close()


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


# Builds


def test_without_go_the_message_says_what_to_install(machine):
    with pytest.raises(tools.ToolError, match=r"no Go toolchain on PATH\. Install Go 1\.26 or"):
        tools.ensure(["kwok"], silent)


def test_a_go_that_is_too_old_is_named_with_what_is_needed(machine):
    path = go(machine, version="go1.22.5")
    with pytest.raises(tools.ToolError) as refusal:
        tools.ensure(["kwok"], silent)
    text = str(refusal.value)
    assert str(path) in text and "go1.22.5" in text and "Install Go 1.26" in text


def test_a_go_that_may_fetch_its_successor_is_not_too_old(machine):
    go(machine, version="go1.22.5", toolchain="auto", build='echo x > "$out/kwok"')
    assert tools.ensure(["kwok"], silent)["kwok"].origin == "built"


def test_a_build_that_fails_says_why_and_where_its_output_is(machine):
    go(machine, build="echo 'go: downloading x'; echo 'go: sigs.k8s.io/kwok: 403'; exit 1")
    with pytest.raises(tools.ToolError) as failure:
        tools.ensure(["kwok"], silent)
    log = machine / "cache/logs/kwok-0.8.0.log"
    assert "go: sigs.k8s.io/kwok: 403" in str(failure.value)
    assert str(log) in str(failure.value)
    assert "downloading x" in log.read_text()
    assert not list((machine / "cache/tools").glob("kwok-*"))


def test_what_was_built_is_used_again(machine):
    path = go(machine, build='echo x > "$out/kwok"')
    built = tools.ensure(["kwok"], silent)["kwok"]
    path.unlink()
    assert tools.ensure(["kwok"], silent)["kwok"] == built
    assert built.path == machine / "cache/tools/kwok-0.8.0/kwok"


def test_a_long_build_shows_that_it_goes_on(machine, monkeypatch):
    monkeypatch.setattr(go_builds, "PROGRESS_SECONDS", 0.1)
    go(machine, build='sleep 0.5; echo x > "$out/kwok"')
    said = []
    tools.ensure(["kwok"], said.append)
    assert any("still building" in line for line in said)


def test_a_tool_that_another_process_is_getting_is_waited_for(machine):
    go(machine, build='echo x > "$out/kwok"')
    folder = machine / "cache/tools"
    folder.mkdir(parents=True)
    said = []
    with (folder / ".kwok.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def finish():
            time.sleep(0.3)
            script(folder / "kwok-0.8.0/kwok")
            fcntl.flock(other, fcntl.LOCK_UN)

        threading.Thread(target=finish).start()
        tools.ensure(["kwok"], said.append)
    assert any("another process is getting it" in line for line in said)
    assert not any("building" in line for line in said), "the other one's should be used"


# Launchers and stand-ins


def test_a_provider_that_cannot_be_had_is_stood_in_for_and_said(machine):
    found = tools.ensure([KUBERNETES_PROVIDER, COMMAND_PROVIDER], silent)
    assert {tool.origin for tool in found.values()} == {"stand-in"}
    assert all(os.access(tool.path, os.X_OK) for tool in found.values())
    assert [tool.path.name for tool in found.values()] == list(found)
    words = tools.standins(found)
    assert len(words) == 2
    assert "Pulumi's Kubernetes provider is a stand-in" in words[0]


def test_what_is_real_is_not_called_a_stand_in(machine):
    script(machine / "bin/helm", "echo v3.18.4")
    assert tools.standins(tools.ensure(["helm"], silent)) == []


def test_providers_are_linked_where_the_engine_looks_for_plugins(machine):
    script(machine / "bin/helm", "echo v3.18.4")
    found = tools.ensure(["helm", COMMAND_PROVIDER], silent)
    for _ in range(2):  # again over what is there
        assert plugin_folder.install(found, machine / "home") == [COMMAND_PROVIDER]
    plugin = found[COMMAND_PROVIDER]
    link = machine / f"home/plugins/resource-command-v{plugin.version}/{COMMAND_PROVIDER}"
    assert link.resolve() == plugin.path.resolve()
    assert len(list((machine / "home/plugins").iterdir())) == 1


def test_an_installed_tool_that_two_path_entries_reach_is_named_once(machine, monkeypatch):
    script(machine / "bin/kwok", "echo kwok v0.1.0")
    (machine / "alias").symlink_to(machine / "bin")
    monkeypatch.setenv("PATH", f"{machine}/bin:{machine}/alias")
    said = []
    with pytest.raises(tools.ToolError):
        tools.ensure(["kwok"], said.append)
    assert len([line for line in said if "is needed" in line]) == 1


def test_the_policy_launcher_runs_the_packs_own_environment(machine):
    script(machine / "bin/pulumi", "echo v3.272.0")
    launcher = tools.ensure([POLICY_LAUNCHER], silent)[POLICY_LAUNCHER].path
    script(machine / "venv/bin/python", 'echo "$@"')
    done = subprocess.run(
        [launcher, "127.0.0.1:99", ".", f"-virtualenv={machine}/venv", "-toolchain=pip"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "-u -m pulumi.policy 127.0.0.1:99 .\n"


def test_a_name_that_is_no_tool_is_refused(machine):
    with pytest.raises(tools.ToolError, match="no such tool: kubeadm; there are etcd"):
        tools.ensure(["kubeadm"], silent)


def test_a_cache_that_cannot_be_written_says_what_to_set(machine, monkeypatch):
    (machine / "file").write_text("")
    monkeypatch.setenv("KAI_FLEET_CACHE", str(machine / "file"))
    with pytest.raises(tools.ToolError, match="set KAI_FLEET_CACHE"):
        tools.ensure(["kwok"], silent)


def test_bundles_of_one_folder_put_everything_beside_the_first_tool():
    bundle = Bundle("T", "1.0", ("a", "b"), one_folder=True)
    assert bundle.folder("b", "1.0") == bundle.folder("a", "1.0") == "a-1.0"


def test_a_tool_that_is_found_by_its_own_link_keeps_it(tmp_path):
    folder, installed = tmp_path / "bin", tmp_path / "opt" / "pulumi"
    folder.mkdir()
    (folder / "pulumi").symlink_to(installed)
    (folder / "helm").symlink_to(installed)
    lifecycle._link_tools(folder, {"pulumi": folder / "pulumi", "kwok": installed})
    links = {entry.name: entry.readlink() for entry in folder.iterdir()}
    assert links == {"pulumi": installed, "kwok": installed}
