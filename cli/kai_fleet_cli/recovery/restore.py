"""The last good state of a stack whose state file is broken, for `pulumi stack import`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import file_backend, locks


@dataclass(frozen=True)
class Copy:
    """A readable copy of a stack's state, and where it was found."""

    source: Path
    deployment: Mapping[str, Any]

    @property
    def resources(self) -> int:
        """How many resources it has."""
        return len(self.deployment.get("resources") or [])


def newest(stack: str, environment: Mapping[str, str]) -> Copy:
    """The newest readable copy of a stack's state; nothing is written.

    The engine keeps the version before the last beside it (`.bak`), one per update in the history,
    and backups. Only on a file backend; raises UserError with what to do on another one, where
    the state is well, where an update runs, and where no copy can be read.
    """
    file = _file(stack, environment)
    holder = locks.holder(stack, environment)
    if holder is not None and holder.alive is not False:
        raise UserError(
            f"stack {stack} is in use by {holder}. Wait for it; if it was killed, run:"
            f" .venv/bin/fleet cancel --stack {stack}"
        )
    if file_backend.read(file) is not None:
        raise UserError(f"the state of stack {stack} can be read ({file}); nothing is put back")
    tried = file_backend.older(stack, environment)
    for copy in tried:
        deployment = file_backend.read(copy)
        if deployment is not None:
            return Copy(copy, deployment)
    where = ", ".join(str(copy) for copy in tried) or f"beside {file}"
    raise UserError(
        f"no copy of the state of stack {stack} can be read (looked at: {where}). Take one from"
        f" your own backups: pulumi stack import --stack {stack} --file <backup>"
    )


def _file(stack: str, environment: Mapping[str, str]) -> Path:
    file = file_backend.state_file(stack, environment)
    if file is not None:
        return file
    raise UserError(
        f"the state of stack {stack} is not in files of this machine"
        f" ({file_backend.address(environment) or 'your pulumi login'}). Take a version from there:"
        f" pulumi stack history --stack {stack}, pulumi stack export --stack {stack} --version"
        f" <number> --file good.json, pulumi stack import --stack {stack} --file good.json"
    )
