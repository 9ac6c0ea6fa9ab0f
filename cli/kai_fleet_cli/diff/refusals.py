"""What an update refuses that a plan has nothing against: it starts from what is deployed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kai_fleet.state.deployed_state import deployed_state_of
from kai_fleet_cli.diff.hazards import Hazard, Part
from kai_fleet_cli.diff.sentences import Sentence
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.platform import facts_beside
from kai_fleet_policies import validation


def refusals(stack: str, file: Path, resources: Sequence[Mapping[str, Any]]) -> list[Sentence]:
    """What the rules say of a stack file where these resources of a plan are what runs now.

    Raises UserError where the file cannot be read.
    """
    deployed = deployed_state_of((it["urn"], it["type"], it.get("inputs", {})) for it in resources)
    verdict = validation.validate(reading.read(file), deployed, facts_beside(file))
    problems = verdict.refused
    if verdict.settings is not None:
        problems += validation.removal_problems(verdict, deployed.teams, stack)
    return [
        Sentence(it.subject, (Part(f"{it.message} [{it.rule}]", Hazard.REFUSED),))
        for it in problems
    ]
