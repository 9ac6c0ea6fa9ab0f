"""`fleet teams`: what a stack's file declares, and what its state says of it by `pulumi stack`."""

import json
import os
import re
import subprocess
from collections.abc import Sequence
from typing import Any, Final

from kai_fleet.cluster import tenant_kubeconfig
from kai_fleet.settings import Settings
from kai_fleet.values import get, pairs
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan.picture import TEAM_COLUMNS, of_clusters
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_cli.teams.changes import DeclaredTeam
from kai_fleet_policies.model.declared import clusters_of

COLUMNS: Final = (*TEAM_COLUMNS[:3], "running", *TEAM_COLUMNS[3:])
# A team stack's state is the team's, and names of it go into commands to copy.
_NAME: Final = re.compile("[a-z0-9-]+")
_VERSION: Final = re.compile(r"v?[0-9][-+.0-9A-Za-z]{0,62}")


def read(stack: str) -> Any:
    """The outputs of a stack. Raises UserError where there is none, or it cannot be read."""
    return ask(stack, "output", "--json", "--show-secrets")


def versions_of(outputs: Any) -> dict[str, str | None]:
    """The KAI version of each team of a stack's outputs, None where it has none."""
    versions = dict[str, str | None]()
    for team, about in pairs(get(outputs, "teams")).items():
        if _NAME.fullmatch(team):
            version = str(get(about, "scheduler"))
            versions[team] = version if _VERSION.fullmatch(version) else None
    return versions


def kubeconfig_of(outputs: Any, team: str) -> str | None:
    """A team's kubeconfig of a stack's outputs, built anew of its certificates and keys. None for a
    team that they do not have. Raises UserError for one that vCluster did not write.
    """
    if team not in versions_of(outputs):
        return None
    try:
        return tenant_kubeconfig.rebuild(str(get(outputs, "kubeconfigs", team) or ""))
    except tenant_kubeconfig.TenantKubeconfigError as error:
        raise UserError(
            f"the kubeconfig of team {team} in the stack's state {error}."
            f" {tenant_kubeconfig.name_writer(team)}. An update of the stack writes it anew"
        ) from None


def ask(stack: str, *arguments: str) -> Any:
    """The JSON that `pulumi stack …` prints, parsed. Raises UserError."""
    command = ["pulumi", "stack", *arguments, "--stack", stack, "--non-interactive"]
    environment = {**os.environ, **for_stack(stack, validated=False).variables}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode == 0:
        return json.loads(done.stdout)
    if "no stack named" in done.stderr:
        raise UserError(f"stack {stack} was never updated")
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1].removeprefix("error:")
    raise UserError(f"the state of stack {stack} cannot be read: {reason.strip()}")


def earlier_version(stack: str, team: DeclaredTeam) -> str | None:
    """The version of the last finished update in which the team had another than in its file."""
    _, key, *below = team.keys
    for update in ask(stack, "history", "--json"):
        if update.get("kind") != "update" or update.get("result") != "succeeded":
            continue
        try:  # structured keys are JSON text
            written = json.loads(get(update, "config", key, "value"))
        except (TypeError, ValueError):
            continue
        version = get(written, *below, "scheduler", "version")
        if isinstance(version, str) and version != team.version:
            return version
    return None


def rows(settings: Settings, outputs: Any) -> list[Sequence[str]]:
    """Every team of a stack by COLUMNS; `outputs` are the stack's."""
    running, declared = versions_of(outputs), of_clusters(clusters_of(settings)).teams
    return [(*row[:3], running.get(row[0]) or "-", *row[3:]) for row in declared]
