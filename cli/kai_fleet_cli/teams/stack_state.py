"""What a stack has since its last update, and ran before: reading changes nothing."""

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet.cluster import tenant_kubeconfig
from kai_fleet.values import get, pairs
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_cli.teams.lookup import DeclaredTeam

_UPDATES: Final = 200  # of the history, the newest
# A team stack's state is the team's, and names of it go into commands to copy.
_NAME: Final = re.compile("[a-z0-9-]+")
_VERSION: Final = re.compile(r"v?[0-9][-+.0-9A-Za-z]{0,62}")


@dataclass(frozen=True)
class StackState:
    """A stack's outputs: the KAI version and the kubeconfig of each of its teams.

    The kubeconfigs are built anew of certificates and keys: `refused` says why one is not there.
    """

    versions: Mapping[str, str | None] = field(default_factory=dict)
    kubeconfigs: Mapping[str, str] = field(default_factory=dict, repr=False)
    refused: Mapping[str, str] = field(default_factory=dict)

    def kubeconfig(self, team: str) -> str | None:
        """A team's; None where it has none. Raises UserError for one that is refused."""
        if team in self.refused:
            raise UserError(self.refused[team])
        return self.kubeconfigs.get(team)


def read(stack: str, variables: Mapping[str, str]) -> StackState:
    """The outputs of a stack. Raises UserError where there is none, or it cannot be read."""
    outputs = ask(stack, variables, "output", "--json", "--show-secrets")
    kubeconfigs, refused = dict[str, str](), dict[str, str]()
    for team, text in _plain(outputs.get("kubeconfigs")):
        try:
            kubeconfigs[team] = tenant_kubeconfig.rebuild(str(text or ""))[0]
        except tenant_kubeconfig.TenantKubeconfigError as error:
            refused[team] = (
                f"the kubeconfig of team {team} in the stack's state {error}."
                f" {tenant_kubeconfig.name_writer(team)}. An update of the stack writes it anew"
            )
    versions: dict[str, str | None] = {}
    for team, about in _plain(outputs.get("teams")):
        version = str(get(about, "scheduler"))
        versions[team] = version if _VERSION.fullmatch(version) else None
    return StackState(versions, kubeconfigs, refused)


def _plain(outputs: Any) -> Iterator[tuple[str, Any]]:
    """What there is by team, for names that a command may be made of."""
    return ((name, it) for name, it in pairs(outputs).items() if _NAME.fullmatch(str(name)))


def ask(stack: str, variables: Mapping[str, str], *arguments: str) -> Any:
    """What `pulumi stack …` answers, as JSON. Raises UserError."""
    try:
        done = subprocess.run(
            ["pulumi", "stack", *arguments, "--stack", stack, "--non-interactive"],
            cwd=ROOT,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise UserError(
            f"the state of stack {stack} cannot be read: pulumi is not on PATH"
        ) from None
    if done.returncode == 0:
        return json.loads(done.stdout)
    if "no stack named" in done.stderr:
        raise UserError(f"stack {stack} was never updated")
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1].removeprefix("error:")
    raise UserError(f"the state of stack {stack} cannot be read: {reason.strip()}")


def earlier_version(stack: str, team: DeclaredTeam, variables: Mapping[str, str]) -> str | None:
    """The version of the last finished update in which the team had another than in its file."""
    key, *below = team.keys[1:]
    newest = ("--page-size", str(_UPDATES), "--page", "1")
    for update in ask(stack, variables, "history", "--json", *newest):
        if update.get("kind") != "update" or update.get("result") != "succeeded":
            continue
        text = get(update, "config", key, "value")  # structured keys are JSON text
        version = get(_parsed(text), *below, "scheduler", "version")
        if isinstance(version, str) and version != team.version:
            return version
    return None


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None
