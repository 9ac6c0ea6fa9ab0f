"""The provider of this project, which serves queue trees and reads Secrets."""

from __future__ import annotations

import pulumi

from kai_fleet.provider import PACKAGE


def own_provider() -> pulumi.ProviderResource:
    """The stack's one; give it to the platform and to the teams.

    The engine's own for the package would have the whole of `kai-fleet:…` in the stack file for its
    configuration: in the state once more, and another in each stack, so that no team could move.
    """
    return pulumi.ProviderResource(PACKAGE, PACKAGE, {})
