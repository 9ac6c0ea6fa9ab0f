"""What the engine starts as a plugin: hands itself over to `provider.forks`, where that listens.

Run by file name with `-I -S`, so that it is there in a fiftieth of a second: an update starts one
for each team. Where nobody listens, it becomes the plugin itself.
"""

# The parts in C alone: `socket` and `signal` import `enum` and more, and take longer than all else.
import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys

# Where a fleet command says at which socket its loaded plugins are asked for.
LOADED = "KAI_FLEET_LOADED"


def hand_over(variable: str, module: str, arguments: list[str]) -> int | None:
    """Have the listener whose socket is in the variable be the plugin; its exit code.

    None where nobody is there to be it. The plugin has this process's descriptors, folder and
    environment, and ends with it.
    """
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        line.connect(os.environ.get(variable, ""))
    except OSError:
        return None
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # the engine's way to end a plugin
    folder = os.getcwd()  # noqa: PTH109 - pathlib would take longer than all of this
    parts = [module, folder, str(len(arguments)), *arguments]
    parts += [f"{name}={value}" for name, value in os.environ.items()]
    message = "\0".join(parts).encode("utf-8", "surrogateescape")
    header = len(message).to_bytes(8, "big")
    engine = os.getppid()
    try:
        own = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
        line.sendmsg([header], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, own)])
        line.sendall(message)
        if not _heard(line, engine):
            return None  # it ended before it had loaded
    except OSError:
        return None
    code = _heard(line, engine)
    return code[0] if code else 1


def _heard(line: _socket.socket, engine: int) -> bytes:
    """The next byte, nothing at the end. This process ends with the engine, the plugin with it."""
    line.settimeout(1.0)
    while os.getppid() == engine:
        try:
            return line.recv(1)
        except TimeoutError:
            continue
    sys.exit(0)


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
