"""A kubeconfig for a team stack: its own account on the platform's cluster, and nothing else."""

import base64
from contextlib import closing
from typing import Any, Final

import yaml

from kai_fleet.host.team_stack_rights import ACCOUNTS
from kubectl_fleet.errors import UserError
from kubectl_fleet.kube.api import Api
from kubectl_fleet.kube.errors import RefusedError, UnreachableError, UnusableKubeconfigError
from kubectl_fleet.kube.kubeconfig import Connection, connection

DAY_SECONDS: Final = 24 * 3600


def kubeconfig(team: str, context: str, days: int, platform: str, file: str | None = None) -> str:
    """A kubeconfig with a token of the team's account, good for that many days.

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
    except RefusedError as why:
        raise UserError(_refusal(why, team, platform)) from None
    except UnreachableError as why:
        raise UserError(f"the cluster of context {context} does not answer: {why}") from None
    return _written(way, context, team, made["status"]["token"])


def _refusal(why: RefusedError, team: str, platform: str) -> str:
    if why.status == 404:
        return (
            f"there is no account for team {team} yet: grant it in kai-fleet:teamStacks of"
            f" Pulumi.{platform}.yaml, then run: make up STACK={platform}"
        )
    if why.status == 403:
        return (
            f"you may not make tokens of accounts in namespace {ACCOUNTS}; ask the platform's"
            " administrator, or use the context with which the platform is updated"
        )
    return f"the cluster gives no token for team {team}: {why.reason}"


def _written(way: Connection, context: str, team: str, token: str) -> str:
    at: dict[str, Any] = {"server": way.host}
    if way.authority:
        at["certificate-authority-data"] = base64.b64encode(way.authority).decode()
    name = f"{context}-{team}"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": context, "cluster": at}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": context, "user": name}}],
    }
    return yaml.safe_dump(document, sort_keys=False)
