"""What is known against the locked packages: `python -m kai_fleet_cli.reference.audit`.

By `uv audit`; a part of `make check`, which must not fail where there is no network.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from kai_fleet_cli.stack_file.reading import ROOT

_UNREACHED: Final = re.compile(
    r"error sending request|dns error|client error \(Connect\)|timed out|Connection refused"
)


def audit(uv: Path, service: str | None = None) -> tuple[bool, str]:
    """Whether nothing is known against the locked packages, and a sentence or uv's report.

    A service that cannot be reached is no failure: the sentence says that nothing was looked up.
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


if __name__ == "__main__":
    fine, sentence = audit(ROOT / ".venv" / "bin" / "uv")
    print(sentence if fine else f"error: {sentence}")
    sys.exit(0 if fine else 1)
