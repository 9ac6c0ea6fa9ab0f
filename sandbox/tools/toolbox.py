"""Getting the sandbox's tools: from PATH, the cache, the official release, or source.

`ensure` is the only way in. What it makes is kept in the user's cache, one folder for each tool
and version, and is shared by all checkouts. Where neither a release nor a module proxy has a
Pulumi provider plugin, a launcher for the stand-in of this checkout takes its place.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import platformdirs

from sandbox import locks
from sandbox.tools import go_builds, launchers, path_tools, release_downloads
from sandbox.tools.specs import Bundle, Say, ToolError
from sandbox.tools.table import (
    BUNDLES,
    COMMAND_PROVIDER,
    KUBERNETES_PROVIDER,
    ON_PATH,
    POLICY_LAUNCHER,
)

__all__ = ["Origin", "Tool", "ToolError", "cache_root", "ensure", "standins"]

Origin = Literal["path", "release", "built", "stand-in"]
# After this long with a stand-in, the official release is looked for again.
ASK_AGAIN_SECONDS: Final = 24 * 3600.0

_STAND_INS: Final = {
    KUBERNETES_PROVIDER: "sandbox.providers.kubernetes",
    COMMAND_PROVIDER: "sandbox.providers.command",
}


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
    """Find or make every named tool; `say` gets progress. Raises ToolError.

    A companion that its tool does without in this version is left out.
    """
    unknown = sorted(set(names) - set(ON_PATH))
    if unknown:
        raise ToolError(f"no such tool: {', '.join(unknown)}; there are {', '.join(ON_PATH)}.")
    found: dict[str, Tool] = {}
    taken: dict[str, str] = {}
    for bundle in BUNDLES:
        wanted = {name for name in bundle.tools if name in names}
        # A companion is taken from where the tool that it ships with is.
        wanted |= {ON_PATH[name].companion for name in wanted if ON_PATH[name].companion}
        if wanted:
            named = [name for name in bundle.tools if name in wanted]
            found |= _bundle(bundle, named, say, taken)
    if taken:
        why = "; ".join(dict.fromkeys(taken.values()))
        say(f"kai-fleet's stand-ins take the place of {' and '.join(taken)}: {why}")
    return {name: found[name] for name in names if name in found}


def standins(tools: Mapping[str, Tool]) -> list[str]:
    """What of these is not the real thing, in words for a user."""
    titles = {name: bundle.title for bundle in BUNDLES for name in bundle.tools}
    return [titles[name] for name, tool in tools.items() if tool.origin == "stand-in"]


def _bundle(
    bundle: Bundle, wanted: Sequence[str], say: Say, taken: dict[str, str]
) -> dict[str, Tool]:
    """`taken` gets the bundle's title and a reason where a stand-in takes its place."""
    have = _present(bundle, wanted)
    if missing := _lacking(wanted, have):
        lock = _folder() / f".{bundle.tools[0]}.lock"
        with locks.held(lock, lambda: say(f"{bundle.title}: another process is getting it")):
            _acquire(bundle, missing, say, taken)
        have = _present(bundle, wanted)
    if lacking := _lacking(wanted, have):
        raise ToolError(f"{bundle.title}: {', '.join(lacking)} did not come with it.")
    return have


def _lacking(wanted: Sequence[str], have: Mapping[str, Tool]) -> list[str]:
    return [name for name in wanted if name not in have and _needed(name, have)]


def _needed(name: str, have: Mapping[str, Tool]) -> bool:
    check = ON_PATH[name]
    other = have.get(check.companion)
    return other is None or check.needed_by(path_tools.numbers(other.version))


def _present(bundle: Bundle, wanted: Sequence[str]) -> dict[str, Tool]:
    have: dict[str, Tool] = {}
    for name in wanted:
        companion = ON_PATH[name].companion
        if companion and (companion not in have or not _needed(name, have)):
            continue  # it comes with the other one, and lies beside it
        if tool := _on_path(name, have) or _cached(bundle, name):
            have[name] = tool
    return have


def _on_path(name: str, have: Mapping[str, Tool]) -> Tool | None:
    check = ON_PATH[name]
    if check.companion:
        other = have.get(check.companion)
        if other is None or other.origin != "path":
            return None
        neighbour = path_tools.beside(name, other.path, _folder())
        return Tool(name, other.version, neighbour, "path") if neighbour else None
    found = path_tools.find(name, check, _folder())
    return Tool(name, found[1], found[0], "path") if found else None


def _cached(bundle: Bundle, name: str) -> Tool | None:
    """A tool that is in the cache; the scripts of our own are brought up to date first."""
    if name in _STAND_INS and not _kept(bundle, name):
        kept = launchers.STAND_INS / name
        if not kept.exists() or time.time() - kept.stat().st_mtime > ASK_AGAIN_SECONDS:
            return None
        path = launchers.provider(name, _STAND_INS[name])
        return Tool(name, bundle.version, path, "stand-in")
    tool = _kept(bundle, name)
    if name == POLICY_LAUNCHER:
        path = launchers.policy_pack(_folder() / bundle.folder(name, bundle.version), name)
        return Tool(name, bundle.version, path, "built")
    return tool


def _kept(bundle: Bundle, name: str) -> Tool | None:
    versions = [bundle.release.version] if bundle.release else []
    for version in dict.fromkeys([*versions, bundle.version]):
        folder = _folder() / bundle.folder(name, version)
        if os.access(folder / name, os.X_OK):
            told = folder / "origin"
            released = told.exists() and told.read_text().strip() == "release"
            return Tool(name, version, folder / name, "release" if released else "built")
    return None


def _acquire(bundle: Bundle, missing: Sequence[str], say: Say, taken: dict[str, str]) -> None:
    missing = [name for name in missing if not _kept(bundle, name)]  # another process may have
    if not missing:
        return
    for name in missing:
        for sentence in path_tools.refused(name, ON_PATH[name], _folder()):
            say(f"{bundle.title}: not used: {sentence}")
    why = "no official release"
    with tempfile.TemporaryDirectory(dir=_folder(), prefix=".new-") as fresh:
        if bundle.release:
            try:
                release_downloads.fetch(bundle.title, bundle.release, Path(fresh), say)
                _run_once(bundle, Path(fresh))
            except release_downloads.NoRelease as reason:
                why = f"no official release ({reason})"
                if not set(missing) <= _STAND_INS.keys():
                    say(f"{bundle.title}: {why}")
                _empty(Path(fresh))
            else:
                _keep(bundle, bundle.release.version, Path(fresh), "release")
                return
        for recipe in bundle.builds:
            if set(recipe.binaries) & set(missing):
                log = cache_root() / "logs" / f"{recipe.module}-{bundle.version}.log"
                part = f" ({recipe.module})" if len(bundle.builds) > 1 else ""
                title = f"{bundle.title} {bundle.version}{part}"
                go_builds.build(title, recipe, log, Path(fresh), say)
                _keep(bundle, bundle.version, Path(fresh), "built")
    for name in missing:
        if name in _STAND_INS:
            os.utime(launchers.provider(name, _STAND_INS[name]))
            taken[bundle.title] = why


def _run_once(bundle: Bundle, fresh: Path) -> None:
    """Raises NoRelease when what was unpacked does not run here, or is another version."""
    for name in bundle.tools:
        if (fresh / name).exists() and not ON_PATH[name].companion:
            told = path_tools.told(fresh / name, ON_PATH[name])
            if not ON_PATH[name].accepts(path_tools.numbers(told)):
                says = f"says that it is {told}" if told else "does not run here"
                raise release_downloads.NoRelease(f"its {name} {says}")


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def _keep(bundle: Bundle, version: str, fresh: Path, origin: Origin) -> None:
    """Move files into their cache folders; each appears whole or not at all."""
    # Helpers go first: once a tool is there, another process takes the bundle for complete.
    for path in sorted(fresh.iterdir(), key=lambda path: path.name in bundle.tools):
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
