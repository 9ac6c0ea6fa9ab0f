"""Read from a cluster of a stack what stands in the way of an update; nothing is written."""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError
from kai_fleet.kube.kubeconfig import connection
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet_cli.cluster_reader import NoAnswerError
from kai_fleet_cli.recovery.state import OF_VCLUSTER, REFUSED, ExportedState

_SECONDS: Final = 10.0
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_HOOKS: Final = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
# Of a namespace's conditions: what is left in it, such as `pods. has 1 resource instances`.
_REMAINING: Final = re.compile(r"([a-z0-9]+)\.([a-z0-9.-]*) has \d+ resource")
_MALFORMED: Final = (KeyError, TypeError, AttributeError, ValueError)


@contextmanager
def api_of(provider: Mapping[str, Any], kubeconfig: str | None = None) -> Iterator[Api]:
    """A client of the cluster that the provider with these inputs reaches.

    `kubeconfig` is the path for a provider that names none. Raises NoAnswerError, also for what no
    Kubernetes answers: the API server may be a tenant's.
    """
    if REFUSED in provider:
        raise NoAnswerError(str(provider[REFUSED]))
    own, context = provider.get("kubeconfig"), provider.get("context")
    try:
        # As for the provider, it is a file's content or its path.
        if own and "\n" in own:
            found = connection(own, context=context)
        else:
            found = connection(file=own or kubeconfig, context=context)
        with closing(Api(found, _SECONDS)) as api:
            yield api
    except KubeError as why:
        raise NoAnswerError(f"it does not answer: {why}") from None
    except _MALFORMED as why:
        answer = f"it answers what no Kubernetes does ({type(why).__name__})"
        raise NoAnswerError(answer) from None


def webhook(known: ExportedState, team: str, hook: str) -> tuple[str, bool]:
    """Kind and name of the object that has a webhook in a vCluster, and whether it is KAI's.

    Raises NoAnswerError, and KeyError where the state does not know the vCluster.
    """
    own = f"{OF_VCLUSTER}pulumi:providers:kubernetes::{team}"
    providers = {urn: inputs for urn, inputs in known.providers().items() if urn.endswith(own)}
    if not providers:
        raise KeyError(team)
    with api_of(next(iter(providers.values()))) as api:
        for kind in _HOOKS:
            for item in (api.find(f"{_ADMISSION}/{kind}s") or {}).get("items", []):
                for each in item.get("webhooks") or []:
                    if each["name"] == hook:
                        service = each["clientConfig"].get("service") or {}
                        of_kai = service.get("namespace") == KAI_NAMESPACE
                        return f"{kind}/{item['metadata']['name']}", of_kai
    raise NoAnswerError(f"it has no webhook {hook}")


def held_in(provider: Mapping[str, Any], kubeconfig: str | None, namespace: str) -> list[str]:
    """What others' finalizers keep of a namespace that is to go: kind/name of each."""
    with api_of(provider, kubeconfig) as api:
        space = api.find(f"/api/v1/namespaces/{namespace}") or {"metadata": {}}
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
    """Whether somebody else than Kubernetes keeps an object that is to go."""
    finalizers = map(str, item["metadata"].get("finalizers") or [])
    return any("kubernetes.io/" not in name and "/" in name for name in finalizers)
