"""An event loop for coroutines of Pulumi's SDK."""

import asyncio


def finish(coroutine):
    """What it returns. Not asyncio.run, which leaves the thread without a loop: the SDK's mocks,
    and outputs that are made outside of a program, ask for one.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(coroutine)
