"""A team's kubeconfig for people: it has them log in, and holds nobody's credentials."""

import base64
from collections.abc import Mapping
from typing import Any, Final

import yaml

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.oidc import Oidc
from kai_fleet.vcluster.oidc import runs_with
from kai_fleet_cli.teams.lookup import TeamPlace
from kubectl_fleet.errors import UserError

INSTALL: Final = "kubectl krew install oidc-login (github.com/int128/kubelogin)"


def provider(place: TeamPlace, settings: Settings) -> Oidc:
    """The identity provider of a team in its stack. Raises UserError where there is none."""
    team = fleet_of(settings).teams.get(place.name)
    if team is None or team.oidc is None:
        raise UserError(
            f"team {place.name} has no identity provider; write vcluster: {{oidc: {{issuer:"
            f" https://…, clientId: kubernetes}}}} at {place.path} in {place.file.name}, then run:"
            f" make up STACK={place.stack}"
        )
    return team.oidc


def check_runs(place: TeamPlace, oidc: Oidc, values: Mapping[str, Any]) -> None:
    """Raise UserError where the vCluster, whose release has these values, takes no such tokens."""
    if not runs_with(oidc, values):
        raise UserError(
            f"the vCluster of team {place.name} does not take tokens of {oidc.issuer} as"
            f" {place.file.name} says yet; run: make up STACK={place.stack}"
        )


def kubeconfig(administrators: str, oidc: Oidc) -> str:
    """The server and the authority of an administrator's kubeconfig, with a login in place of its
    certificate: `kubectl oidc-login`, which opens a browser and keeps the token.
    """
    document: dict[str, Any] = yaml.safe_load(administrators)
    arguments = [
        f"--oidc-issuer-url={oidc.issuer}",
        f"--oidc-client-id={oidc.client_id}",
        *(f"--oidc-extra-scope={scope}" for scope in oidc.scopes),
    ]
    if oidc.ca:
        authority = base64.b64encode(oidc.ca.encode()).decode()
        arguments.append(f"--certificate-authority-data={authority}")
    login = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "kubectl",
        "args": ["oidc-login", "get-token", *arguments],
        "interactiveMode": "IfAvailable",
        "installHint": f"This team logs in with kubectl oidc-login. Install it: {INSTALL}",
    }
    for user in document["users"]:
        user["user"] = {"exec": login}
    return yaml.safe_dump(document, sort_keys=True)
