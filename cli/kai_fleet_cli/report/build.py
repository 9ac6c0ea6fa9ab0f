"""One report: from the clusters where they answer, else from the plan, with what is missing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kai_fleet.kube.errors import Unreachable
from kai_fleet_cli.doctor.checks import examine
from kai_fleet_cli.doctor.gather import Heard, gather
from kai_fleet_cli.doctor.sources import of_stack, variables_of
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.report.history import last_changes
from kai_fleet_cli.report.live import live
from kai_fleet_cli.report.model import Missing, Report
from kai_fleet_cli.report.planned import LIVE_PARTS, planned
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.platform import facts_beside
from kai_fleet_policies import validation


def of_file(stack: str, file: Path | None = None) -> Report:
    """The report of a stack's file alone. Raises UserError for one that cannot be read."""
    path = file or reading.path_of(stack)
    raw = reading.read(path)
    verdict = validation.validate(raw, facts_of=facts_beside(path))
    if verdict.settings is None:
        raise UserError(validation.report(verdict.refused))
    return planned(stack, verdict.settings, verdict.problems, datetime.now(UTC))


def of_clusters(stack: str, heard: Heard) -> Report:
    """The report of a stack as it is now. `heard` is told how many of all clusters answered.

    A cluster that does not answer, and a history that cannot be read, are missing parts of it.
    Raises UserError for a stack whose file cannot be read.
    """
    report = of_file(stack)
    try:
        look = gather(replace(of_stack(stack, None, None), heard=heard))
    except (Unreachable, UserError) as why:
        return replace(report, missing=(Missing(LIVE_PARTS, str(why)),))
    report = live(report, look, examine(look))
    try:
        return replace(report, changes=last_changes(stack, variables_of(stack)))
    except UserError as why:
        missing = (*report.missing, Missing("the last changes", str(why)))
        return replace(report, missing=missing)
