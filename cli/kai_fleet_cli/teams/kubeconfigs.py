"""Kubeconfigs to hand out: for a team stack's account on the platform's cluster, and for people.

People log in at the team's identity provider: theirs holds nobody's credentials.
"""

import base64
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

import yaml

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.host.team_stack_rights import ACCOUNTS
from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import RefusedError, UnreachableError, UnusableKubeconfigError
from kai_fleet.kube.kubeconfig import connection
from kai_fleet.settings import Settings
from kai_fleet.settings.files.project import update_command
from kai_fleet.settings.sections.vcluster import Oidc
from kai_fleet.vcluster.oidc import runs_with
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.teams.lookup import TeamPlace

DAY_SECONDS: Final = 24 * 3600
INSTALL: Final = "kubectl krew install oidc-login (github.com/int128/kubelogin)"


def of_account(team: str, context: str, days: int, platform: str, file: str | None = None) -> str:
    """A kubeconfig for a team stack, with a token of its account, good for that many days.

    The cluster's address and authority are those of `context` in `file` (your own kubeconfig
    where None), whose user must be allowed to create tokens. The API server may shorten the time.
    Raises UserError.
    """
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": days * DAY_SECONDS},
    }
    try:
        way = connection(file=file, context=context)
        with closing(Api(way)) as api:
            made = api.post(f"/api/v1/namespaces/{ACCOUNTS}/serviceaccounts/{team}/token", request)
    except UnusableKubeconfigError as why:
        raise UserError(f"context {context} cannot be used: {why}") from None
    except UnreachableError as why:
        raise UserError(f"the cluster of context {context} does not answer: {why}") from None
    except RefusedError as why:
        told = f"the cluster gives no token for team {team}: {why.reason}"
        if why.status == 404:
            told = (
                f"there is no account for team {team} yet: grant it in kai-fleet:teamStacks of"
                f" Pulumi.{platform}.yaml, then run: {update_command(platform)}"
            )
        elif why.status == 403:
            told = (
                f"you may not make tokens of accounts in namespace {ACCOUNTS}; ask the platform's"
                " administrator, or use the context with which the platform is updated"
            )
        raise UserError(told) from None
    cluster = {"server": way.host}
    if way.authority:
        cluster["certificate-authority-data"] = base64.b64encode(way.authority).decode()
    name = f"{context}-{team}"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": made["status"]["token"]}}],
        "contexts": [{"name": name, "context": {"cluster": context, "user": name}}],
    }
    return yaml.safe_dump(document, sort_keys=False)


def provider(place: TeamPlace, settings: Settings) -> Oidc:
    """The identity provider of a team in its stack. Raises UserError where there is none."""
    team = fleet_of(settings).teams.get(place.name)
    if team is None or team.oidc is None:
        raise UserError(
            f"team {place.name} has no identity provider; write vcluster: {{oidc: {{issuer:"
            f" https://…, clientId: kubernetes}}}} at {place.path} in {place.file.name}, then run:"
            f" {update_command(place.stack)}"
        )
    return team.oidc


def check_runs(place: TeamPlace, oidc: Oidc, values: Mapping[str, Any]) -> None:
    """Raise UserError where the vCluster, whose release has these values, takes no such tokens."""
    if not runs_with(oidc, values):
        raise UserError(
            f"the vCluster of team {place.name} does not take tokens of {oidc.issuer} as"
            f" {place.file.name} says yet; run: {update_command(place.stack)}"
        )


def for_people(administrators: str, oidc: Oidc) -> str:
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
