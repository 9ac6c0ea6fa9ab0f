"""What `fleet` tells the program for one run, and what the program answers.

Each variable holds names of teams with commas between them.
"""

import os

# Teams that may lose resources. A stack's name stands for all of its teams. It replaces
# kai-fleet:removed of the file.
REMOVE_VARIABLE = "KAI_FLEET_REMOVE_TEAM"

# Teams whose stores are restored from backups, so that they may become others. `fleet team restore`
# sets it, and keeps the control planes stopped.
RESTORE_VARIABLE = "KAI_FLEET_RESTORE_TEAM"

# Teams that failed in the run before, and that this run neither declares nor changes.
FAILED_VARIABLE = "KAI_FLEET_FAILED_TEAM"

# The program's error if removals wait because a resource failed.
REMOVALS_WAIT = "nothing was removed, because something failed"


def restored_teams() -> set[str]:
    """The names of the teams whose vClusters are being restored in this run, and maybe ""."""
    return _names(RESTORE_VARIABLE)


def failed_teams() -> set[str]:
    """The names of the teams that this run leaves as they are, and maybe ""."""
    return _names(FAILED_VARIABLE)


def agreed_losses() -> set[str]:
    """The names of the teams, or of the stack, whose resources this run may delete.

    Without the variable it is {""}, which is no team's name. Names of no team are not left out.
    """
    return _names(REMOVE_VARIABLE)


def _names(variable: str) -> set[str]:
    return {name.strip() for name in os.environ.get(variable, "").split(",")}
