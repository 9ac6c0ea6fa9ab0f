"""A plan as Markdown: teams, queue trees, GPUs against guarantees, and what the rules say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kai_fleet import releases
from kai_fleet_cli.display import markdown
from kai_fleet_cli.display.wording import counted
from kai_fleet_cli.plan import mermaid
from kai_fleet_cli.plan.offline import Plan
from kai_fleet_cli.plan.picture import ClusterPicture, Picture, TeamPicture, picture

NONE = "-"
ANY_NODE = "any node"


def page(plan: Plan) -> str:
    """The whole page, ending in a newline."""
    record = plan.record()
    parts = [f"## Stack {markdown.text(plan.stack)}", _verdict(record)]
    if plan.resources:
        parts += overview(picture(record["resources"]))
    parts.append("### Problems")
    parts.append(markdown.problems(record["problems"]) or "None: every rule holds.")
    return "\n\n".join(parts) + "\n"


def overview(seen: Picture) -> list[str]:
    """The parts about teams, GPUs and queues."""
    parts = ["### Teams", team_table(seen) if seen.teams else "None."]
    if seen.host.kai is not None:
        parts.append(
            f"The host runs KAI {markdown.code(seen.host.kai)} ({_support(seen.host.kai)})."
        )
    if seen.teams:
        parts += ["### GPUs", gpu_table(seen)]
        parts.append(
            "GPUs are the bounds that the teams' ResourceQuotas set; how many the nodes have,"
            " only the cluster knows."
        )
    trees = {"the host": seen.host, **{name: team.inside for name, team in seen.teams.items()}}
    drawn = {name: place for name, place in trees.items() if place.queues}
    if drawn:
        parts.append("### Queues")
    for name, place in drawn.items():
        parts.append(f"**{markdown.text(name)}**")
        parts.append(f"```mermaid\n{mermaid.queue_tree(place.queues)}\n```")
    return parts


def team_table(seen: Picture) -> str:
    """One line per team."""
    return markdown.table(
        ("team", "mode", "scheduler", "support", "vCluster", "GPUs", "queues"),
        (
            (
                markdown.text(team.name),
                team.mode or NONE,
                markdown.text(team.scheduler),
                _support(team.inside.kai),
                team.vcluster or NONE,
                gpus(team.gpus),
                str(len(team.inside.queues)) if team.inside.queues else NONE,
            )
            for team in seen.teams.values()
        ),
    )


def gpu_table(seen: Picture) -> str:
    """What the teams of each node pool may hold, against what their queues are guaranteed.

    The teams that the host's KAI schedules share its queues, so they are one line.
    """
    pools: dict[str, list[TeamPicture]] = {}
    shared: list[TeamPicture] = []
    for team in seen.teams.values():
        if team.mode == "host":
            shared.append(team)
        else:
            pools.setdefault(team.pool, []).append(team)
    rows = [
        _pool_row(_pool_name([pool]), teams, [team.inside for team in teams])
        for pool, teams in sorted(pools.items())
    ]
    if shared:
        names = sorted({team.pool for team in shared})
        rows.append(_pool_row(f"{_pool_name(names)} (host's KAI)", shared, [seen.host]))
    return markdown.table(("node pool", "teams", "GPUs", "guaranteed", "not promised"), rows)


def gpus(amount: float | None) -> str:
    """A number of GPUs; -1 is unlimited, None is no bound."""
    if amount is None:
        return "no bound"
    return "unlimited" if amount == -1 else f"{amount:g}"


def _pool_row(
    name: str, teams: list[TeamPicture], places: Iterable[ClusterPicture]
) -> tuple[str, ...]:
    bounds = [team.gpus for team in teams]
    known = [bound for bound in bounds if bound is not None]
    capacity = sum(known) if len(known) == len(bounds) else None
    promises = [place.guaranteed_gpus for place in places if place.queues]
    guaranteed = -1.0 if -1.0 in promises else sum(promises)
    left = NONE if capacity is None or guaranteed == -1 else _left(capacity - guaranteed)
    return (
        name,
        markdown.text(", ".join(team.name for team in teams)),
        gpus(capacity),
        gpus(guaranteed) if promises else NONE,
        left if promises else gpus(capacity),
    )


def _left(rest: float) -> str:
    return f"**{-rest:g} too many**" if rest < 0 else f"{rest:g}"


def _pool_name(pools: Iterable[str]) -> str:
    return ", ".join(markdown.code(pool) if pool else ANY_NODE for pool in pools)


def _support(version: str | None) -> str:
    if version is None:
        return NONE
    return releases.support(version).words


def _verdict(record: Mapping[str, Any]) -> str:
    levels = [problem["level"] for problem in record["problems"]]
    refused = levels.count("mandatory")
    word = "**fine**" if record["ok"] else "**refused**"
    counts = (
        counted(len(record["resources"]), "resource"),
        counted(refused, "problem"),
        counted(len(levels) - refused, "warning"),
    )
    return f"{word}: {', '.join(counts)}"
