"""What the engine starts as a stand-in plugin: hands itself over to `sandbox.providers.forks`.

Run by file name with `-I -S`, so that it is there in a hundredth of a second. Where nobody
listens, it becomes the plugin itself.
"""

import os
import socket
import sys


def main() -> None:
    """Arguments: the checkout, the plugin's module, and what the engine gives."""
    checkout, module, *arguments = sys.argv[1:]
    path = os.environ.get("KAI_FLEET_PLUGINS", "")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(path)
        except OSError:
            _become(checkout, module, arguments)
        folder = os.getcwd()  # noqa: PTH109 - pathlib would take longer than all of this
        parts = [module, folder, str(len(arguments)), *arguments]
        parts += [f"{name}={value}" for name, value in os.environ.items()]
        message = "\0".join(parts).encode("utf-8", "surrogateescape")
        header = len(message).to_bytes(8, "big")
        socket.send_fds(line, [header], [0, 1, 2])
        line.sendall(message)
        sys.exit(_wait(line))


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


def _become(checkout: str, module: str, arguments: list[str]) -> None:
    above = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{checkout}{os.pathsep}{above}" if above else checkout
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])


main()
