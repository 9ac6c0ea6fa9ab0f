"""What happens to pods that break their team's rules at admission."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kai_fleet.components.settings.sections.model import Strict

GuardMode = Literal["deny", "audit"]


class Guard(Strict):
    """The admission guard of every team that KAI schedules."""

    mode: Literal["deny", "audit", "off"] = Field(
        default="deny",
        description="audit: such pods pass, with a warning, for roll-out. off: no guard.",
    )
    outside_queues: Literal["deny", "warn", "allow"] = Field(
        default="deny",
        description="Pods of a team with queues that ask for GPUs without KAI.",
    )
