"""The Automation API's workspace, which asks the CLI for no secret that nobody here reads."""

from __future__ import annotations

import json
from typing import Final

from pulumi import automation

# What the CLI prints in a secret's place.
_SECRET: Final = "[secret]"


class Workspace(automation.LocalWorkspace):
    """An update ends with its stack's outputs. Those that are secrets stay masked.

    The Automation API reads them in clear, by one more start of the CLI.
    """

    def stack_outputs(self, stack_name: str) -> automation.OutputMap:
        """The outputs of a stack, by `pulumi stack output`. Raises CommandError."""
        command = ["stack", "output", "--json", "--stack", stack_name]
        done = self.pulumi_command.run(command, self.work_dir, dict(self.env_vars))
        return {
            name: automation.OutputValue(value, secret=value == _SECRET)
            for name, value in json.loads(done.stdout).items()
        }
