"""What a release needs said and checked: `release.py notes TAG`, `release.py schema TAG`."""

import json
import re
import subprocess
import sys
from pathlib import Path

from kai_fleet.package import SCHEMA_FILE, served_schema
from kai_fleet.package.breaking import broken
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


def before(tag: str, tags: list[str]) -> str | None:
    """The release before a tag; None where it is the first."""
    known = sorted(
        tuple(map(int, it[1:].split("."))) for it in tags if re.fullmatch(r"v\d+\.\d+\.\d+", it)
    )
    own = tuple(map(int, tag[1:].split(".")))
    older = [it for it in known if it < own]
    return "v" + ".".join(map(str, older[-1])) if older else None


def schema(tag: str) -> str:
    """What breaks since the release before. Raises SystemExit where the version promises none."""
    last = before(tag, _git("tag", "--list").split())
    path = SCHEMA_FILE.relative_to(ROOT).as_posix()
    if last is None or path not in _git("ls-tree", "-r", "--name-only", last).splitlines():
        return "no release before had a schema"
    found = broken(json.loads(_git("show", f"{last}:{path}")), served_schema())
    major, minor, patch = tag[1:].split(".")
    kind = "patch" if patch != "0" else "minor release" if major != "0" and minor != "0" else None
    if found and kind:
        lines = "\n".join(found)
        raise SystemExit(f"{tag} is a {kind} and breaks programs for {last}:\n{lines}")
    return "\n".join([f"beside {last}:", *(found or ["nothing breaks"])])


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    verb, name = sys.argv[1], sys.argv[2]
    if verb == "notes":
        print(notes(name, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")), end="")
    else:
        print(schema(name))
