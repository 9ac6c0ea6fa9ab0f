"""A tool on PATH is asked for its version once, and again when it is another."""

import os
from pathlib import Path

from sandbox.tools.known_versions import known


class Asked:
    """A tool's answers, counted."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.times = list(answers), 0

    def __call__(self) -> str:
        self.times += 1
        return self.answers.pop(0)


def test_it_is_asked_once(tmp_path: Path) -> None:
    tool = tmp_path / "helm"
    tool.write_text("one")
    asked = Asked("3.1.0")
    assert [known(tmp_path, tool, asked) for _ in range(3)] == ["3.1.0"] * 3
    assert asked.times == 1


def test_a_new_one_and_one_behind_the_same_link_are_asked(tmp_path: Path) -> None:
    old, new, link = tmp_path / "old", tmp_path / "new", tmp_path / "helm"
    old.write_text("one")
    new.write_text("another")
    link.symlink_to(old)
    asked = Asked("3.1.0", "3.2.0", "3.3.0")
    assert known(tmp_path, link, asked) == "3.1.0"
    link.unlink()
    link.symlink_to(new)
    assert known(tmp_path, link, asked) == "3.2.0"
    os.utime(new, (1, 1))
    assert known(tmp_path, link, asked) == "3.3.0"
    assert known(tmp_path, old, asked) == "3.1.0"


def test_no_answer_and_a_broken_record_are_asked_again(tmp_path: Path) -> None:
    tool = tmp_path / "helm"
    tool.write_text("one")
    asked = Asked("", "3.1.0", "3.1.0")
    assert known(tmp_path, tool, asked) == ""
    assert known(tmp_path, tool, asked) == "3.1.0"
    (tmp_path / "versions.json").write_text("[")
    assert known(tmp_path, tool, asked) == "3.1.0"
    assert known(tmp_path, tmp_path / "gone", Asked("")) == ""
