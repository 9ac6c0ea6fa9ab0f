"""Programs that stand where tools are looked for."""

import stat
from pathlib import Path


def script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def go(machine: Path, *, build="exit 1") -> Path:
    return script(
        machine / "bin/go",
        'out=; take=; for a do [ -n "$take" ] && out=$a; take=; [ "$a" = -o ] && take=1; done',
        build,
        'chmod +x "$out"',
    )


def silent(_: str) -> None:
    pass
