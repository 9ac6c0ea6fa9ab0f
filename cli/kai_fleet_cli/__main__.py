"""The entry of `fleet`."""

import gc
import sys

from kai_fleet_cli.errors import excepthook


def main() -> None:
    """Run the command of the arguments. Raises SystemExit with its exit code.

    In the whole process, and from now on, Python does not search the objects of Pulumi's SDKs for
    garbage: 0.2 s of CPU while a plan runs, and 0.2 s at the end. Ctrl-C prints one word while the
    command loads.
    """
    sys.excepthook = excepthook
    gc.disable()
    # Loading takes a second, in which Ctrl-C may be pressed.
    from kai_fleet_cli.app import run

    try:
        run()
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
