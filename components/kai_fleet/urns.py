"""URNs of resources: `urn:pulumi:STACK::PROJECT::TYPES::NAME`.

Only the name may contain `::`, so a URN is split from the left, as the engine does.
"""

from typing import NamedTuple

from kai_fleet.names import COMPONENTS


class Urn(NamedTuple):
    """Types and name in a URN.

    `types` has the types of the resource's parents from the top, without the stack's, and then
    the resource's type.
    """

    types: tuple[str, ...]
    name: str

    @property
    def type(self) -> str:
        """The resource's type."""
        return self.types[-1]

    @property
    def above(self) -> tuple[str, ...]:
        """The types of the parents, from the top."""
        return self.types[:-1]

    @property
    def component(self) -> str:
        """The nearest component of this program above the resource: `KaiScheduler`; "" for none."""
        for kind in reversed(self.above):
            if kind.startswith(COMPONENTS):
                return kind.removeprefix(COMPONENTS)
        return ""


def read_urn(urn: str) -> Urn:
    """Types and name of a URN; one empty type and an empty name if the text has no four parts."""
    parts = urn.split("::", 3)
    if len(parts) < 4:
        return Urn(("",), "")
    return Urn(tuple(parts[2].split("$")), parts[3])


def provider_urn(reference: str) -> str:
    """The URN in a reference `URN::ID` to a provider; "" if the text has no `::`."""
    return reference.rpartition("::")[0]
