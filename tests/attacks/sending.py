"""Sending an object to a team's namespace, as somebody."""

import json
import secrets
from contextlib import suppress

from kubernetes.client.exceptions import ApiException

from tests.attacks.attempts.attempt import Attempt
from tests.attacks.host import Host
from tests.attacks.http import Http
from tests.attacks.objects import Object

_PATHS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Service": "/api/v1/namespaces/{}/services",
    "Endpoints": "/api/v1/namespaces/{}/endpoints",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
}


def _path(team: str, body: Object) -> str:
    return _PATHS[body["kind"]].format(f"team-{team}")


def sent(host: Host, who: str, team: str, body: Object) -> None:
    """Raises ApiException where the API server refuses it."""
    Http(host.accounts[who]).post(_path(team, body), body, dryRun="All")


def tried(host: Host, who: str, team: str, attempt: Attempt) -> None:
    """The attempt, or its change of an object that the administrator made. Raises ApiException."""
    body = attempt.body(team)
    if attempt.change is None:
        sent(host, who, team, body)
        return
    # A name of its own: of the pod of the attempt before something may still delete the name. KAI
    # names a ConfigMap after the pod.
    name = f"there-{secrets.token_hex(3)}"
    body = json.loads(json.dumps(body).replace("train-a", name))
    if body["kind"] in ("Pod", "StatefulSet", "ConfigMap", "Service", "PersistentVolumeClaim"):
        body["metadata"]["name"] = name
    name = body["metadata"]["name"]
    admin, path = Http(host.admin), _path(team, body)
    admin.post(path, body)
    try:
        sub, patch = attempt.change
        patch = patch(team) if callable(patch) else patch
        where = f"{path}/{name}" + (f"/{sub}" if sub else "")
        Http(host.accounts[who]).ask(attempt.verb, where, patch, dryRun="All")
    finally:
        with suppress(ApiException):
            admin.ask("DELETE", f"{path}/{name}", gracePeriodSeconds="0")
