"""One report: from the clusters where they answer, else from the plan, with what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kai_fleet_cli.doctor.checks import examine
from kai_fleet_cli.doctor.gather import Heard, gather
from kai_fleet_cli.doctor.sources import of_stack, variables_of
from kai_fleet_cli.report.live import live
from kai_fleet_cli.report.model import StackReport, StackUpdate
from kai_fleet_cli.report.planned import LIVE_PARTS, planned
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.platform import facts_beside
from kai_fleet_cli.teams import stack_state
from kai_fleet_policies import validation
from kubectl_fleet.errors import UserError
from kubectl_fleet.kube.errors import UnreachableError

_UPDATES: Final = 10  # newest first
_VERBS: Final = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "replace": "replaced",
}


def of_file(stack: str, file: Path | None = None) -> StackReport:
    """The report of a stack's file alone. Raises UserError for one that cannot be read."""
    path = file or reading.path_of(stack)
    raw = reading.read(path)
    verdict = validation.validate(raw, facts_of=facts_beside(path))
    if verdict.settings is None:
        raise UserError(validation.report(verdict.refused))
    return planned(stack, verdict.settings, verdict.problems, datetime.now(UTC))


def of_clusters(stack: str, heard: Heard) -> StackReport:
    """The report of a stack as it is now. `heard` is called with how many clusters answered.

    A cluster that does not answer, and a history that cannot be read, are missing parts of it.
    Raises UserError for a stack whose file cannot be read.
    """
    report = of_file(stack)
    try:
        look = gather(replace(of_stack(stack, None, None), heard=heard))
    except (UnreachableError, UserError) as error:
        return replace(report, missing={LIVE_PARTS: str(error)})
    report = live(report, look, examine(look))
    try:
        return replace(report, updates=last_updates(stack, variables_of(stack)))
    except UserError as error:
        return replace(report, missing={**report.missing, "the last changes": str(error)})


def last_updates(stack: str, variables: Mapping[str, str]) -> list[StackUpdate]:
    """The newest updates in Pulumi's history of a stack. Raises UserError where it is not read."""
    history = stack_state.ask(stack, variables, "history", "--json", "--page-size", str(_UPDATES))
    return [_update(item) for item in history if item.get("startTime")]


def _update(item: Mapping[str, Any]) -> StackUpdate:
    counts = item.get("resourceChanges") or {}
    environment = item.get("environment") or {}
    return StackUpdate(
        when=datetime.fromisoformat(str(item["startTime"])),
        kind=str(item.get("kind", "")),
        result=str(item.get("result", "")),
        who=str(environment.get("git.author") or ""),
        message=str(item.get("message") or "").partition("\n")[0],
        resources=", ".join(
            f"{counts[op]} {verb}" for op, verb in _VERBS.items() if counts.get(op)
        ),
    )
