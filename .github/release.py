"""Print the notes of a release: `release.py TAG`."""

import re
import sys
from pathlib import Path

from kai_fleet.provider import version

ROOT = Path(__file__).resolve().parent.parent


def notes(tag: str, changelog: str) -> str:
    """The section of the version in the changelog. Raises SystemExit where it is not to be had."""
    if tag != f"v{version()}":
        raise SystemExit(
            f"the tag is {tag}, and the version v{version()}: put it in pyproject.toml"
        )
    found = re.search(
        rf"^## {re.escape(version())} \(([^)\n]+)\)\n(.*?)(?=^## |\Z)", changelog, re.M | re.S
    )
    if not found:
        raise SystemExit(f"CHANGELOG.md has no section {version()}")
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", found[1]):
        raise SystemExit(f"CHANGELOG.md says {found[1]!r} where the day of {version()} belongs")
    return found[2].strip() + "\n"


if __name__ == "__main__":
    print(notes(sys.argv[1], (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")), end="")
