"""On what the figures were taken: the machine, its versions, and charts that were given."""

import datetime
import os
import platform
import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import psutil
import typer

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


def charts_in(folder: Path | None) -> list[Path]:
    """The packaged charts in a folder. Raises BadParameter where there is none."""
    if folder is None:
        return []
    found = sorted(folder.glob("*.tgz"))
    if not found:
        raise typer.BadParameter(
            f"{folder} holds no packaged chart; helm package writes NAME-VERSION.tgz"
        )
    return found


def put_charts(given: Sequence[Path], charts: Path) -> str:
    """Put charts in place of the sandbox's stand-ins of the same name; what the page says of it."""
    if not given:
        return ""
    for package in given:
        shutil.copy(package, charts / package.name)
    return f"\n- Charts, not stand-ins: {', '.join(package.stem for package in given)}"
