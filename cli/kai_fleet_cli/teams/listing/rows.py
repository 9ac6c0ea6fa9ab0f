"""The teams of a platform: what is written, what runs, and what of the GPUs is in use now."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from kai_fleet.releases import KAI
from kai_fleet_cli import cluster_reader
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.teams import queues as team_queues
from kai_fleet_cli.teams import stack_state
from kai_fleet_cli.teams.connect import Connected
from kai_fleet_cli.teams.lookup import Place, Platform


@dataclass(frozen=True)
class Row:
    """One team. None is "not known"; a GPU amount of -1 is unlimited.

    `wanted` is what its file says and `running` what the last update left; a team that is only in
    the file does not run, and one that is not in it any more goes with the next update.
    """

    team: str
    stack: str
    mode: str
    wanted: str | None
    running: str | None
    support_end: str | None
    queues: tuple[str, ...]
    gpus: int | None
    guaranteed: float | None
    used: float | None

    def record(self) -> dict[str, Any]:
        """For the JSON format."""
        return {
            "team": self.team,
            "stack": self.stack,
            "mode": self.mode,
            "version": {"wanted": self.wanted, "running": self.running},
            "supportEnd": self.support_end,
            "queues": list(self.queues),
            "gpus": {"most": self.gpus, "guaranteed": self.guaranteed, "used": self.used},
        }


@dataclass(frozen=True)
class Listing:
    """The rows by team, and why some of them lack something."""

    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def listing(platform: Platform, connected: Connected) -> Listing:
    """Every team of a platform. What cannot be asked is left open, with a note."""
    notes = [connected.note] if connected.note else []
    states: dict[str, stack_state.State] = {}
    stacks = sorted({platform.stack, *(place.stack for place in platform.teams.values())})
    if connected.variables is not None:
        with ThreadPoolExecutor(4) as pool:
            reads = {s: pool.submit(stack_state.read, s, connected.variables) for s in stacks}
        for stack, read in reads.items():
            try:
                states[stack] = read.result()
            except UserError as why:
                notes.append(str(why))
    notes += [why for state in states.values() for why in state.refused.values()]
    used, silent = _used(states)
    if silent:
        notes.append(f"GPUs in use are not known where the vCluster did not answer: {silent}")
    rows = [_row(platform, place, states.get(place.stack), used) for place in _sorted(platform)]
    for stack, state in states.items():
        for name in sorted(state.vclusters - platform.teams.keys()):
            running = state.versions.get(name)
            rows.append(Row(name, stack, "-", None, running, None, (), None, None, used.get(name)))
            notes.append(f"team {name} is in no file any more; the next update removes it")
    return Listing(tuple(rows), tuple(notes))


def _row(
    platform: Platform, place: Place, state: stack_state.State | None, used: Mapping[str, float]
) -> Row:
    name = place.name
    known = KAI.get(place.version or "")
    end = known.support_end.isoformat() if known and known.support_end else None
    gpus = place.raw.get("gpus", 0)
    return Row(
        team=name,
        stack=place.stack,
        mode=place.mode,
        wanted=place.version,
        running=state.versions.get(name) if state else None,
        support_end=end,
        queues=tuple(leaf_queues(place)),
        gpus=gpus if isinstance(gpus, int) else None,
        guaranteed=guaranteed(platform, place),
        used=used.get(name),
    )


def _used(states: Mapping[str, stack_state.State]) -> tuple[dict[str, float], str]:
    """The GPUs that each team's pods hold, asked in its vCluster; and who did not answer."""
    asked = {
        team: cluster_reader.ClusterReader(content=content)
        for state in states.values()
        for team, content in state.kubeconfigs.items()
        if content
    }
    found: dict[str, float] = {}
    silent = []
    with ThreadPoolExecutor(8) as pool:
        answers = {team: pool.submit(cluster.pods) for team, cluster in asked.items()}
    for team, answer in answers.items():
        try:
            found[team] = cluster_reader.gpus_held(answer.result())
        except cluster_reader.NoAnswerError:
            silent.append(team)
    return found, ", ".join(sorted(silent))


def leaf_queues(place: Place) -> list[str]:
    """The queues that a team's pods may name."""
    if place.mode == "host" and place.raw.get("queue"):
        return [str(place.raw["queue"])]
    return team_queues.leaves(place.raw.get("queues"))


def guaranteed(platform: Platform, place: Place) -> float | None:
    """The GPUs that queues promise a team; None where no queue does."""
    if place.mode == "virtual":
        gpus = place.raw.get("gpus", 0)
        return team_queues.guaranteed(
            place.raw.get("queues"), gpus if isinstance(gpus, int) else None
        )
    for keys, quota in team_queues.gpu_quotas(platform.raw.get("queues"), None).items():
        if place.mode == "host" and keys[-1] == place.raw.get("queue"):
            return quota
    return None


def _sorted(platform: Platform) -> list[Place]:
    return sorted(platform.teams.values(), key=lambda place: place.name)
