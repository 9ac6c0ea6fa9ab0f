"""What a run may lose, as whoever started it has said."""

import os
from typing import Final

# Names with commas between: teams, or the stack for all of them. For one run, in place of
# kai-fleet:removed in the file.
REMOVE_VARIABLE: Final = "KAI_FLEET_REMOVE_TEAM"


def named_losses() -> set[str]:
    """The teams, or the stack, of which this run may lose something."""
    return {name.strip() for name in os.environ.get(REMOVE_VARIABLE, "").split(",")}
