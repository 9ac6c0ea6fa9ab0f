"""A plugin's process: how it listens, where its engine is, when it ends."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Final, NoReturn

# As large messages as the engine's.
OPTIONS: Final = [
    (f"grpc.max_{way}_message_length", 400 * 1024 * 1024) for way in ("receive", "send")
]


def engine_address() -> str:
    """Where the engine that started this plugin listens."""
    return next((given for given in sys.argv[1:] if not given.startswith("-")), "")


def leave_with_parent() -> None:
    """End the process when the engine that started it is gone, however it went."""

    def watch(parent: int) -> NoReturn:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=watch, args=[os.getppid()], daemon=True).start()
