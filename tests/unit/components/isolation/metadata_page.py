"""The tables of docs/metadata.md."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[4] / "docs" / "metadata.md"


def rows() -> dict[str, dict[str, str]]:
    """What a team's accounts write, by kind and field."""
    table = PAGE.read_text().split("\n\n")[2]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {line[0]: dict(zip(lines[0][1:], line[1:], strict=True)) for line in lines[2:]}


def listed() -> set[str]:
    """Keys and domains that pass."""
    section = PAGE.read_text().partition("## Listed")[2]
    table = re.findall(r"^\| (?!---|written)(.+)$", section, re.M)
    found = {key for line in table for key in re.findall(r"`([^`]+)`", line)}
    of_kubernetes = {
        key for key in found if f"`{key}`" in section.partition("the keys ")[2].split("|")[0]
    }
    return (found - of_kubernetes - {"kubernetes.io"}) | {
        f"kubernetes.io/{k}" for k in of_kubernetes
    }
