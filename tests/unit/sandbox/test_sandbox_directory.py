"""The sandbox's directory: what it is taken for, and who may change it."""

import stat
import threading
import time
from pathlib import Path

import pytest

from sandbox import directory, lifecycle
from sandbox.directory import SandboxError


def test_a_directory_of_something_else_is_neither_used_nor_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    monkeypatch.setenv("KAI_FLEET_SANDBOX", str(tmp_path))
    with pytest.raises(SandboxError, match="KAI_FLEET_SANDBOX"):
        directory.create(tmp_path)
    with pytest.raises(SandboxError, match=str(tmp_path)):
        lifecycle.down(print)
    assert (tmp_path / "thesis.tex").exists()


def test_only_its_owner_may_enter(tmp_path: Path) -> None:
    directory.create(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_down_without_a_sandbox_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAI_FLEET_SANDBOX", str(tmp_path / "none"))
    lifecycle.down(print)
    assert lifecycle.find() is None
    assert not (tmp_path / "none").exists()


def test_down_of_one_that_never_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAI_FLEET_SANDBOX", str(tmp_path / "half"))
    directory.create(tmp_path / "half")
    lifecycle.down(print)
    assert not (tmp_path / "half").exists()


def test_a_damaged_memory_is_none(tmp_path: Path) -> None:
    (tmp_path / "sandbox.json").write_text('{"base_port":')
    assert directory.read_state(tmp_path) is None


def test_of_two_at_once_one_waits(tmp_path: Path) -> None:
    where = tmp_path / "sandbox"
    order: list[str] = []
    reported: list[str] = []

    def second() -> None:
        with directory.locked(where, reported.append):
            order.append("second")
            assert where.exists()  # made anew after the first one removed it

    with directory.locked(where, print):
        thread = threading.Thread(target=second)
        thread.start()
        while not reported:  # that it waits
            time.sleep(0.01)
        order.append("first")
        directory.remove(where)
    thread.join(10)
    assert order == ["first", "second"]
    assert "waiting" in reported[0]
