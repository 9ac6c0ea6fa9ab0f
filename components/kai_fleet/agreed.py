"""The consent to delete or replace resources of a team, which the user gives for one run."""

import os
from typing import Final

# The variable holds names with commas between them: teams, or the stack, which stands for all of
# its teams. It replaces kai-fleet:removed of the file for one run.
REMOVE_VARIABLE: Final = "KAI_FLEET_REMOVE_TEAM"


def agreed_losses() -> set[str]:
    """The names of the teams, or of the stack, whose resources this run may delete.

    Without the variable it is {""}, which is no team's name. Names of no team are not left out.
    """
    names = os.environ.get(REMOVE_VARIABLE, "").split(",")
    return {name.strip() for name in names}
