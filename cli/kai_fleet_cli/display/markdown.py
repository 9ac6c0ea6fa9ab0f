"""Markdown as GitHub and GitLab show it: tables, code spans, a list of problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#~@"})


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are Markdown already, `text` and `code` make them."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def text(words: str) -> str:
    """Words that mean nothing to Markdown, on one line; nobody is mentioned by them."""
    return " ".join(words.split()).translate(_SPECIAL)


def code(value: str) -> str:
    """A code span of one line, also in a table's cell."""
    line = " ".join(value.split()).replace("|", "\\|")
    if not line:
        return ""
    fence = "`"
    while fence in line:
        fence += "`"
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}"


def problems(found: Iterable[Mapping[str, str]]) -> str:
    """A plan's problems as a list, those that stop a preview first."""
    ordered = sorted(found, key=lambda problem: problem["level"] != "mandatory")
    return "\n".join(_problem(problem) for problem in ordered)


def _problem(problem: Mapping[str, str]) -> str:
    word = "**refused**" if problem["level"] == "mandatory" else "warning"
    place = code(problem["path"] or problem["subject"])
    said = text(f"{problem['subject']}: {problem['message']}")
    return f"- {word} {code(problem['rule'])} {place}<br>{said}"
