"""Pulumi's marks of what is no plain value, on the wire and in a state."""

from __future__ import annotations

from typing import Final

# Fixed by Pulumi's protocol.
SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"
