"""How much Pulumi's SDK notes of the way to the line that declares a resource."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Six frames are the SDK's own; the next one is the declaring line.
NEAREST: Final = 7
NONE: Final = 1


@contextmanager
def source_positions(frames: int) -> Iterator[None]:
    """Of each resource that is declared in it, note no more frames than these.

    The SDK sends the whole call stack with each resource, and the engine (from v3.195 on) keeps it
    in the state, shows it nowhere, and writes all of it anew twice for each resource that changes:
    of 15 teams with 20 resources each the state was twice as large and an update took twice as
    long. The SDK (3.272) has no option for it: Python's own limit for call stacks bounds it.
    """
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = frames if before is None else min(frames, before)
    try:
        yield
    finally:
        del sys.tracebacklimit
        if before is not None:
            sys.tracebacklimit = before
