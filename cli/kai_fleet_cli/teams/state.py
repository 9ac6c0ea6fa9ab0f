"""What a stack's state says of its teams by `pulumi stack`, and the kubeconfigs to hand out."""

import base64
import json
import os
import re
import subprocess
from contextlib import closing
from typing import Any, Final

import yaml

from kai_fleet.cluster import tenant_kubeconfig
from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError, RefusedError
from kai_fleet.cluster.kube.kubeconfig import connection
from kai_fleet.guards.policies import ACCOUNTS
from kai_fleet.settings.files.project import update_command
from kai_fleet.settings.sections.vcluster import Oidc
from kai_fleet.values import get, pairs
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_cli.teams.changes import DeclaredTeam

# A team stack's state is the team's, and names of it go into commands to copy.
_NAME: Final = re.compile("[a-z0-9-]+")
_VERSION: Final = re.compile(r"v?[0-9][-+.0-9A-Za-z]{0,62}")
_INSTALL: Final = "kubectl krew install oidc-login (github.com/int128/kubelogin)"


def read(stack: str) -> Any:
    """The outputs of a stack. Raises UserError where there is none, or it cannot be read."""
    return ask(stack, "output", "--json", "--show-secrets")


def versions_of(outputs: Any) -> dict[str, str | None]:
    """The KAI version of each team of a stack's outputs, None where it has none."""
    teams = pairs(get(outputs, "teams"))
    versions = {team: str(get(teams[team], "scheduler")) for team in teams if _NAME.fullmatch(team)}
    return {team: text if _VERSION.fullmatch(text) else None for team, text in versions.items()}


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
            of_all = json.loads(get(update, "config", "kai-fleet:scheduler", "value") or "{}")
        except (TypeError, ValueError):
            continue
        version = get(written, *below, "scheduler", "version") or get(of_all, "version")
        if isinstance(version, str) and version != team.version:
            return version
    return None


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
        "installHint": f"This team logs in with kubectl oidc-login. Install it: {_INSTALL}",
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
    user = {"token": answer["status"]["token"]}
    return tenant_kubeconfig.written(f"{context}-{team}", cluster, user)
