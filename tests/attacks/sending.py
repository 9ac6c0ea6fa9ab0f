"""Sending an object to a team's namespace, as somebody."""

import json
import secrets
from contextlib import suppress

from kubernetes.client.exceptions import ApiException

from tests.attacks.attempts import Attempt
from tests.attacks.host import Host
from tests.attacks.http import Http
from tests.attacks.objects import Object

_GROUPS = {
    "EndpointSlice": "/apis/discovery.k8s.io/v1",
    "Deployment": "/apis/apps/v1",
    "StatefulSet": "/apis/apps/v1",
}


# Kinds of which a name says nothing.
NAMED = (
    *("Pod", "StatefulSet", "ConfigMap", "Service", "PersistentVolumeClaim"),
    *("Endpoints", "EndpointSlice", "Deployment", "ServiceAccount"),
)


def _path(team: str, body: Object) -> str:
    kind = body["kind"]
    plural = kind.lower() if kind == "Endpoints" else f"{kind.lower()}s"
    return f"{_GROUPS.get(kind, '/api/v1')}/namespaces/team-{team}/{plural}"


def account_of(who: str, team: str) -> str:
    """The account of a team that an attempt names: `vcluster`, `stack delegate`."""
    kind, *more = who.split()
    return " ".join([kind, team, *more])


def send(host: Host, account: str, team: str, body: Object) -> None:
    """Raises ApiException where the API server refuses it."""
    Http(host.accounts[account]).post(_path(team, body), body, dryRun="All")


def attempt_by(host: Host, account: str, team: str, attempt: Attempt) -> ApiException | None:
    """What refuses the attempt, or its change of an object that the administrator made."""
    try:
        _attempt(host, account, team, attempt)
    except ApiException as why:
        return why
    return None


def _attempt(host: Host, account: str, team: str, attempt: Attempt) -> None:
    body, change = attempt.body(team), attempt.change(team)
    if change is None:
        send(host, account, team, body)
        return
    # A name of its own: of the pod of the attempt before something may still delete the name. KAI
    # names a ConfigMap after the pod.
    name = f"there-{secrets.token_hex(3)}"
    body = json.loads(json.dumps(body).replace("train-a", name))
    if body["kind"] in NAMED:
        body["metadata"]["name"] = name
    name = body["metadata"]["name"]
    admin, path = Http(host.admin), _path(team, body)
    admin.post(path, body)
    try:
        verb, sub, patch = change
        where = f"{path}/{name}" + (f"/{sub}" if sub else "")
        Http(host.accounts[account]).ask(verb, where, patch, dryRun="All")
    finally:
        with suppress(ApiException):
            admin.ask("DELETE", f"{path}/{name}", gracePeriodSeconds="0")
