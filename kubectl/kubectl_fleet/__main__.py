"""`kubectl fleet …`: kubectl runs `kubectl-fleet` of the PATH."""

import argparse
import sys
from io import TextIOWrapper

from kubectl_fleet import pending, pods, queues
from kubectl_fleet.cluster import REASONS, USAGE, Cluster
from kubectl_fleet.kubeconfig import UserError
from kubectl_fleet.watch import Command, run

_COMMANDS = {
    "queues": Command(
        "quota, limit, in use, borrowed, lent and waiting of every queue",
        USAGE,
        queues.record,
        queues.show,
    ),
    "pods": Command(
        "which pod holds which share of which GPU",
        USAGE,
        pods.record,
        pods.show,
    ),
    "pending": Command(
        "why each pod waits, and what to do",
        REASONS,
        pending.record,
        pending.show,
    ),
}
_MIN_SECONDS = 0.5  # between two readings
_MAX_SECONDS = 86400.0


def main(arguments: list[str] | None = None) -> None:
    """Run a command with these arguments, or with those of the process; without one print the help.

    Exits with 1 and one sentence on stderr for a user's mistake, a cluster that cannot be read, and
    Ctrl-C; with --watch Ctrl-C is the usual end, with 0. Exits with 2 for arguments that argparse
    refuses, with 0 after --help. It ends without a word if nobody reads stdout any more, and stdout
    is None then. --every is taken as 0.5 seconds at least, and as a day at most.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return
    every_seconds = None
    if options.watch:
        every_seconds = min(_MAX_SECONDS, max(_MIN_SECONDS, options.every))
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not have the characters of bars
    try:
        cluster = Cluster(options.kubeconfig, options.context, options.namespace)
        run(cluster, _COMMANDS[options.command], every_seconds, as_json=options.json)
    except UserError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        if every_seconds is None:
            sys.exit("interrupted")
    except BrokenPipeError:
        sys.stdout = None  # `| head`: the reader is gone


def _parser() -> argparse.ArgumentParser:
    """The parser: all commands take the same flags.

    Without a command `command` is None, and the flags are absent.
    """
    flags = argparse.ArgumentParser(add_help=False)
    flags.add_argument("--kubeconfig", metavar="FILE", help="else $KUBECONFIG or the usual file")
    flags.add_argument("--context", help="a context of it")
    flags.add_argument("-n", "--namespace", help='show this namespace\'s pods only; "" for all')
    flags.add_argument("-w", "--watch", action="store_true", help="look again until Ctrl-C")
    flags.add_argument(
        "--every",
        type=float,
        default=2.0,
        metavar="SECONDS",
        help="for --watch",
    )
    flags.add_argument(
        "--json", action="store_true", help="for machines; with --watch a line for each change"
    )
    parser = argparse.ArgumentParser(
        prog="kubectl fleet",
        description="Your queues, your GPUs and your pods that wait, with your own kubeconfig.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in _COMMANDS.items():
        commands.add_parser(
            name,
            parents=[flags],
            help=command.help,
            description=f"Show {command.help}.",
        )
    return parser


if __name__ == "__main__":
    main()
