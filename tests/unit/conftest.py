"""What several unit tests share."""

import pytest


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
