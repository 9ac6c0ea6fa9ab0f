"""`kubectl fleet …`: what a team asks its own cluster. kubectl runs `kubectl-fleet` of the PATH."""

import sys

from kubectl_fleet.errors import ended

sys.excepthook = ended


def main() -> None:
    """Run a command of the plugin."""
    from kubectl_fleet.commands import plugin
    from kubectl_fleet.errors import run_command

    run_command(plugin)


if __name__ == "__main__":
    main()
