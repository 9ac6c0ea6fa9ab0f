"""What the engine starts as a plugin: hands itself over to `provider.forks`, where that listens.

Run by file name with `-I -S`, so that it is there in a hundredth of a second. Where nobody
listens, it becomes the plugin itself.
"""

import os
import signal
import socket
import sys
from collections.abc import Sequence


def hand_over(variable: str, module: str, arguments: Sequence[str]) -> int | None:
    """Have the listener whose socket is in the variable be the plugin; its exit code.

    None where nobody listens. The plugin has this process's descriptors, folder and environment,
    and ends with it.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(os.environ.get(variable, ""))
        except OSError:
            return None
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # the engine's way to end a plugin
        folder = os.getcwd()  # noqa: PTH109 - pathlib would take longer than all of this
        parts = [module, folder, str(len(arguments)), *arguments]
        parts += [f"{name}={value}" for name, value in os.environ.items()]
        message = "\0".join(parts).encode("utf-8", "surrogateescape")
        header = len(message).to_bytes(8, "big")
        socket.send_fds(line, [header], [0, 1, 2])
        line.sendall(message)
        return _wait(line)


def _wait(line: socket.socket) -> int:
    """The plugin's exit code. It ends with this process, and this process with the engine."""
    engine = os.getppid()
    line.settimeout(1.0)
    while os.getppid() == engine:
        try:
            code = line.recv(1)
        except TimeoutError:
            continue
        return code[0] if code else 1
    return 0


def main() -> None:
    """Arguments: the listener's variable, the checkout, the plugin's module, the engine's own."""
    variable, checkout, module, *arguments = sys.argv[1:]
    code = hand_over(variable, module, arguments)
    if code is not None:
        sys.exit(code)
    above = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{checkout}{os.pathsep}{above}" if above else checkout
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])


if __name__ == "__main__":
    main()
