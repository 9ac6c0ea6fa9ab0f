"""Pulumi's CLI as the commands drive it: what is known already is not asked.

Each question is a start of the CLI, a fifth of a second before the update has begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pulumi import automation
from semver import VersionInfo

from fleet.environment import CLI_VERSION
from fleet.recovery import file_backend


class _KnownCli(automation.PulumiCommand):
    """A CLI whose version is known: it was looked at when it was found."""

    def __init__(self, version: VersionInfo) -> None:
        self.command = "pulumi"
        self.version = version


class Workspace(automation.LocalWorkspace):
    """A project's folder, with the program that runs in this process."""

    def __init__(
        self, directory: Path, environment: Mapping[str, str], program: automation.PulumiFn
    ) -> None:
        super().__init__(
            work_dir=str(directory),
            env_vars=dict(environment),
            program=program,
            pulumi_command=_cli(environment),
        )
        self.arguments: tuple[str, ...] = ()

    def serialize_args_for_op(self, stack_name: str) -> list[str]:
        """What every question to the CLI says besides."""
        return list(self.arguments)

    def select_stack(self, stack_name: str) -> None:
        """See that the stack is there. Raises StackNotFoundError, and CommandError."""
        file_backend.drop_cut_attributes(stack_name, self.env_vars)
        file = file_backend.state_file(stack_name, self.env_vars)
        if file is None or not file.is_file():
            super().select_stack(stack_name)


def _cli(environment: Mapping[str, str]) -> automation.PulumiCommand | None:
    version = environment.get(CLI_VERSION, "")
    if not VersionInfo.is_valid(version):
        return None
    return _KnownCli(VersionInfo.parse(version))
