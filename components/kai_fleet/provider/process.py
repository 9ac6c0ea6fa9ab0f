"""Serve gRPC to the engine: how a plugin announces itself, and when it ends."""

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NoReturn

import grpc

# As large messages as the engine's.
OPTIONS: Final = [
    (f"grpc.max_{way}_message_length", 400 * 1024 * 1024) for way in ("receive", "send")
]


def announce(port: int) -> None:
    """Tell the engine the port. End when it interrupts, and when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # asyncio would print a traceback

    def watch(parent: int) -> NoReturn:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=watch, args=[os.getppid()], daemon=True).start()
    print(port, flush=True)


def serve(servicer: Any, register: Callable[[Any, grpc.Server], None], workers: int) -> None:
    """Answer the engine at a free port of the loopback, on so many threads; never returns."""
    server = grpc.server(ThreadPoolExecutor(workers), options=OPTIONS)
    register(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    announce(port)
    server.wait_for_termination()
