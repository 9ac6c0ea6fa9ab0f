"""Teams whose own cluster stops a run: what refused there, and the command that repairs it.

A tenant is administrator of its vCluster, so what is there may refuse whatever is declared in it.
It holds up that team alone.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kai_fleet.deployed import team_of
from kai_fleet.names import RELEASE, STACK, TEAM, TEAM_NAMESPACE
from kai_fleet.settings.files.project import FLEET
from kai_fleet.vcluster_stores import store_of
from kai_fleet.wording import listed, plain
from kai_fleet_cli.recovery import clusters, failures
from kai_fleet_cli.recovery.clusters import NoAnswerError
from kai_fleet_cli.recovery.state import OF_VCLUSTER, ExportedState, provider_of

_OBJECT: Final = re.compile(rf"{failures.NAME}/{failures.NAME}")
_LONGEST: Final = 300  # of the engine's own words
_OF_TEAMS: Final = (TEAM, TEAM_NAMESPACE)


def by_team(errors: Mapping[str, str], parents: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The errors of each team, by URN; none where something else failed, too.

    Errors of the stack itself do not count: it failed with its parts, or fails again without them.
    """
    found: dict[str, dict[str, str]] = {}
    for urn, message in errors.items():
        if urn and f"::{STACK}::" not in urn:
            found.setdefault(team_of(urn, parents), {})[urn] = message
    return {} if "" in found else found


def without(teams: Mapping[str, Any]) -> list[str]:
    """The `--exclude` patterns of these teams; --exclude-dependents leaves out their parts, too."""
    return [f"**::{kind}::{team}" for team in sorted(teams) for kind in _OF_TEAMS]


@dataclass(frozen=True)
class Explanation:
    """The explanation of a run that teams held up.

    `again` is the command that refreshes and updates it; `kubeconfig` gets a vCluster's, or raises
    NoAnswerError.
    """

    stack: str
    known: ExportedState
    again: str
    kubeconfig: Callable[[str], str]

    def text(self, lead: str, teams: Mapping[str, Mapping[str, str]]) -> str:
        """A line for each team: what failed of it, why, and what repairs it."""
        names = listed([f"team {team}" for team in sorted(teams)], "and")
        lines = [
            f"team {team}: {self._cause(team, urn, message)}"
            for team, errors in sorted(teams.items())
            for urn, message in errors.items()
        ]
        return "\n".join([f"{lead} {names}", *dict.fromkeys(lines)])

    def _cause(self, team: str, urn: str, message: str) -> str:
        resource = self.known.resource(urn)
        inside = OF_VCLUSTER in f"{provider_of(resource)} {resource.get('deletedWith')}"
        on_host = str(resource.get("type")).startswith("kubernetes:") and not inside
        login = f"{FLEET} team kubeconfig {team} --stack {self.stack} --output {team}.kubeconfig"
        kubectl = f"kubectl --kubeconfig {team}.kubeconfig"
        inputs = resource.get("inputs") or {}
        fill = {
            "team": team,
            "workload": self._workload(team),
            "again": self.again,
            "login": login,
            "kubectl": kubectl,
            "reach": f"{login} && {kubectl}" if inside else "kubectl",
            "give_up": f"{FLEET} team remove {team} --stack {self.stack}",
            "release": str(inputs.get("name")),
            "namespace": str(inputs.get("namespace")),
        }
        for row in failures.table()["team"]:
            found = None if row.inside and on_host else row.match(message.replace('\\"', '"'))
            if found is None:
                continue
            with suppress(NoAnswerError, KeyError):
                filled, command = fill | found, row.run
                if "hook" in found:
                    config, of_kai = clusters.webhook(self.kubeconfig(team), found["hook"])
                    filled["config"] = _object(config)
                    command = row.run_kai if of_kai and row.run_kai else command
                if "{held}" in command:
                    names, flag = self._held(team, inputs, inside, found["queues"])
                    filled["held"] = " ".join(map(_object, names or [""])) + flag
                return row.sentence(filled, command)
        if on_host and (sentence := failures.of_stack(message, self.stack, self.again, {})):
            return sentence
        return (
            f"{urn.rpartition('::')[2]}: {plain(message, _LONGEST)}. Put that right, or give the"
            f" team up: {fill['give_up']}, then run the same command again"
        )

    def _held(
        self, team: str, inputs: Mapping[str, Any], inside: bool, queues: str
    ) -> tuple[list[str], str]:
        """Objects with finalizers, and their namespace's flag. Raises NoAnswerError, KeyError."""
        if queues:
            return [f"queue/{name}" for name in queues.split(", ")], ""
        kind, name = inputs["kind"], inputs["metadata"]["name"]
        if kind == "Namespace" and inside:
            return clusters.held_in(self.kubeconfig(team), name), f" -n {name}"
        return [f"{kind.lower()}/{name}"], ""

    def _workload(self, team: str) -> str:
        """The kind of a vCluster's control plane: a Deployment where it has no volume."""
        for resource in self.known.resources:
            if str(resource["urn"]).endswith(f"{OF_VCLUSTER}{RELEASE}::{team}-release"):
                return store_of((resource.get("inputs") or {}).get("values")).workload
        return "statefulset"


def _object(name: str) -> str:
    """An object as kubectl names it. Raises KeyError for a name that Kubernetes would not take."""
    if not _OBJECT.fullmatch(name):
        raise KeyError(name)
    return name
