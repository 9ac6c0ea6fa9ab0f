"""A stack's outputs and history, read by `pulumi stack`."""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet.cluster import tenant_kubeconfig
from kai_fleet.values import get, pairs
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_cli.teams.lookup import DeclaredTeam

# A team stack's state is the team's, and names of it go into commands to copy.
_NAME: Final = re.compile("[a-z0-9-]+")
_VERSION: Final = re.compile(r"v?[0-9][-+.0-9A-Za-z]{0,62}")


@dataclass(frozen=True)
class StackState:
    """A stack's outputs: the KAI version of each team, and its kubeconfig.

    The kubeconfigs are built anew of certificates and keys: `refused` says why one is not there.
    """

    versions: Mapping[str, str | None] = field(default_factory=dict)
    kubeconfigs: Mapping[str, str] = field(default_factory=dict, repr=False)
    refused: Mapping[str, str] = field(default_factory=dict)


def read(stack: str, variables: Mapping[str, str] | None = None) -> StackState:
    """The outputs of a stack. Raises UserError where there is none, or it cannot be read.

    `variables` are the engine's, those of the stack's environment unless given.
    """
    outputs = ask(stack, variables, "output", "--json", "--show-secrets")
    versions, kubeconfigs, refused = dict[str, str | None](), dict[str, str](), dict[str, str]()
    for team, about in pairs(outputs.get("teams")).items():
        if _NAME.fullmatch(team):
            version = str(get(about, "scheduler"))
            versions[team] = version if _VERSION.fullmatch(version) else None
    for team in versions:
        try:
            text = str(get(outputs, "kubeconfigs", team) or "")
            kubeconfigs[team] = tenant_kubeconfig.rebuild(text)
        except tenant_kubeconfig.TenantKubeconfigError as error:
            refused[team] = (
                f"the kubeconfig of team {team} in the stack's state {error}."
                f" {tenant_kubeconfig.name_writer(team)}. An update of the stack writes it anew"
            )
    return StackState(versions, kubeconfigs, refused)


def ask(stack: str, variables: Mapping[str, str] | None, *arguments: str) -> Any:
    """The JSON that `pulumi stack …` prints, parsed. Raises UserError."""
    if variables is None:
        variables = for_stack(stack, validated=False).variables
    command = ["pulumi", "stack", *arguments, "--stack", stack, "--non-interactive"]
    environment = {**os.environ, **variables}
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise UserError(f"stack {stack} cannot be read: pulumi is not on PATH") from None
    if done.returncode == 0:
        return json.loads(done.stdout)
    if "no stack named" in done.stderr:
        raise UserError(f"stack {stack} was never updated")
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1].removeprefix("error:")
    raise UserError(f"the state of stack {stack} cannot be read: {reason.strip()}")


def earlier_version(stack: str, team: DeclaredTeam) -> str | None:
    """The version of the last finished update in which the team had another than in its file."""
    _, key, *below = team.keys
    for update in ask(stack, None, "history", "--json"):
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
