"""`pulumi refresh` of what can be read: a vCluster that does not answer is left out of it.

Pulumi refreshes all of a stack or nothing. The API of a vCluster whose namespace was deleted is
gone for good, and what was inside needs no reading: it goes with the vCluster, and the update makes
it anew in the next one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pulumi import automation

from kai_fleet_cli.cluster_reader import NoAnswerError
from kai_fleet_cli.display.events import Narration, named, operation
from kai_fleet_cli.display.screen import Say
from kai_fleet_cli.recovery import state
from kai_fleet_cli.recovery.live_cluster import LiveCluster
from kai_fleet_cli.recovery.state import ExportedState, provider_of

_VCLUSTER: Final = ":VirtualCluster$pulumi:providers:kubernetes::"


@dataclass(frozen=True)
class Drift:
    """What differs from the state: resources by name with what happened to each; and vClusters
    that could not be looked at, each with why.
    """

    resources: Mapping[str, str]
    silent: Mapping[str, str]


def refresh(
    stack: automation.Stack,
    show: Say,
    *,
    only: Sequence[str] = (),
    clear_pending_creates: bool = False,
) -> None:
    """Have the state say what is there. Raises CommandError."""
    unread, silent = _unread(stack)
    for name, why in silent.items():
        show(f"vCluster {name} is not read: {why}")
    show(f"Refreshing ({stack.name})")
    run = partial(
        stack.refresh,
        target=list(only) or None,
        exclude=None if only else unread or None,
        clear_pending_creates=clear_pending_creates or None,
        suppress_outputs=True,
        suppress_progress=True,
    )
    differences = _differences(stack, show, run)
    for name, done in differences.items():
        show(f"  {name}: {'gone' if done == 'delete' else 'changed'}")


def drift(stack: automation.Stack, show: Say) -> Drift:
    """Look for what was changed by hand, and change nothing. Raises CommandError."""
    unread, silent = _unread(stack)
    run = partial(stack.preview_refresh, exclude=unread or None)
    return Drift(_differences(stack, show, run), silent)


def _unread(stack: automation.Stack) -> tuple[list[str], dict[str, str]]:
    """The URNs that cannot be read, and the vClusters that they are in, each with why.

    Every vCluster of the stack is asked whether it is there, and the same as ever.
    """
    now = state.read(stack)
    silent: dict[str, str] = {}
    for urn, provider in now.providers().items():
        if _VCLUSTER not in urn:
            continue
        try:
            uid = LiveCluster(provider).uid()
        except NoAnswerError as why:
            silent[urn] = str(why)
        else:
            if (known := _identity(now, urn)) and uid != known:
                silent[urn] = "it was made anew"
    unread = [
        str(it["urn"])
        for it in now.resources
        # Of a vCluster it is by its provider, or by what it is deleted with.
        if not silent.keys().isdisjoint((provider_of(it), it.get("deletedWith")))
    ]
    return unread, {urn.rpartition("::")[2]: why for urn, why in silent.items()}


def _differences(stack: automation.Stack, show: Say, run: Callable[..., object]) -> dict[str, str]:
    """The resources that were changed (update) or are gone (delete), by name, as a refresh has
    them. Its messages are shown without a line per resource.
    """
    home = stack.workspace.env_vars.get("PULUMI_HOME", "")
    told = Narration(show, color=False, steps=False, home=home)
    differences: dict[str, str] = {}

    def note(event: automation.EngineEvent) -> None:
        step = event.resource_pre_event or event.res_outputs_event
        if step is not None and (done := operation(step.metadata)) in ("update", "delete"):
            differences[named(step.metadata.urn)] = done
        told.hear(event)

    try:
        run(on_output=told.keep, on_event=note)
    except automation.errors.CommandError:
        told.failed()
        raise
    return differences


def _identity(now: ExportedState, provider: str) -> str:
    """The UID that a vCluster had at the last update; "" where the state does not tell."""
    step = f"::{provider.rpartition('::')[2]}-identity"
    for it in now.resources:
        if str(it["urn"]).endswith(step):
            return str(((it.get("inputs") or {}).get("triggers") or [""])[0])
    return ""
