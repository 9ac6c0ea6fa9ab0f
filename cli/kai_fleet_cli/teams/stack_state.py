"""What a stack runs, and ran before: its state and its history, which reading never changes."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import count
from typing import Any, Final

from kai_fleet.cluster import tenant_kubeconfig
from kai_fleet.fleet.deployed_state import KAI_SCHEDULER, RELEASE, STACK, TEAM
from kai_fleet.kube.objects import MALFORMED
from kai_fleet.settings.mistakes import NAMESPACE
from kai_fleet.values import pairs, value_at
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery.state import opened
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_cli.teams.lookup import TeamPlace

_UPDATES: Final = 20  # of the history, in one page
_TEAM: Final = f"::{TEAM}$"  # below it in a URN is what a team has
_VERSION: Final = re.compile(r"v?[0-9][-+.0-9A-Za-z]{0,62}")
# A team stack's state is the team's. Of what is called otherwise nothing is taken: a team's name
# goes into commands that an operator copies into a shell.
_NAME: Final = re.compile("[a-z0-9-]+")


@dataclass(frozen=True)
class StackState:
    """One stack as its last update left it: KAI versions and kubeconfigs by team.

    The kubeconfigs are built anew: a team stack's state is the team's. `refused` says why one is
    not there. `values` are those of each vCluster's release, by team.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    kubeconfigs: Mapping[str, str] = field(default_factory=dict, repr=False)
    refused: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)

    def kubeconfig(self, team: str) -> str | None:
        """A team's; None where it has none. Raises UserError for one that is refused."""
        if team in self.refused:
            raise UserError(self.refused[team])
        return self.kubeconfigs.get(team)

    def only(self, team: str) -> "StackState":
        """What it says of one team: a team's own stack may say something of others."""

        def of(every: Mapping[str, Any]) -> dict[str, Any]:
            return {team: every[team]} if team in every else {}

        return StackState(*(of(getattr(self, it.name)) for it in fields(self)))


def read(stack: str, variables: Mapping[str, str]) -> StackState:
    """The state of a stack. Raises UserError where there is none, or it cannot be read."""
    exported = ask(stack, variables, "export", "--show-secrets")
    try:
        return of_resources((exported.get("deployment") or {}).get("resources") or [])
    except MALFORMED as why:
        what = f"holds what no update writes ({type(why).__name__})"
        raise UserError(f"the state of stack {stack} {what}") from None


def ask(stack: str, variables: Mapping[str, str], *arguments: str) -> Any:
    """What `pulumi stack …` answers, as JSON. Raises UserError."""
    environment = {**os.environ, **variables}
    engine = shutil.which("pulumi", path=environment.get("PATH"))
    if engine is None:
        raise UserError(f"the state of stack {stack} cannot be read: pulumi is not on PATH")
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
        reason = lines[-1].removeprefix("error:").strip()
        raise UserError(f"the state of stack {stack} cannot be read: {reason}")
    return json.loads(done.stdout)


def of_resources(resources: list[Mapping[str, Any]]) -> StackState:
    """The state that exported resources show."""
    versions: dict[str, str] = {}
    values: dict[str, Mapping[str, Any]] = {}
    outputs: Mapping[str, Any] = {}
    for resource in resources:
        if resource.get("type") == STACK:
            outputs = pairs(opened(resource.get("outputs")))
        urn = str(resource["urn"])
        if resource.get("type") != RELEASE or resource.get("delete") or _TEAM not in urn:
            continue  # the host's own releases, and what waits to be deleted
        name = urn.rpartition("::")[2]
        if not _NAME.fullmatch(name):
            continue
        if f"{KAI_SCHEDULER}$" in urn:
            version = str(pairs(resource.get("outputs")).get("version"))
            if _VERSION.fullmatch(version):
                versions[name.removesuffix("-kai-release")] = version
        else:
            own = pairs(opened(resource.get("inputs"))).get("values")
            values[name.removesuffix("-release")] = pairs(own)
    kubeconfigs, refused = dict[str, str](), dict[str, str]()
    for team, text in pairs(outputs.get("kubeconfigs")).items():
        if not _NAME.fullmatch(team):
            continue
        try:
            kubeconfigs[team] = tenant_kubeconfig.rebuild(str(text or ""))[0]
        except tenant_kubeconfig.TenantKubeconfigError as error:
            refused[team] = (
                f"the kubeconfig of team {team} in the stack's state {error}."
                f" {tenant_kubeconfig.name_writer(team)}. An update of the stack writes it anew"
            )
    return StackState(versions, kubeconfigs, refused, values)


def earlier_version(place: TeamPlace, variables: Mapping[str, str], than: str | None) -> str | None:
    """The version of the last finished update in which the team ran another one `than` that.

    None where there is no such update. Raises UserError where the history cannot be read.
    """
    for update in updates(place.stack, variables):
        # Previews, removals and failures say nothing about what ran.
        if update.get("kind") != "update" or update.get("result") != "succeeded":
            continue
        written = config_value(update, place.keys[1].partition(":")[2])
        scheduler = pairs(value_at(written, ".".join((*place.keys[2:], "scheduler"))))
        version = scheduler.get("version")
        if scheduler.get("mode") == "virtual" and isinstance(version, str) and version != than:
            return version
    return None


def updates(stack: str, variables: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """A stack's updates, newest first, read as far as they are wanted."""
    history = ("history", "--json", "--page-size", str(_UPDATES), "--page")
    for page in count(1):
        listed = ask(stack, variables, *history, str(page))
        yield from listed
        if len(listed) < _UPDATES:
            return


def config_value(update: Mapping[str, Any], key: str) -> Any:
    """One of our keys of an update's configuration, which keeps structured ones as JSON text."""
    entry = (update.get("config") or {}).get(f"{NAMESPACE}:{key}")
    value = entry.get("value") if isinstance(entry, Mapping) else None
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value
