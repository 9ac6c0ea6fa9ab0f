"""What a stack's state says of its teams by `pulumi stack`, and the kubeconfigs to hand out."""

import base64
import json
import re
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import yaml

from kai_fleet.backup.arguments import LABEL
from kai_fleet.cluster import tenant_kubeconfig
from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError, RefusedError
from kai_fleet.cluster.kube.kubeconfig import connection
from kai_fleet.isolation.policies import ACCOUNTS
from kai_fleet.values import get, pairs
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.hosts import host_of_stack, pulumi_output
from kai_fleet_cli.report.page import age
from kai_fleet_cli.teams.changes import DeclaredTeam, StackFile
from kai_fleet_stack.project import update_command
from kai_fleet_stack.settings.sections.vcluster import Oidc
from kai_usage.times import moment

# A team may write the state of its own stack, so these texts are checked before they go into a
# command that somebody copies.
_NAME = re.compile("[a-z0-9-]+")
_VERSION = re.compile(r"v?[0-9][-+.0-9A-Za-z]{0,62}")
_INSTALL = "kubectl krew install oidc-login (github.com/int128/kubelogin)"
_SECONDS_PER_DAY = 24 * 3600


def read(stack: str) -> object:
    """The outputs of a stack, secrets in clear. Raises as `stack_command_json` does."""
    return stack_command_json(stack, "output", "--json", "--show-secrets")


def versions_of(outputs: object) -> dict[str, str | None]:
    """The KAI version of each team in a stack's outputs; None if it has no KAI of its own.

    A text that is no version counts as none, and a team whose name is no team's is left out: both
    are safe to show and to put into a command. Empty for outputs without teams.
    """
    versions: dict[str, str | None] = {}
    for team, output in pairs(get(outputs, "teams")).items():
        if _NAME.fullmatch(team):
            scheduler = str(get(output, "scheduler"))
            versions[team] = scheduler if _VERSION.fullmatch(scheduler) else None
    return versions


def kubeconfig_of(file: StackFile, team: str) -> str:
    """A team's kubeconfig in its stack's outputs, built anew from its certificates and keys.

    It is the administrator's, so a secret. Raises UserError if the file does not have the team, no
    update made it, or the outputs have a kubeconfig of it that vCluster did not write; or as `read`
    does.
    """
    file.team(team)
    outputs = read(file.stack)
    if team not in versions_of(outputs):
        raise UserError(
            f"team {team} is in {file.path.name}, but was never made; run:"
            f" {update_command(file.stack)}"
        )
    try:
        return tenant_kubeconfig.rebuild(str(get(outputs, "kubeconfigs", team) or ""))
    except tenant_kubeconfig.TenantKubeconfigError as error:
        raise UserError(
            f"the kubeconfig of team {team} in the stack's state {error}."
            f" {tenant_kubeconfig.name_writer(team)}. An update of the stack writes it anew"
        ) from None


def stack_command_json(stack: str, *arguments: str) -> Any:
    """The parsed JSON of a `pulumi stack` command; `arguments` are those behind `stack`.

    It runs in the environment of `for_stack`, which restarts what died in a sandbox.

    Raises:
        UserError: The stack was never updated, its state cannot be read, or `for_stack` refuses it.
        ValueError: The command prints no JSON.
    """
    variables = for_stack(stack, validated=False).variables
    try:
        return json.loads(pulumi_output(stack, variables, "stack", *arguments, seconds=None))
    except subprocess.CalledProcessError as error:
        if "no stack named" in error.stderr:
            raise UserError(f"stack {stack} was never updated") from None
        lines = error.stderr.strip().splitlines() or ["no reason given"]
        reason = lines[-1].removeprefix("error:").strip()
    except OSError as error:
        reason = str(error)
    raise UserError(f"the state of stack {stack} cannot be read: {reason}")


def earlier_version(stack: str, team: DeclaredTeam) -> str | None:
    """The KAI version of a team in the newest finished update in which it was not the file's.

    A version that the team left out is the one of the stack's defaults then. An update whose
    configuration lacks the team, or has no JSON text there, does not count. None if there is no
    such update. Raises as `stack_command_json` does.
    """
    _, key, *below = team.keys
    for update in stack_command_json(stack, "history", "--json"):
        if update.get("kind") != "update" or update.get("result") != "succeeded":
            continue
        try:  # the value of a structured key is JSON text
            value = json.loads(get(update, "config", key, "value"))
            defaults = json.loads(get(update, "config", "kai-fleet:scheduler", "value") or "{}")
        except (TypeError, ValueError):
            continue
        version = get(value, *below, "scheduler", "version") or get(defaults, "version")
        if isinstance(version, str) and version != team.version:
            return version
    return None


def for_people(administrators: str, oidc: Oidc) -> str:
    """A kubeconfig without credentials: each person logs in at the team's identity provider.

    `administrators` is the text that `kubeconfig_of` returns: the result has its server and its
    authority. `kubectl oidc-login` takes the place of its certificate, opens a browser and keeps
    the token.
    """
    document: dict[str, Any] = yaml.safe_load(administrators)
    arguments = [
        f"--oidc-issuer-url={oidc.issuer}",
        f"--oidc-client-id={oidc.client_id}",
        *[f"--oidc-extra-scope={scope}" for scope in oidc.scopes],
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


def backup_ages(stack: str) -> dict[str, str]:
    """The time since the last success of each CronJob of a backup, by its name: `5 h 20 min`.

    Without those that never had one. Raises KubeError as the host's API does.
    """
    now = datetime.now(UTC)
    with closing(host_of_stack(stack)) as host:
        cron_jobs = host.list("/apis/batch/v1/cronjobs", labelSelector=LABEL)
    ages = dict[str, str]()
    for cron_job in cron_jobs:
        success = moment(get(cron_job, "status", "lastSuccessfulTime"))
        if success is not None:
            ages[str(get(cron_job, "metadata", "name"))] = f"{age(now - success)} ago"
    return ages


def of_account(team: str, context: str, days: int, platform: str, file: str | None = None) -> str:
    """A kubeconfig for a team's own stack, with a token of its service account.

    Args:
        team: The team.
        context: The context that has the cluster's address and authority, and whose user may
            create tokens.
        days: How long the token is to work. The API server may shorten that.
        platform: The stack of the platform, for messages.
        file: The kubeconfig with the context; None or "" for your own.

    Raises:
        UserError: The cluster refuses a token, does not answer, or answers without a token; or the
            kubeconfig is of no use.
    """
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": days * _SECONDS_PER_DAY},
    }
    try:
        target = connection(file=file, context=context)
        with closing(Api(target)) as api:
            answer = api.post(f"/api/v1/namespaces/{ACCOUNTS}/serviceaccounts/{team}/token", body)
    except RefusedError as error:
        raise UserError(
            f"the cluster gives no token for team {team} ({error}). Grant the team in"
            f" kai-fleet:teamStacks of Pulumi.{platform}.yaml and run: {update_command(platform)};"
            f" or use a context that may create tokens of accounts in namespace {ACCOUNTS}"
        ) from None
    except KubeError as error:
        raise UserError(f"the cluster of context {context} cannot be asked: {error}") from None
    token = get(answer, "status", "token")
    if not isinstance(token, str):
        raise UserError(
            f"the cluster of context {context} answers without a token for team {team}; see that"
            f" its server is a Kubernetes API: {target.host}"
        )
    cluster = {"server": target.host}
    if target.authority:
        cluster["certificate-authority-data"] = base64.b64encode(target.authority).decode()
    return tenant_kubeconfig.kubeconfig_text(f"{context}-{team}", cluster, {"token": token})
