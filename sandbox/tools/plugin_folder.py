"""Provider plugins where the engine keeps its own: in `PULUMI_HOME/plugins`.

A plugin that the engine finds on PATH works too, and the engine warns of it twice at each run.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sandbox.tools.toolbox import Tool

_PREFIX: Final = "pulumi-resource-"


def install(tools: Mapping[str, Tool], pulumi_home: Path) -> list[str]:
    """Link every provider among `tools` into a Pulumi home; returns the names of those linked.

    A provider that was on PATH already is left alone: it is the user's choice, and is found there.
    One that was built is older than the SDK asks for, and the engine takes such a one from PATH
    only, with a warning.
    """
    linked = []
    for name, tool in tools.items():
        if not name.startswith(_PREFIX) or tool.origin in ("path", "built"):
            continue
        kind = f"resource-{name.removeprefix(_PREFIX)}"
        link = pulumi_home / "plugins" / f"{kind}-v{tool.version}" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not (link.is_symlink() and link.readlink() == tool.path):
            link.unlink(missing_ok=True)
            link.symlink_to(tool.path)
        linked.append(name)
    return linked
