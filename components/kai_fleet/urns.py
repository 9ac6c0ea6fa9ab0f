"""URNs of resources: `urn:pulumi:STACK::PROJECT::TYPES::NAME`.

Only the name may have `::` in it, so a URN is read from the left, as the engine does.
"""

from typing import NamedTuple


class Urn(NamedTuple):
    """`types` are those of its parents from the top, without the stack's, and its own."""

    types: tuple[str, ...]
    name: str

    @property
    def type(self) -> str:
        """Its own type."""
        return self.types[-1]

    @property
    def above(self) -> tuple[str, ...]:
        """The types of its parents."""
        return self.types[:-1]


def read_urn(urn: str) -> Urn:
    """The parts of a URN; all empty for what is none."""
    parts = urn.split("::", 3)
    if len(parts) < 4:
        return Urn(("",), "")
    return Urn(tuple(parts[2].split("$")), parts[3])


def provider_urn(reference: str) -> str:
    """The URN in a reference to a provider, which ends with an ID: `URN::ID`; "" for none."""
    return reference.rpartition("::")[0]
