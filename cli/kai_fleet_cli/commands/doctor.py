"""`fleet doctor`: what is wrong on live clusters, why, and what to do."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kai_fleet_cli.display.screen import clusters_read, say
from kubectl_fleet.errors import UserError


def doctor(
    stack: Annotated[
        str | None, typer.Option("--stack", "-s", help="Its file is Pulumi.STACK.yaml.")
    ] = None,
    team: Annotated[
        str | None, typer.Option("--team", help="Only this team, and the host.")
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="A kubectl context, in place of the stack's.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", help="A kubeconfig file, without a stack.")
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Say what is wrong on a stack's live clusters, why, and what to do; it changes nothing.

    Without --stack, --context or --kubeconfig: stack sandbox.

    Exit 0: healthy. 1: broken. 2: cannot look. 3: may read nothing of a cluster.
    """
    from kai_fleet_cli.doctor.diagnosis import diagnose, show
    from kubectl_fleet.live.finding import ExitCode

    chosen = stack or (None if context or kubeconfig else "sandbox")
    try:
        with clusters_read() as heard:
            diagnosis = diagnose(chosen, team, context, kubeconfig, heard)
    except UserError as error:
        say(f"error: {error}")
        raise typer.Exit(ExitCode.BLIND) from None
    if json_:
        sys.stdout.write(json.dumps(diagnosis.record(), indent=2, ensure_ascii=False) + "\n")
    else:
        show(diagnosis, Console())
    raise typer.Exit(diagnosis.exit_code)
