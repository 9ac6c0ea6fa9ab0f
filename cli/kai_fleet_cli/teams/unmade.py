"""A new team that is written already and was never made: the update is what is left to do."""

from collections.abc import Callable
from dataclasses import replace

from kai_fleet_cli.teams.changes import TeamChange, only_update
from kai_fleet_cli.teams.lookup import PlatformFile
from kai_fleet_cli.teams.questions import TeamAnswers
from kubectl_fleet.errors import UserError
from kubectl_fleet.wording import listed


def change(
    platform: PlatformFile, name: str, flags: TeamAnswers, made: Callable[[], bool]
) -> TeamChange:
    """The update alone. `made` reads whether the team's stack has its vCluster.

    Raises UserError where it has, and where flags want another team than the file.
    """
    place = platform.team(name)
    has = f"stack {platform.stack} has a team {name} already, in {place.file.name}"
    said = (
        ("--mode", flags.mode, place.mode),
        ("--version", flags.version, place.version),
        ("--pool", flags.pool, dict(place.node_pool)),
        ("--gpus", flags.gpus, place.gpus),
    )
    other = [flag for flag, wanted, written in said if wanted not in (None, "", {}, written)]
    if other:
        raise UserError(f"{has}, with another {listed(other, 'and')}; write another name")
    try:
        there = made()
    except UserError as why:
        make = f"if it is not made yet: make up STACK={place.stack}"
        raise UserError(f"{has}; whether it is made is not known: {why}; {make}") from None
    if there:
        raise UserError(f"{has}, and it is made; write another name")
    left = only_update(platform, place, has, "it is not made yet")
    # The platform's stack comes first: it grants a team stack what it has.
    return replace(left, updates=tuple(dict.fromkeys((platform.stack, place.stack))))
