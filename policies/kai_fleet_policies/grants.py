"""What a platform lets team stacks have, as the rules look at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Grant:
    """One team that has, or may have, a stack of its own.

    `gpus` is the most whole GPUs it may ask for, `parent_queue` the queue of the host's tree that
    is its own. `runs_here` says that the platform stack itself still runs the team.
    """

    name: str
    node_pool: Mapping[str, str] = field(default_factory=dict, hash=False)
    gpus: float = 0.0
    parent_queue: str | None = None
    path: str = ""
    runs_here: bool = False
    isolation: str | None = None
