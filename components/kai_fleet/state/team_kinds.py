"""The types of the components that are one team's, for those who read a state."""

from __future__ import annotations

from typing import Final

TEAM: Final = "kai-fleet:index:Team"  # what moves with a team between stacks
TEAM_NAMESPACE: Final = "kai-fleet:index:TeamNamespace"  # what stays with the platform
