"""How attacks are written: what is sent, by whom, and the remedy that the refusal names."""

from dataclasses import dataclass
from typing import Any

from tests.attacks.objects import VISIBLE, Object

EVERY_MODE = ("ml", "nlp", "dev")  # virtual, host, default
TENANTS = ("vcluster {}", "vcluster {} delegate")
STACKS = ("stack {}", "stack {} delegate")


@dataclass(frozen=True)
class Attempt:
    """An object that is sent to a team's namespace, and the words that the refusal must have.

    With `change`, the object is there already, and what is sent is a subresource (or nothing) and
    a patch; or, with `verb`, that. `who` are the accounts that have the right to try.
    """

    name: str
    teams: tuple[str, ...]
    body: Any  # of the team's name
    says: str
    change: tuple[str, Any] | None = None
    who: tuple[str, ...] = TENANTS
    verb: str = "PATCH"


def env(value: str | None = None, name: str = VISIBLE, **source: Any) -> Object:
    return {"name": name, **({"value": value} if value is not None else {"valueFrom": source})}
