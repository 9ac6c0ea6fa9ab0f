"""The table of tools: complete, and consistent with the Go modules and the SDKs."""

import importlib.metadata
import re

import pytest

from sandbox.tools import go_builds
from sandbox.tools.table import (
    BUNDLES,
    COMMAND_PROVIDER,
    KUBERNETES_PROVIDER,
)


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda bundle: bundle.title)
def test_a_release_can_be_verified_and_holds_every_tool(bundle):
    release = bundle.release
    assert set(bundle.tools) <= set(release.members)
    assert "linux/amd64" in release.sums or release.published.startswith("https://")
    for platform, checksum in release.sums.items():
        assert re.fullmatch(r"(linux|darwin)/(amd64|arm64)", platform)
        assert re.fullmatch(r"[0-9a-f]{64}|[0-9a-f]{128}", checksum)
        assert "{" not in release.address(platform)
        assert not any(
            "{" in release.filled(member, platform) for member in release.members.values()
        )
    assert len(set(release.sums.values())) == len(release.sums), "a sum was pasted twice"


@pytest.mark.parametrize("bundle", [b for b in BUNDLES if b.builds], ids=lambda b: b.title)
def test_go_builds_make_the_version_that_the_table_says(bundle):
    first, *_ = bundle.builds
    text = (go_builds.GO_MODULES / first.module / "go.mod").read_text()
    version = first.module_version or bundle.version
    assert re.search(rf"^require \S+ v{re.escape(version)}$", text, re.MULTILINE)
    for recipe in bundle.builds:
        text = (go_builds.GO_MODULES / recipe.module / "go.mod").read_text()
        desired = re.search(r"^go (\S+)", text, re.MULTILINE)[1].removesuffix(".0")
        assert recipe.go == tuple(map(int, desired.split(".")))


@pytest.mark.parametrize(
    ("name", "package"),
    [(KUBERNETES_PROVIDER, "pulumi-kubernetes"), (COMMAND_PROVIDER, "pulumi-command")],
)
def test_a_provider_has_the_version_of_its_sdk(name, package):
    bundle = next(bundle for bundle in BUNDLES if name in bundle.tools)
    assert bundle.release.version == importlib.metadata.version(package)
