"""What happens to pods that break their team's rules at admission."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from kai_fleet.settings.sections.model import Strict

GuardMode = Literal["deny", "audit"]
OutsideQueues = Literal["deny", "warn", "allow"]


class Guard(Strict):
    """The admission guard of every team that KAI schedules."""

    mode: Literal["deny", "audit", "off"] = Field(
        default="deny",
        description="audit: such pods pass, with a warning, for roll-out. off: no guard.",
    )
    outside_queues: OutsideQueues = Field(
        default="deny",
        description="Pods of a team with queues that ask for GPUs without KAI.",
    )

    def outside(self, queues: Sequence[str]) -> OutsideQueues:
        """What becomes of such pods inside the vCluster of a team with these leaf queues.

        Without queues there is nothing to be beside, and in mode audit nothing is denied.
        """
        if not queues:
            return "allow"
        only_told = self.mode == "audit" and self.outside_queues == "deny"
        return "warn" if only_told else self.outside_queues
