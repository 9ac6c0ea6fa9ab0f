"""What the stand-ins say of themselves."""

from __future__ import annotations

from provider.plugin import Plugin


class StandIn(Plugin):
    """A plugin in the place of Pulumi's own."""

    @property
    def called(self) -> str:
        """The stand-in's name in a sentence."""
        return f"the sandbox's stand-in for the {self.name} provider"

    def _unserved(self, what: str) -> str:
        return (
            f"{super()._unserved(what)}: "
            f"put the official plugin pulumi-resource-{self.name} {self.version} on PATH"
        )
