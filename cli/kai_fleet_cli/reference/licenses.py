"""The packages' licences, and what is known against them.

Part of `make check`: `python -m kai_fleet_cli.reference.licenses`. Without a network the second
half says that it was not looked at.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Final

from kai_fleet_cli.stack_file.reading import ROOT

# May be used and passed on with Apache-2.0 code; MPL-2.0 asks for its own files' changes only.
ALLOWED: Final = (
    "Apache-2.0",
    "Apache 2.0",
    "Apache Software License",
    "MIT",
    "BSD",
    "ISC",
    "MPL-2.0",
    "Mozilla Public License 2.0",
    "PSF-2.0",
    "Python Software Foundation",
)
_REFUSED: Final = re.compile(r"\b[AL]?GPL|GNU|Commercial|Proprietary|SSPL|BUSL", re.IGNORECASE)
_UNREACHED: Final = re.compile(
    r"error sending request|dns error|client error \(Connect\)|timed out|Connection refused"
)


def locked(lock: Path) -> list[str]:
    """The names of the packages that the lock file pins, without the project itself."""
    packages = tomllib.loads(lock.read_text())["package"]
    return [package["name"] for package in packages if "registry" in package["source"]]


def licence(about: Mapping[str, str], classifiers: Iterable[str]) -> str:
    """What a package says of its licence, in the newest way in which it says it."""
    words = [item for item in classifiers if item.startswith("License :: OSI")]
    given = about.get("License-Expression") or about.get("License") or ""
    first = given.strip().splitlines()[0] if given.strip() else ""
    return first or "; ".join(words)


def refused(text: str) -> bool:
    """Whether a licence is not one that this project may depend on; an unknown one is not."""
    alternatives = re.split(r"\s+OR\s+", text)
    return not any(
        any(words in each for words in ALLOWED) and not _REFUSED.search(each)
        for each in alternatives
    )


def licences(names: Iterable[str]) -> list[str]:
    """What is wrong, a line each; packages for other platforms are not here to be asked."""
    wrong = []
    for name in names:
        try:
            about = metadata(name)
        except PackageNotFoundError:
            continue
        plain = {key: about[key] for key in ("License", "License-Expression") if key in about}
        found = licence(plain, about.get_all("Classifier") or [])
        if refused(found):
            wrong.append(
                f"{name}: its licence is {found or 'not given'}, which is none of those allowed in"
                " cli/kai_fleet_cli/reference/licenses.py; use another package"
            )
    return wrong


def audit(uv: Path, service: str | None = None) -> tuple[bool, str]:
    """Whether nothing is known against the locked packages, and a sentence or uv's report.

    A service that cannot be reached is no failure: the sentence says that nobody looked.
    """
    command = [str(uv), "audit", "--frozen", "--no-progress"]
    command += ["--service-url", service] if service else []
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return True, "no vulnerability is known in the locked packages"
    if _UNREACHED.search(ran.stderr):
        return True, "vulnerabilities were not looked up: the service (osv.dev) cannot be reached"
    report = "\n".join(part for part in (ran.stdout.strip(), ran.stderr.strip()) if part)
    return False, f"{report}\nraise the versions above: .venv/bin/uv lock --upgrade-package <name>"


def main() -> int:
    """Print what was found; 1 where something is wrong."""
    names = locked(ROOT / "uv.lock")
    wrong = licences(names)
    for line in wrong:
        print(f"error: {line}")
    if not wrong:
        print(f"licences of {len(names)} packages: fine")
    fine, said = audit(ROOT / ".venv" / "bin" / "uv")
    print(said if fine else f"error: {said}")
    return 0 if fine and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
