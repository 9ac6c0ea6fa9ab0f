"""How the guards' objects are called: a team's name stands behind each."""

from __future__ import annotations

from typing import Final

GUARD: Final = "kai-fleet-queues-"  # QueueGuard's
HOST_GUARD: Final = "kai-fleet-host-"
OUTSIDE_GUARD: Final = "kai-fleet-outside-queues-"
TEMPLATE_GUARD: Final = "kai-fleet-templates-"
OWNER_GUARD: Final = "kai-fleet-owners-"
NODE_GUARD: Final = "kai-fleet-nodes-"
