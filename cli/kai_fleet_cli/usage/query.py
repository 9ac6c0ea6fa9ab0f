"""From a stack's name to who used what: Prometheus asked where there is one, else the clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kai_fleet.kube.errors import Unreachable
from kai_fleet.settings.sections.monitoring import Prometheus
from kai_fleet_cli.doctor.cluster_state import Snapshot, TeamState
from kai_fleet_cli.doctor.gather import ClusterSources, gather
from kai_fleet_cli.doctor.sources import of_stack, settings_of
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.usage import now
from kai_fleet_cli.usage.over_time import Window, over_time
from kai_fleet_cli.usage.prometheus import Ask, at_url, through
from kai_fleet_cli.usage.rows import Used

_NEARLY_ALL: Final = 0.98  # of a window; below it the answer says how much was measured
SAMPLE: Final = (
    "This is a sample of now, not GPU-hours: the stack names no Prometheus. Write"
    " kai-fleet:monitoring: {prometheus: {service: monitoring/prometheus-operated:9090}}"
    " (docs/monitoring.md)."
)


def usage_of(
    stack: str,
    team: str | None = None,
    since: str = "7d",
    *,
    sample: bool = False,
    url: str | None = None,
    heard: Callable[[int, int], None] = lambda done, of: None,
) -> Used:
    """Who used how many GPUs of a stack.

    `sample`: now, also where there is a Prometheus. `url`: another Prometheus than the stack's.
    Raises UserError for what is asked wrongly, and where the host or Prometheus does not answer.
    """
    settings, window = settings_of(stack), Window.of(since)
    sources = replace(of_stack(stack, team, None), kinds=now.KINDS, heard=heard)
    of_settings = settings.monitoring.prometheus if settings.monitoring else None
    prometheus = Prometheus(url=url) if url else of_settings
    if sample or prometheus is None:
        look = _look(sources)
        said = () if sample else (SAMPLE,)
        teams, waits = now.teams_now(look), now.waits_now(look)
        return Used(stack, teams, waits, notes=said, foreign=look.foreign)
    names = [team] if team else [*settings.teams, *settings.team_stacks]
    try:
        found = over_time(_ask(prometheus, sources), settings, names, window)
    except Unreachable as why:
        raise UserError(f"{why}. For a sample of now: --now") from None
    notes: list[str] = []
    if found.measured < window.hours * _NEARLY_ALL:
        notes.append(
            f"Prometheus has numbers of {found.measured:.1f} of the {window.hours:g} hours that"
            " were asked for."
        )
    foreign: list[str] = []
    try:
        look = _look(sources)
        waits, foreign = now.waits_now(look), look.foreign
    except UserError as why:
        waits = []
        notes.append(f"Who waits now is not known: {why}")
    return Used(
        stack,
        found.teams,
        waits,
        since=since,
        hours=window.hours,
        measured=found.measured,
        notes=tuple(notes),
        foreign=foreign,
    )


def _ask(prometheus: Prometheus, sources: ClusterSources) -> Ask:
    if prometheus.url is not None:
        return at_url(prometheus.url)
    return through(sources.host(), prometheus.service or "")


def _look(sources: ClusterSources) -> Snapshot:
    """The host, and the vClusters with a KAI of their own: the pods of others are seen there."""
    every = sources.teams or {}
    own = {name: it for name, it in every.items() if it.mode == "virtual" and not it.granted}
    try:
        look = gather(replace(sources, teams=own))
        return Snapshot(
            look.host, {n: look.teams.get(n) or TeamState(it) for n, it in every.items()}
        )
    except Unreachable as why:
        raise UserError(
            f"the host cluster is not reached: {why}; look with: {sources.host_kubectl} version"
        ) from None
