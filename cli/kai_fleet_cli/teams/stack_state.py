"""What a stack runs, from its state: read once, and never changed or made by reading."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet.cluster.tenant_kubeconfig import (
    TenantKubeconfigError,
    name_writer,
    rebuild,
)
from kai_fleet.state.deployed_state import RELEASE, STACK
from kai_fleet.state.targeting import TEAM
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.property_secrets import opened
from kai_fleet_cli.recovery import failures, file_backend
from kai_fleet_cli.stack_file.reading import ROOT

_TEAM: Final = f"::{TEAM}$"  # below it in a URN is what a team has


@dataclass(frozen=True)
class State:
    """One stack as its last update left it: KAI versions and kubeconfigs by team, and outputs.

    The kubeconfigs are built anew: a team stack's state is the team's, and earlier versions of this
    program took what was in a Secret that tenants write. `refused` says why one is not there.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    vclusters: frozenset[str] = frozenset()
    teams: Mapping[str, Any] = field(default_factory=dict)
    kubeconfigs: Mapping[str, str] = field(default_factory=dict, repr=False)
    refused: Mapping[str, str] = field(default_factory=dict)

    def kubeconfig(self, team: str) -> str | None:
        """A team's; None where it has none. Raises UserError for one that is refused."""
        if team in self.refused:
            raise UserError(self.refused[team])
        return self.kubeconfigs.get(team)


def read(stack: str, variables: Mapping[str, str]) -> State:
    """The state of a stack. Raises UserError where the engine has none, or cannot open it."""
    exported = ask(stack, variables, "export", "--show-secrets")
    return of_resources((exported.get("deployment") or {}).get("resources") or [])


def ask(stack: str, variables: Mapping[str, str], *arguments: str) -> Any:
    """What `pulumi stack …` answers, as JSON. Raises UserError."""
    environment = {**os.environ, **variables}
    engine = shutil.which("pulumi", path=environment.get("PATH"))
    if engine is None:
        raise UserError(f"the state of stack {stack} cannot be read: pulumi is not on PATH")
    if cut := file_backend.cut_attributes(stack, variables):
        raise UserError(failures.cut_off(stack, cut))
    done = subprocess.run(
        [engine, "stack", *arguments, "--stack", stack, "--non-interactive"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        if "no stack named" in done.stderr:
            raise UserError(f"stack {stack} was never updated")
        lines = done.stderr.strip().splitlines() or ["the engine said nothing"]
        said = lines[-1].removeprefix("error:").strip()
        raise UserError(f"the state of stack {stack} cannot be read: {said}")
    return json.loads(done.stdout)


def of_resources(resources: list[Mapping[str, Any]]) -> State:
    """The state that exported resources show."""
    versions: dict[str, str] = {}
    vclusters: set[str] = set()
    outputs: Mapping[str, Any] = {}
    for resource in resources:
        if resource.get("type") == STACK:
            outputs = opened(resource.get("outputs") or {})
        urn = str(resource["urn"])
        if resource.get("type") != RELEASE or resource.get("delete") or _TEAM not in urn:
            continue  # the host's own releases, and what waits to be deleted
        name = urn.rpartition("::")[2]
        if name.endswith("-kai-release"):
            version = (resource.get("outputs") or {}).get("version")
            versions[name.removesuffix("-kai-release")] = str(version)
        elif name.endswith("-release"):
            vclusters.add(name.removesuffix("-release"))
    kubeconfigs, refused = _rebuilt(outputs.get("kubeconfigs") or {})
    return State(versions, frozenset(vclusters), outputs.get("teams") or {}, kubeconfigs, refused)


def _rebuilt(given: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    kubeconfigs: dict[str, str] = {}
    refused: dict[str, str] = {}
    for team, text in given.items():
        try:
            kubeconfigs[team] = rebuild(str(text or ""))[0]
        except TenantKubeconfigError as why:
            refused[team] = (
                f"the kubeconfig of team {team} in the stack's state {why}. {name_writer(team)}."
                " An update of the stack writes it anew"
            )
    return kubeconfigs, refused
