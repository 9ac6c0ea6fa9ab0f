"""`python -u -m provider.forks SOCKET MODULE…`: plugins, forked from one process that loaded them.

A plugin in Python takes half a second to load, and the engine waits for it. What is loaded once,
while there is other work, is forked in a hundredth of that. `--with-stdin` ends it with its stdin,
so with whoever started it.
"""

from __future__ import annotations

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
from pathlib import Path
from typing import Final, NoReturn

_DESCRIPTORS: Final = 3
BEGUN: Final = b"+"  # to the launcher: somebody is the plugin now


def serve(path: Path, modules: Sequence[str], *, with_stdin: bool = False) -> None:
    """Load the modules, of which none may start a thread by that; answer launchers then.

    Each has a function `main`, which is the plugin. Launchers that come early wait.
    """
    path.unlink(missing_ok=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(path))
        path.chmod(0o600)
        door.listen(128)
        gc.disable()
        for module in modules:
            importlib.import_module(module)
        gc.freeze()  # forks share what is loaded for as long as nobody looks through it
        gc.enable()
        while True:
            heard, _, _ = select.select([door, sys.stdin] if with_stdin else [door], [], [])
            if door not in heard:
                break
            line, _ = door.accept()
            with line:
                if os.fork() == 0:
                    door.close()
                    _child(line)
    with contextlib.suppress(ChildProcessError):
        os.wait()  # for all of them: plugins take their parent's end for the engine's


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
    options = [argument for argument in sys.argv[1:] if argument.startswith("--")]
    where, *wanted = (argument for argument in sys.argv[1:] if not argument.startswith("--"))
    serve(Path(where), wanted, with_stdin="--with-stdin" in options)
