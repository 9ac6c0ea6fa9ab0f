"""Read from a team's vCluster what blocks an update; nothing is written."""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.cluster.kube.objects import MALFORMED
from kai_fleet.releases.keys import KAI_NAMESPACE

_SECONDS: Final = 10.0
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_HOOKS: Final = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
# Of a namespace's conditions: what is left in it, such as `pods. has 1 resource instances`.
_REMAINING: Final = re.compile(r"([a-z0-9]+)\.([a-z0-9.-]*) has \d+ resource")


class NoAnswerError(Exception):
    """The cluster cannot be asked; the message completes "… did not answer"."""


@contextmanager
def _api(kubeconfig: str) -> Iterator[Api]:
    """Raise NoAnswerError, also for what no Kubernetes answers: the API server is a tenant's."""
    try:
        with closing(Api.of_kubeconfig(kubeconfig, seconds=_SECONDS)) as api:
            yield api
    except KubeError as why:
        raise NoAnswerError(f"it does not answer: {why}") from None
    except MALFORMED as why:
        answer = f"it answers what no Kubernetes does ({type(why).__name__})"
        raise NoAnswerError(answer) from None


def webhook(kubeconfig: str, hook: str) -> tuple[str, bool]:
    """Kind and name of the object that has a webhook, and whether it is KAI's.

    Raises NoAnswerError.
    """
    with _api(kubeconfig) as api:
        for kind in _HOOKS:
            for item in (api.find(f"{_ADMISSION}/{kind}s") or {}).get("items", []):
                for each in item.get("webhooks") or []:
                    if each["name"] == hook:
                        service = each["clientConfig"].get("service") or {}
                        of_kai = service.get("namespace") == KAI_NAMESPACE
                        return f"{kind}/{item['metadata']['name']}", of_kai
    raise NoAnswerError(f"it has no webhook {hook}")


def held_in(kubeconfig: str, namespace: str) -> list[str]:
    """The objects that finalizers keep in a namespace being deleted: kind/name of each.

    Raises NoAnswerError.
    """
    with _api(kubeconfig) as api:
        space = api.get(f"/api/v1/namespaces/{namespace}")
        found = [f"namespace/{namespace}"] if _is_held(space) else []
        for condition in (space.get("status") or {}).get("conditions") or []:
            for plural, group in _REMAINING.findall(str(condition.get("message"))):
                version = "api/v1"
                if group:
                    preferred = api.get(f"/apis/{group}")["preferredVersion"]
                    version = f"apis/{preferred['groupVersion']}"
                names = [
                    str(item["metadata"]["name"])
                    for item in api.list(f"/{version}/namespaces/{namespace}/{plural}")
                    if _is_held(item)
                ]
                found += [f"{plural}{'.' if group else ''}{group}/{name}" for name in names]
        return found


def _is_held(item: Mapping[str, Any]) -> bool:
    """Whether an object has a finalizer that is not Kubernetes' own."""
    finalizers = map(str, item["metadata"].get("finalizers") or [])
    return any("kubernetes.io/" not in name and "/" in name for name in finalizers)
