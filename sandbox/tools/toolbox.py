"""Getting the sandbox's tools: from PATH, the cache, the official release, or source.

`ensure` is the entry point. What it gets is kept in the user's cache, one folder for each tool
and version, and is shared by all checkouts. Where neither a release nor a module proxy has Pulumi's
Command plugin, a launcher for the stand-in of this checkout takes its place.
"""

import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final, Literal

import platformdirs

from sandbox.directory import CHECKOUT, held
from sandbox.tools import go_builds, path_tools, release_downloads
from sandbox.tools.path_tools import ask_version, numbers
from sandbox.tools.table import BUNDLES, COMMAND_PROVIDER, ON_PATH, Bundle, Say, ToolError

__all__ = ["Origin", "Tool", "ToolError", "cache_root", "ensure", "standins"]

Origin = Literal["PATH", "release", "built", "stand-in"]
# After this long with a stand-in, the official release is looked for again.
ASK_AGAIN_SECONDS: Final = 24 * 3600.0
# Of two builds one downloads or links while the other compiles; each takes up to 3 GB of memory.
AT_ONCE: Final = 2

_STAND_INS: Final = {COMMAND_PROVIDER: "sandbox.command_plugin"}
# A stand-in is code of this checkout: its launcher is kept in, and goes with, its environment.
STAND_INS: Final = Path(sys.prefix) / "kai-fleet"
_LAUNCHER: Final = """\
#!/bin/sh
# kai-fleet's stand-in for a Pulumi provider plugin; not Pulumi's own.
PYTHONPATH={checkout}${{PYTHONPATH:+:$PYTHONPATH}} exec {python} -m {module} "$@"
"""


@dataclass(frozen=True)
class Tool:
    """An executable that is there, and how it came: see `Origin`."""

    name: str
    version: str
    path: Path
    origin: Origin


def cache_root() -> Path:
    """Where built and downloaded tools are kept; `KAI_FLEET_CACHE` overrides it."""
    chosen = os.environ.get("KAI_FLEET_CACHE")
    return Path(chosen).expanduser() if chosen else platformdirs.user_cache_path("kai-fleet")


def ensure(names: Sequence[str], say: Say) -> dict[str, Tool]:
    """Find or make every named tool, two at a time; `say` gets progress. Raises ToolError."""
    unknown = sorted(set(names) - set(ON_PATH))
    if unknown:
        raise ToolError(f"no such tool: {', '.join(unknown)}; there are {', '.join(ON_PATH)}.")
    replaced: dict[str, str] = {}
    stopped = Event()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [
            pool.submit(_bundle, bundle, tools, say, replaced, stopped)
            for bundle, tools in _longest_first(names)
        ]
        try:
            found = {name: tool for future in futures for name, tool in future.result().items()}
        except BaseException:
            stopped.set()  # the other builds
            pool.shutdown(cancel_futures=True)
            raise
    if replaced:
        why = "; ".join(dict.fromkeys(replaced.values()))
        say(f"kai-fleet's stand-in takes the place of {' and '.join(replaced)}: {why}")
    return {name: found[name] for name in names}


def _longest_first(names: Sequence[str]) -> list[tuple[Bundle, list[str]]]:
    """The bundles with the names that are needed of each, the longest builds first."""
    # A companion is taken from where the tool that it ships with is.
    every = {*names, *(ON_PATH[name].companion for name in names)}
    ordered = sorted(BUNDLES, key=lambda bundle: -sum(build.minutes for build in bundle.builds))
    lists = ((bundle, [tool for tool in bundle.tools if tool in every]) for bundle in ordered)
    return [(bundle, tools) for bundle, tools in lists if tools]


def standins(tools: Mapping[str, Tool]) -> list[str]:
    """The titles of those tools that are stand-ins."""
    titles = {name: bundle.title for bundle in BUNDLES for name in bundle.tools}
    return [titles[name] for name, tool in tools.items() if tool.origin == "stand-in"]


def _bundle(
    bundle: Bundle, names: Sequence[str], say: Say, replaced: dict[str, str], stopped: Event
) -> dict[str, Tool]:
    """`replaced` gets the bundle's title and a reason where a stand-in takes its place."""
    have, lacking = _present(bundle, names)
    if lacking:
        lock = _folder() / f".{bundle.first}.lock"
        with held(lock, lambda: say(f"{bundle.title}: another process is getting it")):
            # The other process may have got it.
            if missing := [name for name in lacking if not _kept(bundle, name)]:
                _acquire(bundle, missing, say, replaced, stopped)
        have, lacking = _present(bundle, names)
    if lacking:
        raise ToolError(f"{bundle.title}: {', '.join(lacking)} did not come with it.")
    return have


def _present(bundle: Bundle, names: Sequence[str]) -> tuple[dict[str, Tool], list[str]]:
    """The tools that are there, and the names of those that are not."""
    have: dict[str, Tool] = {}
    lacking = []
    for name in names:
        companion = ON_PATH[name].companion
        other = have.get(companion)
        # A companion comes with the other one, and lies beside it.
        tool = None if companion and not other else _found(bundle, name, other)
        if tool:
            have[name] = tool
        else:
            lacking.append(name)
    return have, lacking


def _found(bundle: Bundle, name: str, other: Tool | None) -> Tool | None:
    """A tool that is installed or in the cache; `other` is the one that it ships with."""
    if other is None:
        if found := path_tools.find(name, ON_PATH[name], _folder()):
            return Tool(name, found[1], found[0], "PATH")
    elif other.origin == "PATH" and (path := path_tools.beside(name, other.path, _folder())):
        return Tool(name, other.version, path, "PATH")
    return _kept(bundle, name) or _standing_in(bundle, name)


def _standing_in(bundle: Bundle, name: str) -> Tool | None:
    """The stand-in for a plugin, until it is time to ask for the official one again."""
    launcher = STAND_INS / name
    if name not in _STAND_INS or not launcher.exists():
        return None
    if time.time() - launcher.stat().st_mtime > ASK_AGAIN_SECONDS:
        return None
    return Tool(name, bundle.version, _launcher(name), "stand-in")


def _launcher(name: str) -> Path:
    """The script that runs a stand-in by this Python; written anew where that has moved."""
    path, parts = STAND_INS / name, (str(CHECKOUT), sys.executable, _STAND_INS[name])
    checkout, python, module = map(shlex.quote, parts)
    text = _LAUNCHER.format(checkout=checkout, python=python, module=module)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        # Renamed into place, because the engine may be running the old one.
        handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{name}-")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(fresh).chmod(0o755)
        Path(fresh).replace(path)
    return path


def _kept(bundle: Bundle, name: str) -> Tool | None:
    for version in (*([bundle.release.version] if bundle.release else []), bundle.version):
        folder = _folder() / bundle.folder(name, version)
        if os.access(folder / name, os.X_OK):
            origin = folder / "origin"
            released = origin.exists() and origin.read_text().strip() == "release"
            return Tool(name, version, folder / name, "release" if released else "built")
    return None


def _acquire(
    bundle: Bundle, missing: Sequence[str], say: Say, replaced: dict[str, str], stopped: Event
) -> None:
    for name in missing:
        for sentence in path_tools.refused(name, ON_PATH[name], _folder()):
            say(f"{bundle.title}: not used: {sentence}")
    why = "no official release"
    if bundle.release:
        try:
            with _caching(bundle, bundle.release.version, "release") as fresh:
                release_downloads.fetch(bundle.title, bundle.release, fresh, say, stopped)
                _run_once(bundle, fresh)
            return
        except release_downloads.NoRelease as reason:
            why = f"no official release ({reason})"
            if not set(missing) <= _STAND_INS.keys():
                say(f"{bundle.title}: {why}")
    for recipe in bundle.builds:
        if set(recipe.binaries) & set(missing):
            log = cache_root() / "logs" / f"{recipe.module}-{bundle.version}.log"
            part = f" ({recipe.module})" if len(bundle.builds) > 1 else ""
            title = f"{bundle.title} {bundle.version}{part}"
            with _caching(bundle, bundle.version, "built") as fresh:
                go_builds.build(title, bundle.version, recipe, log, fresh, say, stopped)
    for name in missing:
        if name in _STAND_INS:
            os.utime(_launcher(name))
            replaced[bundle.title] = why


def _run_once(bundle: Bundle, fresh: Path) -> None:
    """Check that what was unpacked runs, in an accepted version. Raises NoRelease."""
    for name, check in bundle.tools.items():
        if (fresh / name).exists() and not check.companion:
            version = ask_version(fresh / name, check)
            if not check.accepts(numbers(version)):
                says = f"says that it is {version}" if version else "does not run here"
                raise release_downloads.NoRelease(f"its {name} {says}")


@contextmanager
def _caching(bundle: Bundle, version: str, origin: Origin) -> Iterator[Path]:
    """A folder whose files are moved into the cache on success; each appears whole or not."""
    with tempfile.TemporaryDirectory(dir=_folder(), prefix=".new-") as fresh:
        yield Path(fresh)
        # Helpers go first: once a tool is there, another process takes the bundle for complete.
        for path in sorted(Path(fresh).iterdir(), key=lambda path: path.name in bundle.tools):
            folder = _folder() / bundle.folder(path.name, version)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "origin").write_text(f"{origin}\n")
            shutil.move(path, folder / path.name)


def _folder() -> Path:
    folder = cache_root() / "tools"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(
            f"the tool cache {folder} cannot be made ({error.strerror}); "
            "set KAI_FLEET_CACHE to a folder that you may write."
        ) from error
    return folder
