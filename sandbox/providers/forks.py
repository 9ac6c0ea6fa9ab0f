"""`python -m sandbox.providers.forks SOCKET`: stand-in plugins, forked from one that is loaded.

The engine starts a Kubernetes plugin for each cluster, so one for each team: twenty times a third
of a second and 60 MB if each were a Python of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import sys
import threading
import traceback
from pathlib import Path
from typing import Final, NoReturn

# Loaded before the first fork; nothing of them may start a thread by being imported.
MODULES: Final = ("sandbox.providers.kubernetes", "sandbox.providers.command")
_DESCRIPTORS: Final = 3


def serve(path: Path) -> NoReturn:
    """Answer launchers at the socket until killed."""
    for module in MODULES:
        importlib.import_module(module)
    path.unlink(missing_ok=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(path))
        path.chmod(0o600)
        door.listen(128)
        while True:
            line, _ = door.accept()
            with line:
                if os.fork() == 0:
                    door.close()
                    _child(line)


def _child(line: socket.socket) -> NoReturn:
    """Be the plugin that the launcher at the other end asks for, and end with the launcher."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        header, descriptors, _, _ = socket.recv_fds(line, 8, _DESCRIPTORS)
        module, folder, count, *rest = _received(line, int.from_bytes(header, "big"))
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
    serve(Path(sys.argv[1]))
