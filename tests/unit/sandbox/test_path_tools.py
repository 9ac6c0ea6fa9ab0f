"""A tool on PATH is asked for its version once, and again when it is another."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.tools import path_tools
from sandbox.tools.table import PathCheck

CHECK = PathCheck((3, 0), (4,), ("--version",))


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """What tools answer from now on; the answers that were not asked for stay in the list."""

    def give(*given: str) -> list[str]:
        left = list(given)
        monkeypatch.setattr(path_tools, "ask_version", lambda *_: left.pop(0))
        return left

    return give


def known(folder: Path, tool: Path) -> str:
    return path_tools.known(folder, tool, CHECK)


def test_a_new_one_and_one_behind_the_same_link_are_asked(tmp_path: Path, answers: Any) -> None:
    old, new, link = tmp_path / "old", tmp_path / "new", tmp_path / "helm"
    old.write_text("one")
    new.write_text("another")
    link.symlink_to(old)
    answers("3.1.0", "3.2.0", "3.3.0")
    assert known(tmp_path, link) == "3.1.0"
    link.unlink()
    link.symlink_to(new)
    assert known(tmp_path, link) == "3.2.0"
    os.utime(new, (1, 1))
    assert known(tmp_path, link) == "3.3.0"
    assert known(tmp_path, old) == "3.1.0"


def test_no_answer_is_asked_again(tmp_path: Path, answers: Any) -> None:
    tool = tmp_path / "helm"
    tool.write_text("one")
    answers("", "3.1.0", "")
    assert known(tmp_path, tool) == ""
    assert known(tmp_path, tool) == "3.1.0"
    assert known(tmp_path, tool) == "3.1.0"
    assert known(tmp_path, tmp_path / "gone") == ""
