"""A server on this machine, for as long as a test needs it."""

import contextlib
import ssl
import threading
from http.server import ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    """Takes many connections at once: one that finds the queue full waits a second."""

    request_queue_size = 128


@contextlib.contextmanager
def listening(handler, tls: ssl.SSLContext | None = None):
    """One that answers by the handler."""
    server = Server(("127.0.0.1", 0), handler)
    if tls is not None:
        # Each connection's own thread shakes hands: one that is slow keeps no other waiting.
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
