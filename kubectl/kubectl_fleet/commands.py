"""`fleet my …`, and `kubectl fleet …`: what a team asks its own cluster, without a stack."""

from collections.abc import Mapping
from types import ModuleType
from typing import Annotated

import typer

from kubectl_fleet.errors import UserError

app = typer.Typer(
    help="For a team: its queues, its GPUs, its pods that wait; by its own kubeconfig.",
    no_args_is_help=True,
)

File = Annotated[
    str | None, typer.Option("--kubeconfig", help="A kubeconfig file; else KUBECONFIG, else yours.")
]
Context = Annotated[str | None, typer.Option("--context", help="A context of it.")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Show only this namespace's pods.")
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, until Ctrl-C.")]
Every = Annotated[
    float,
    typer.Option("--every", min=0.5, max=86400, help="Seconds between two looks of --watch."),
]
Json = Annotated[
    bool, typer.Option("--json", help="For machines; with --watch one line for each change.")
]


@app.command()
def queues(
    kubeconfig: File = None,
    context: Context = None,
    watch: Watch = False,
    every: Every = 2.0,
    json_: Json = False,
) -> None:
    """Quota, limit, in use, borrowed, lent and waiting of every queue: GPU, CPU and memory."""
    from kubectl_fleet.my import queues

    _run(queues, (kubeconfig, context, None), every if watch else None, json_)


@app.command()
def pods(
    kubeconfig: File = None,
    context: Context = None,
    namespace: Namespace = None,
    watch: Watch = False,
    every: Every = 2.0,
    json_: Json = False,
) -> None:
    """Which pod holds which share of which GPU."""
    from kubectl_fleet.my import pods

    _run(pods, (kubeconfig, context, namespace), every if watch else None, json_)


@app.command()
def pending(
    kubeconfig: File = None,
    context: Context = None,
    namespace: Namespace = None,
    watch: Watch = False,
    every: Every = 2.0,
    json_: Json = False,
) -> None:
    """Why each pod waits, and what would have to happen."""
    from kubectl_fleet.my import pending
    from kubectl_fleet.my.view import WHY

    _run(pending, (kubeconfig, context, namespace), every if watch else None, json_, WHY)


def _run(
    about: ModuleType,
    source: tuple[str | None, str | None, str | None],
    every: float | None,
    as_json: bool,
    more: Mapping[str, str] | None = None,
) -> None:
    """What a module of `my` has for people and for machines, by its `show` and its `record`.

    Ctrl-C is how one leaves `--watch`: then it has ended well.
    """
    from kubectl_fleet.my import watch
    from kubectl_fleet.my.view import viewer
    from kubectl_fleet.objects import MALFORMED, malformed

    look = viewer(*source, more=more or {})
    try:
        watch.run(look, about.show, about.record, every, as_json=as_json)
    except KeyboardInterrupt:
        if every is None:
            raise
    except MALFORMED as error:
        raise UserError(f"the cluster cannot be read: {malformed(error)}") from None


plugin = typer.Typer(
    help="Your queues, your GPUs, your pods that wait; by the kubeconfig that kubectl uses.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
plugin.add_typer(app)
plugin.add_typer(app, name="my", hidden=True)  # as the command `fleet` has it
