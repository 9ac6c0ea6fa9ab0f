"""`kubectl fleet …`: kubectl runs `kubectl-fleet` of the PATH."""

import argparse
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Final

_COMMANDS: Final = {
    "queues": "quota, limit, in use, borrowed, lent and waiting of every queue",
    "pods": "which pod holds which share of which GPU",
    "pending": "why each pod waits, and what to do",
}


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a user's mistake is one sentence on stderr and exit code 1."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return
    every = min(86400.0, max(0.5, given.every)) if given.watch else None
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not have the characters of bars
    try:
        from kubectl_fleet import watch
        from kubectl_fleet.cluster import Cluster
        from kubectl_fleet.kubeconfig import UserError

        try:
            cluster = Cluster(given.kubeconfig, given.context, given.namespace)
            command = import_module(f"kubectl_fleet.{given.command}")
            watch.run(cluster, command, every, as_json=given.json)
        except UserError as error:
            sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        if every is None:  # of --watch it is the usual end
            sys.exit("interrupted")
    except BrokenPipeError:
        sys.stdout = None  # `| head`: the reader is gone


def _parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(add_help=False)
    flags.add_argument("--kubeconfig", metavar="FILE", help="else $KUBECONFIG or the usual file")
    flags.add_argument("--context", help="a context of it")
    flags.add_argument("-n", "--namespace", help='show this namespace\'s pods only; "" for all')
    flags.add_argument("-w", "--watch", action="store_true", help="look again until Ctrl-C")
    flags.add_argument("--every", type=float, default=2.0, metavar="SECONDS", help="for --watch")
    flags.add_argument(
        "--json", action="store_true", help="for machines; with --watch a line for each change"
    )
    parser = argparse.ArgumentParser(
        prog="kubectl fleet",
        description="Your queues, your GPUs and your pods that wait, with your own kubeconfig.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, text in _COMMANDS.items():
        commands.add_parser(name, parents=[flags], help=text, description=f"Show {text}.")
    return parser


if __name__ == "__main__":
    main()
