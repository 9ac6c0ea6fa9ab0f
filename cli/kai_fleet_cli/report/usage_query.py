"""`fleet usage`: from a stack's Prometheus where it names one, else a sample of its clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kai_fleet.settings.sections.monitoring import Prometheus
from kai_fleet_cli.doctor.cluster_state import Snapshot, TeamState
from kai_fleet_cli.doctor.gather import ClusterSources, gather
from kai_fleet_cli.doctor.sources import of_stack, settings_of
from kai_fleet_cli.report import prometheus
from kai_fleet_cli.report.over_time import Window, gpu_hours
from kai_fleet_cli.report.team_usage import PodWait, StackUsage, teams_now, waits_now
from kubectl_fleet.errors import UserError
from kubectl_fleet.kube.errors import UnreachableError

# What is asked of each API server; the addresses of vClusters are those of Services.
KINDS: Final = frozenset({"nodes", "pods", "queues", "podgroups", "deployments", "services"})
_NEARLY_ALL: Final = 0.98  # of a window; below it the answer says how much was measured
_SAMPLE: Final = (
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
) -> StackUsage:
    """Who used how many GPUs of a stack.

    `sample`: now, also where there is a Prometheus. `url`: another Prometheus than the stack's.
    `heard` is called with how many of all clusters have answered. Raises UserError for a wrong
    argument, and where the host or Prometheus does not answer.
    """
    settings, window = settings_of(stack), Window.of(since)
    sources = replace(of_stack(stack, team, None), kinds=KINDS, heard=heard)
    of_settings = settings.monitoring.prometheus if settings.monitoring else None
    server = Prometheus(url=url) if url else of_settings
    if sample or server is None:
        look = _look(sources)
        notes = [] if sample else [_SAMPLE]
        return StackUsage(
            stack, teams_now(look), waits_now(look), notes=notes, foreign=look.foreign
        )
    names = [team] if team else [*settings.teams, *settings.team_stacks]
    try:
        ask = (
            prometheus.at_url(server.url)
            if server.url is not None
            else prometheus.through(sources.host(), server.service or "")
        )
        teams, measured = gpu_hours(ask, settings, names, window)
    except UnreachableError as error:
        raise UserError(f"{error}. For a sample of now: --now") from None
    notes = []
    if measured < window.hours * _NEARLY_ALL:
        notes.append(
            f"Prometheus has numbers of {measured:.1f} of the {window.hours:g} hours that"
            " were asked for."
        )
    waits: list[PodWait] = []
    foreign: list[str] = []
    try:
        look = _look(sources)
        waits, foreign = waits_now(look), look.foreign
    except UserError as error:
        notes.append(f"Who waits now is not known: {error}")
    return StackUsage(stack, teams, waits, since, measured, notes, foreign)


def _look(sources: ClusterSources) -> Snapshot:
    """The host, and the vClusters with a KAI of their own: the pods of others are seen there."""
    every = sources.teams or {}
    own = {name: it for name, it in every.items() if it.mode == "virtual" and not it.granted}
    try:
        look = gather(replace(sources, teams=own))
    except UnreachableError as error:
        raise UserError(
            f"the host cluster is not reached: {error}; look with: {sources.host_kubectl} version"
        ) from None
    return Snapshot(look.host, {n: look.teams.get(n) or TeamState(it) for n, it in every.items()})
