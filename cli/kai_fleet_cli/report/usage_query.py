"""`fleet usage`: from a stack's Prometheus where it names one, else a sample of its clusters."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kai_fleet.settings.sections.monitoring import Prometheus
from kai_fleet_cli.doctor.cluster_state import Snapshot, TeamState
from kai_fleet_cli.doctor.gather import ClusterSources, gather
from kai_fleet_cli.doctor.sources import of_stack, settings_of
from kai_fleet_cli.report import prometheus
from kai_fleet_cli.report.over_time import Window, gpu_hours
from kai_fleet_cli.report.team_usage import PodWait, StackUsage, never_now, teams_now, waits_now
from kubectl_fleet.errors import UserError
from kubectl_fleet.kube.errors import UnreachableError

# What is asked of each API server; the addresses of vClusters are those of Services.
KINDS: Final = frozenset({"nodes", "pods", "queues", "podgroups", "deployments", "services"})
_SAMPLE: Final = (
    "This is a sample of now, not GPU-hours: the stack names no Prometheus. For those,"
    f" {prometheus.TURN_ON}"
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
        notes = [*([] if sample else [_SAMPLE]), *never_now(look)]
        return StackUsage(
            stack, teams_now(look), waits_now(look), notes=notes, foreign=look.foreign
        )
    names = [team] if team else [*settings.teams, *settings.team_stacks]
    try:
        query = prometheus.of(server, sources.host)
        teams, measured = gpu_hours(query, settings, names, window)
    except UnreachableError as error:
        raise UserError(f"{error}. For a sample of now: --now") from None
    notes = []
    if not window.covered_by(measured):
        notes.append(
            f"Prometheus has numbers of {measured:.1f} of the {window.hours:g} hours that"
            " were asked for."
        )
    waits: list[PodWait] = []
    foreign: list[str] = []
    try:
        look = _look(sources)
        waits, foreign = waits_now(look), look.foreign
        notes += never_now(look)
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
