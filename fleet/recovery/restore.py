"""Putting back the last good state of a stack whose state file is broken."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fleet.environment import NotPossible
from fleet.recovery import file_backend, locks


@dataclass(frozen=True)
class Restored:
    """What was put back, and where the broken file is kept."""

    source: Path
    resources: int
    broken: Path


def restore(stack: str, environment: Mapping[str, str]) -> Restored:
    """Put the newest readable copy of the stack's state in the place of the broken one.

    The engine keeps the version before the last beside it (`.bak`), one per update in the history,
    and backups. Only on a file backend; raises NotPossible with what to do on another one, where
    the state is well, where an update runs, and where no copy can be read.
    """
    file = _file(stack, environment)
    holder = locks.holder(stack, environment)
    if holder is not None and holder.alive is not False:
        raise NotPossible(
            f"stack {stack} is in use by {holder}. Wait for it; if it was killed, run:"
            f" .venv/bin/python -m fleet cancel --stack {stack}"
        )
    if _resources(file) is not None:
        raise NotPossible(f"the state of stack {stack} can be read ({file}); nothing is put back")
    tried = file_backend.older(stack, environment)
    for copy in tried:
        resources = _resources(copy)
        if resources is not None:
            broken = file.with_name(f"{file.name}.broken-{time.strftime('%Y%m%d-%H%M%S')}")
            if file.exists():
                file.replace(broken)
            new = file.with_name(f"{file.name}.new")
            new.write_bytes(copy.read_bytes())
            new.chmod(0o600)
            new.replace(file)
            return Restored(copy, resources, broken)
    where = ", ".join(str(copy) for copy in tried) or f"beside {file}"
    raise NotPossible(
        f"no copy of the state of stack {stack} can be read (looked at: {where}). Take one from"
        f" your own backups: pulumi stack import --stack {stack} --file <backup>"
    )


def _file(stack: str, environment: Mapping[str, str]) -> Path:
    file = file_backend.state_file(stack, environment)
    if file is not None:
        return file
    raise NotPossible(
        f"the state of stack {stack} is not in files of this machine"
        f" ({file_backend.address(environment) or 'your pulumi login'}). Take a version from there:"
        f" pulumi stack history --stack {stack}, pulumi stack export --stack {stack} --version"
        f" <number> --file good.json, pulumi stack import --stack {stack} --file good.json"
    )


def _resources(file: Path) -> int | None:
    """How many resources a readable state has; None for what is none."""
    latest = file_backend.read(file)
    return None if latest is None else len(latest.get("resources") or [])
