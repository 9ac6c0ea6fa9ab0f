"""`python -u -m provider.forks SOCKET MODULE…`: plugins, forked from one process that loaded them.

A plugin in Python takes half a second to load, and the engine waits for it. What is loaded once,
while there is other work, is forked in a hundredth of that; and a few forks wait at the door, so
that the engine does not even wait for this. `--with-stdin` ends it with its stdin, so with whoever
started it; `--spares=3` are the forks that wait, `--prepared-by` what makes each ready.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

_DESCRIPTORS: Final = 3
QUIET_SECONDS: Final = 0.5
BEGUN: Final = b"+"  # to the launcher: somebody is the plugin now


@dataclass(frozen=True)
class Waiting:
    """How forks wait: how many do, and what each does ahead, `module.prepare()`.

    While plugins are asked for one after the other, the last one that waits is replaced at once and
    the others when it is quiet again: whoever asks wants the processor, too.
    """

    number: int = 1
    prepared_by: str | None = None


def serve(
    path: Path, modules: Sequence[str], spares: Waiting = Waiting(), *, with_stdin: bool = False
) -> None:
    """Load the modules, of which none may start a thread by that; answer launchers then.

    Each has a function `main`, which is the plugin. Launchers that come early wait.
    """
    path.unlink(missing_ok=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(path))
        path.chmod(0o600)
        door.listen(128)
        door.setblocking(False)  # all who wait hear a launcher, and one of them has it
        gc.disable()
        for module in (*modules, *([spares.prepared_by] if spares.prepared_by else [])):
            importlib.import_module(module)
        gc.freeze()  # forks share what is loaded for as long as nobody looks through it
        gc.enable()
        ends = [sys.stdin] if with_stdin else []
        waiting: list[socket.socket] = []
        heard: list[Any] = []
        while not any(end in heard for end in ends):
            for line in [line for line in waiting if line in heard]:
                waiting.remove(line)  # it is a plugin now, or it is gone
                line.close()
            while len(waiting) < (1 if heard else spares.number):
                waiting.append(_forked(door, waiting, spares))
            missing = len(waiting) < spares.number
            heard, _, _ = select.select(
                [*waiting, *ends], [], [], QUIET_SECONDS if missing else None
            )
        for line in waiting:
            line.close()
    with contextlib.suppress(ChildProcessError):
        os.wait()  # for all of them: plugins take their parent's end for the engine's


def _forked(door: socket.socket, others: Sequence[socket.socket], spares: Waiting) -> socket.socket:
    """Fork one that waits for a launcher. What is returned is heard when it waits no more."""
    above, below = socket.socketpair()
    if os.fork() == 0:
        for line in (*others, above):
            line.close()
        _spare(door, below, spares)
    below.close()
    return above


def _spare(door: socket.socket, above: socket.socket, spares: Waiting) -> NoReturn:
    """Wait for a launcher and be its plugin, or end with who forked this."""
    if spares.prepared_by:
        with contextlib.suppress(Exception):  # what is wrong is said when it serves
            sys.modules[spares.prepared_by].prepare()
    while True:
        heard, _, _ = select.select([door, above], [], [])
        if above in heard:
            os._exit(0)
        with contextlib.suppress(BlockingIOError):
            line, _ = door.accept()
            break
    door.close()
    above.close()
    line.setblocking(True)
    _child(line)


def _child(line: socket.socket) -> NoReturn:
    """Be the plugin that the launcher at the other end asks for, and end with the launcher."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        header, descriptors, _, _ = socket.recv_fds(line, 8, _DESCRIPTORS)
        module, folder, count, *rest = _received(line, int.from_bytes(header, "big"))
        line.sendall(BEGUN)
        for own, given in enumerate(descriptors):
            os.dup2(given, own)
            os.close(given)
        os.chdir(folder)
        os.environ.clear()
        for name, _, value in (item.partition("=") for item in rest[int(count) :]):
            os.environ[name] = value
        sys.argv = [module, *rest[: int(count)]]
        threading.Thread(target=_end_with, args=(line,), daemon=True).start()
        sys.modules[module].main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            line.sendall(bytes([code & 0xFF]))
        os._exit(code)


def _received(line: socket.socket, size: int) -> list[str]:
    message = b""
    while len(message) < size:
        part = line.recv(min(65536, size - len(message)))
        if not part:
            raise EOFError("the launcher hung up")
        message += part
    return message.decode("utf-8", "surrogateescape").split("\0")


def _end_with(line: socket.socket) -> NoReturn:
    with contextlib.suppress(OSError):
        line.recv(1)
    os._exit(0)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--with-stdin", action="store_true")
    options.add_argument("--spares", type=int, default=1)
    options.add_argument("--prepared-by", metavar="MODULE")
    options.add_argument("socket", type=Path)
    options.add_argument("modules", nargs="+")
    given = options.parse_args()
    waiting = Waiting(given.spares, given.prepared_by)
    serve(given.socket, given.modules, waiting, with_stdin=given.with_stdin)
