"""The engine with nothing of the product but its provider plugins: a program, a stack, no more."""

import os
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation

Program = Callable[[], None]


def new_stack(sandbox: Any, directory: Path, project: str) -> automation.Stack:
    """A stack of a project of that name on the sandbox, in a folder of its own."""
    return automation.create_stack(
        f"{project}-{uuid.uuid4().hex[:8]}",
        project_name=project,
        program=lambda: None,
        opts=automation.LocalWorkspaceOptions(
            work_dir=str(directory),
            env_vars=sandbox.env(),
            pulumi_command=automation.PulumiCommand(root=str(sandbox.directory)),
        ),
    )


class Engine:
    """One stack on the sandbox, and what its last operation printed."""

    def __init__(self, sandbox: Any, directory: Path) -> None:
        self.sandbox = sandbox
        self.stack = new_stack(sandbox, directory, "providers")
        self.name = self.stack.name
        self.printed = ""

    def _run(self, operation: Callable[..., Any], program: Program | None, **options: Any) -> Any:
        lines: list[str] = []
        if program is not None:
            options["program"] = program
        try:
            return operation(on_output=lines.append, **options)
        finally:
            self.printed = "\n".join(lines)

    def up(self, program: Program) -> dict[str, int]:
        """The number of resources by what was done to them."""
        result = self._run(self.stack.up, program)
        return dict(result.summary.resource_changes or {})

    def preview(self, program: Program) -> dict[str, int]:
        result = self._run(self.stack.preview, program)
        return {str(getattr(k, "value", k)): n for k, n in result.change_summary.items()}

    def refresh(self) -> dict[str, int]:
        result = self._run(self.stack.refresh, None)
        return dict(result.summary.resource_changes or {})

    def destroy(self) -> None:
        self._run(self.stack.destroy, None)

    def fails(self, program: Program) -> str:
        with pytest.raises(automation.CommandError) as caught:
            self.up(program)
        return f"{caught.value}\n{self.printed}"

    def state(self) -> str:
        """The stack's state as it is kept, its secrets encrypted."""
        return self.tool("pulumi", "stack", "export", "--stack", self.name)

    def kubectl(self, *arguments: str) -> str:
        return self.tool("kubectl", *arguments)

    def tool(self, name: str, *arguments: str) -> str:
        """What one of the sandbox's tools prints."""
        done = subprocess.run(
            [str(self.sandbox.directory / "bin" / name), *arguments],
            env={**os.environ, **self.sandbox.env()},
            cwd=self.stack.workspace.work_dir,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0 or "NotFound" in done.stderr, done.stderr
        return done.stdout.strip()

    def field(self, path: str, *of: str) -> str:
        return self.kubectl("get", *of, "-o", f"jsonpath={{{path}}}")
