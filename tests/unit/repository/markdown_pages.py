"""The repository's Markdown: its code blocks, its inline commands, its links and headings."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kai_fleet_cli.stack_file.reading import ROOT

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
# What begins a command; a word alone, such as `kubectl`, is none.
PROGRAMS = (
    *(".venv/bin/python", "cd", "cp", "curl", "docker", "eval", "fleet", "git", "go", "helm"),
    *("kind", "kubectl", "make", "minikube", "pulumi", "python", "sudo"),
)


@dataclass(frozen=True)
class Found:
    """A piece of a page, with where it is."""

    page: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


# Written from the commands' own help, in which usage is not a command to type.
_GENERATED = "docs/commands.md"


def pages() -> list[Path]:
    """Every Markdown file that people write, but those that tests compare with."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return [
        ROOT / name
        for name in sorted(listed)
        if not name.startswith("tests/") and name != _GENERATED
    ]


def blocks(language: str) -> list[Found]:
    """The fenced blocks of a language."""
    return [
        Found(_name(page), _line(text, match.start()) + 1, match.group(2))
        for page, text in _texts()
        for match in _FENCE.finditer(text)
        if match.group(1) == language
    ]


def commands() -> list[Found]:
    """Every command: the lines of console blocks, and inline code that begins with a program."""
    found = []
    for block in blocks("console"):
        joined = block.text.replace("\\\n", " ")
        found += [
            Found(block.page, block.line + number, line)
            for number, line in enumerate(joined.splitlines())
            if line.strip()
        ]
    for page, text in _texts():
        if page.name == "CHANGELOG.md":
            continue  # it names commands that are gone
        without = _FENCE.sub(lambda match: "\n" * match.group(0).count("\n"), text)
        for match in _INLINE.finditer(without):
            first, _, rest = match.group(1).partition(" ")
            if first in PROGRAMS and rest:
                found.append(Found(_name(page), _line(without, match.start()), match.group(1)))
    return found


def links() -> Iterator[tuple[Found, Path, str]]:
    """Every link into the repository: where, the file, and the heading or ""."""
    for page, text in _texts():
        without = _FENCE.sub(lambda match: "\n" * match.group(0).count("\n"), text)
        for match in _LINK.finditer(without):
            target, _, heading = match.group(1).partition("#")
            if "://" not in match.group(1) and not target.startswith("mailto:"):
                path = (page.parent / target).resolve() if target else page
                where = Found(_name(page), _line(without, match.start()), match.group(1))
                yield where, path, heading


def headings(page: Path) -> set[str]:
    """The names under which a page's headings can be linked."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    plain = [re.sub(r"[^\w\- ]", "", found.lower()) for found in _HEADING.findall(text)]
    return {name.strip().replace(" ", "-") for name in plain}


def _texts() -> list[tuple[Path, str]]:
    return [(page, page.read_text(encoding="utf-8")) for page in pages()]


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
