"""What the user agrees to for one run: to lose resources of a team, or to restore its store."""

import os
from typing import Final

# The variable holds names with commas between them: teams, or the stack, which stands for all of
# its teams. It replaces kai-fleet:removed of the file for one run.
REMOVE_VARIABLE: Final = "KAI_FLEET_REMOVE_TEAM"

# The variable holds the names of teams whose stores are restored from backups in this run, so that
# they may become others. `fleet team restore` sets it, and keeps the control planes stopped.
RESTORE_VARIABLE: Final = "KAI_FLEET_RESTORE_TEAM"


def restored_teams() -> set[str]:
    """The names of the teams whose vClusters are being restored in this run, and maybe ""."""
    return set(os.environ.get(RESTORE_VARIABLE, "").split(","))


def agreed_losses() -> set[str]:
    """The names of the teams, or of the stack, whose resources this run may delete.

    Without the variable it is {""}, which is no team's name. Names of no team are not left out.
    """
    names = os.environ.get(REMOVE_VARIABLE, "").split(",")
    return {name.strip() for name in names}
