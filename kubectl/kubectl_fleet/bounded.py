"""A transport that gives up an API server whose answers take too long or are too large."""

import asyncio
import time
from collections.abc import AsyncIterator

import httpx2

_BYTES_PER_VALUE = 16  # of an answer; a value of JSON takes up to 250 bytes of memory


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Sends requests through a client, with bounds on the answers.

    All answers after `reset_bounds` share one bound of seconds, one of bytes, and one of values of
    JSON, of which there may be one for 16 of these bytes. No answer is decompressed, because it
    could expand to gigabytes.

    Args:
        inner: The client; `aclose` closes it.
        seconds: From the first request until the last answer has been read.
    """

    most = 256 << 20  # bytes of all answers: 25,000 pods

    def __init__(self, inner: httpx2.AsyncClient, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds
        self.reset_bounds()

    def reset_bounds(self) -> None:
        """Reset all three bounds. The time begins with the next request."""
        self._deadline: float | None = None
        self._bytes = self.most
        self._values = self.most // _BYTES_PER_VALUE

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, which is changed to ask for no compression; the body is read later.

        Raises ReadTimeout after the bound of seconds, and the errors of the client.
        """
        # Not in `reset_bounds`: a credential plugin runs after it, and may ask its user something.
        if self._deadline is None:
            self._deadline = time.monotonic() + self._seconds
        request.headers["Accept-Encoding"] = "identity"
        try:
            async with asyncio.timeout(self._deadline - time.monotonic()):
                answer = await self._inner.send(request, stream=True)
        except TimeoutError:
            raise self._too_late() from None
        answer.headers.pop("Content-Encoding", None)
        return httpx2.Response(
            answer.status_code,
            headers=answer.headers,
            stream=_Body(self, answer),
            extensions=answer.extensions,
        )

    async def pieces(self, answer: httpx2.Response) -> AsyncIterator[bytes]:
        """Read the body as it was sent, and count it against the bounds.

        Raises ReadTimeout after the bound of seconds, and at once after `reset_bounds` until the
        next request; ReadError if there are too many bytes or values; and the errors of the client.
        """
        deadline = self._deadline or time.monotonic()
        stream = answer.aiter_raw()
        while True:
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    piece = await anext(stream, None)
            except TimeoutError:
                raise self._too_late() from None
            if piece is None:
                return
            self._take(piece)
            yield piece

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    def _take(self, piece: bytes) -> None:
        """Count a piece of a body. Raises ReadError if it exceeds the bytes or the values.

        A JSON value follows a comma, or is the first of a list or a mapping; a comma or a bracket
        in a text counts as well.
        """
        self._bytes -= len(piece)
        self._values -= piece.count(b",") + piece.count(b"[") + piece.count(b"{")
        if self._bytes < 0 or self._values < 0:
            values = self.most // _BYTES_PER_VALUE
            raise httpx2.ReadError(
                f"it answers more than {self.most >> 20} MiB, or {values} values, which is more"
                " than is read of it"
            )

    def _too_late(self) -> httpx2.ReadTimeout:
        """The error to raise; it names the bound in seconds."""
        return httpx2.ReadTimeout(f"it did not answer everything within {self._seconds:.0f} s")


class _Body(httpx2.AsyncByteStream):
    """The body of an answer, counted against the bounds of its transport."""

    def __init__(self, transport: BoundedTransport, answer: httpx2.Response) -> None:
        self._transport = transport
        self._answer = answer

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._transport.pieces(self._answer)

    async def aclose(self) -> None:
        await self._answer.aclose()
