"""`pulumi refresh` of what can be read: a vCluster that does not answer is left out of it.

Pulumi refreshes all of a stack or nothing. The API of a vCluster whose namespace somebody deleted
is gone for good, and what was inside needs no reading: it goes with the vCluster, and the update
makes it anew in the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pulumi import automation

from kai_fleet_cli.display.narration import Narration, named, operation
from kai_fleet_cli.recovery import state
from kai_fleet_cli.recovery.state import State, provider_of

_VCLUSTER: Final = ":VirtualCluster$pulumi:providers:kubernetes::"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Unread:
    """What a refresh leaves out, by URN; and the vClusters that do not answer, each with why."""

    urns: tuple[str, ...] = ()
    silent: Mapping[str, str] | None = None


def unread(now: State) -> Unread:
    """Ask each vCluster of a stack whether it is there, and the same as ever."""
    # A client of Kubernetes: slow to load.
    from kai_fleet_cli.recovery.object_reader import Cluster, Unanswered

    silent: dict[str, str] = {}
    with ExitStack() as clusters:
        for urn, provider in now.providers().items():
            if _VCLUSTER not in urn:
                continue
            try:
                uid = Cluster(provider, clusters).uid()
            except Unanswered as why:
                silent[urn] = str(why)
                continue
            if (known := _identity(now, urn)) and uid != known:
                silent[urn] = "it was made anew"
    inside = (it for it in now.resources if _vcluster_of(it, now) in silent)
    return Unread(
        tuple(str(it["urn"]) for it in inside),
        {urn.rpartition("::")[2]: why for urn, why in silent.items()},
    )


def refresh(
    stack: automation.Stack,
    show: Say,
    *,
    only: Sequence[str] = (),
    clear_pending_creates: bool = False,
) -> None:
    """Have the state say what is there. Raises CommandError."""
    left = unread(state.read(stack))
    for name, why in (left.silent or {}).items():
        show(f"vCluster {name} is not read: {why}")
    show(f"Refreshing ({stack.name})")
    found: dict[str, str] = {}
    with _narrated(show, found) as (told, note):
        stack.refresh(
            target=list(only) or None,
            exclude=None if only else list(left.urns) or None,
            clear_pending_creates=clear_pending_creates or None,
            on_output=told.keep,
            on_event=note,
            suppress_outputs=True,
            suppress_progress=True,
        )
    for name, done in found.items():
        show(f"  {name}: {'gone' if done == 'delete' else 'changed'}")


@dataclass(frozen=True)
class Drift:
    """What differs from the state: resources by name with what happened to each; and vClusters
    that could not be looked at, each with why.
    """

    resources: Mapping[str, str]
    silent: Mapping[str, str]


def drift(stack: automation.Stack, show: Say) -> Drift:
    """Look for what was changed by hand, and change nothing. Raises CommandError."""
    left = unread(state.read(stack))
    found: dict[str, str] = {}
    with _narrated(show, found) as (told, note):
        stack.preview_refresh(exclude=list(left.urns) or None, on_output=told.keep, on_event=note)
    return Drift(found, left.silent or {})


@contextmanager
def _narrated(
    show: Say, found: dict[str, str]
) -> Iterator[tuple[Narration, Callable[[automation.EngineEvent], None]]]:
    """For a refresh: messages only, not a line per resource; `found` gets what differs."""
    told = Narration(show, color=False, steps=False)

    def note(event: automation.EngineEvent) -> None:
        _note(event, found)
        told.hear(event)

    try:
        yield told, note
    except automation.errors.CommandError:
        told.failed()
        raise


def _note(event: automation.EngineEvent, found: dict[str, str]) -> None:
    """Keep what a refresh found: a resource that was changed (update) or is gone (delete)."""
    done = event.resource_pre_event or event.res_outputs_event
    if done is None:
        return
    done_to = operation(done.metadata)
    if done_to in ("update", "delete"):
        found[named(done.metadata.urn)] = done_to


def _vcluster_of(resource: Mapping[str, Any], now: State) -> str:
    """The provider of the vCluster that a resource is inside of; "" for the host's."""
    provider = provider_of(resource)
    if _VCLUSTER in provider:
        return provider
    with_it = str(resource.get("deletedWith") or "")
    return with_it if _VCLUSTER in with_it else ""


def _identity(now: State, provider: str) -> str:
    """The UID that a vCluster had at the last update; "" where the state does not tell."""
    step = f"::{provider.rpartition('::')[2]}-identity"
    for it in now.resources:
        if str(it["urn"]).endswith(step):
            return str(((it.get("inputs") or {}).get("triggers") or [""])[0])
    return ""
