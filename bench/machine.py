"""On what the figures were taken."""

import datetime
import os
import platform
from importlib.metadata import version

import psutil

from sandbox.directory import read_state
from sandbox.lifecycle import Sandbox


def description(sandbox: Sandbox) -> str:
    """Machine, versions, and what is a stand-in, as Markdown."""
    state = read_state(sandbox.directory)
    assert state is not None
    tools = ", ".join(
        f"{name} {tool['version']} ({tool['origin']})" for name, tool in sorted(state.tools.items())
    )
    memory = psutil.virtual_memory().total / 2**30
    lines = [
        f"{datetime.date.today().isoformat()}, {platform.machine()}, {os.cpu_count()} cores,"
        f" {memory:.0f} GiB, Python {platform.python_version()}, Pulumi SDK {version('pulumi')}.",
        f"Load when it began: {os.getloadavg()[0]:.1f}.",
        "",
        f"Tools: {tools}.",
        "",
        *(f"- Stand-in: {part}" for part in sandbox.standins),
    ]
    return "\n".join(lines)
