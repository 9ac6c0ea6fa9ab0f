"""Kubeconfigs to hand out: for people, and for the account of a team stack."""

import base64
from contextlib import closing
from typing import Any, Final

import yaml

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError, RefusedError
from kai_fleet.cluster.kube.kubeconfig import connection
from kai_fleet.guards.policies import ACCOUNTS
from kai_fleet.settings.files.project import update_command
from kai_fleet.settings.sections.vcluster import Oidc
from kai_fleet_cli.errors import UserError

INSTALL: Final = "kubectl krew install oidc-login (github.com/int128/kubelogin)"


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


def of_account(team: str, context: str, days: int, platform: str, file: str | None = None) -> str:
    """A kubeconfig for a team stack, with a token of its account, good for that many days.

    The cluster's address and authority are those of `context` in `file` (your own kubeconfig
    where None), whose user must be allowed to create tokens. The API server may shorten the time.
    Raises UserError.
    """
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": days * 24 * 3600},
    }
    try:
        target = connection(file=file, context=context)
        with closing(Api(target)) as api:
            answer = api.post(f"/api/v1/namespaces/{ACCOUNTS}/serviceaccounts/{team}/token", body)
    except RefusedError as why:
        raise UserError(
            f"the cluster gives no token for team {team} ({why}). Grant the team in"
            f" kai-fleet:teamStacks of Pulumi.{platform}.yaml and run: {update_command(platform)};"
            f" or use a context that may create tokens of accounts in namespace {ACCOUNTS}"
        ) from None
    except KubeError as why:
        raise UserError(f"the cluster of context {context} cannot be asked: {why}") from None
    cluster = {"server": target.host}
    if target.authority:
        cluster["certificate-authority-data"] = base64.b64encode(target.authority).decode()
    name = f"{context}-{team}"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": answer["status"]["token"]}}],
        "contexts": [{"name": name, "context": {"cluster": context, "user": name}}],
    }
    return yaml.safe_dump(document, sort_keys=False)
