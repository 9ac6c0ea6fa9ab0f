"""Reading from a cluster what a stack has there; nothing is written through it."""

import datetime
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError, RefusedError, UnusableKubeconfigError
from kai_fleet.kube.kubeconfig import connection
from kai_fleet.releases import helm_record
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet_cli.cluster_reader import NoAnswerError
from kai_fleet_cli.display.terminal import Say
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery.state import REFUSED, ExportedState, Operation, provider_of

_MANAGER: Final = "pulumi"  # the provider writes under managers whose names begin so
_ABSENT: Final = 404
_SECONDS: Final = 10.0
# Of a namespace's conditions: what is left in it, such as `pods. has 1 resource instances`.
_REMAINING: Final = re.compile(r"([a-z0-9]+)\.([a-z0-9.-]*) has \d+ resource")
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"


@dataclass(frozen=True)
class LiveObject:
    """An object that is there: whether a Pulumi provider writes it, and when it was made."""

    by_pulumi: bool
    made: datetime.datetime
    content: Mapping[str, Any]

    def has(self, inputs: Mapping[str, Any]) -> bool:
        """Whether it is as these inputs want it; the server may have added to it."""
        return _within(inputs, self.content)


@contextmanager
def _in_words() -> Iterator[None]:
    """Raise NoAnswerError for what is no object: the API server that answers may be a tenant's,
    and so may be what it answers.
    """
    try:
        yield
    except (KeyError, TypeError, AttributeError, ValueError) as why:
        answer = f"it answers what no Kubernetes does ({type(why).__name__})"
        raise NoAnswerError(answer) from None


class LiveCluster:
    """One cluster, reached as the provider with these inputs reaches it.

    `kubeconfig` is the path for a provider without one: KUBECONFIG in the engine's environment.
    """

    def __init__(self, provider: Mapping[str, Any], kubeconfig: str | None = None) -> None:
        if REFUSED in provider:
            raise NoAnswerError(str(provider[REFUSED]))
        try:
            # As for the provider, it is a file's content or its path.
            own, context = provider.get("kubeconfig"), provider.get("context")
            if own and "\n" in own:
                way = connection(own, context=context)
            else:
                way = connection(file=own or kubeconfig, context=context)
        except UnusableKubeconfigError as why:
            raise NoAnswerError(str(why)) from None
        self._api = Api(way, _SECONDS)

    @_in_words()
    def object(self, inputs: Mapping[str, Any], namespace: str, name: str) -> LiveObject | None:
        """The object; None where it is not there, or about to go."""
        version, kind = str(inputs["apiVersion"]), str(inputs["kind"])
        group = f"/apis/{version}" if "/" in version else f"/api/{version}"
        served = (self._get(group) or {}).get("resources", [])
        plurals = [it["name"] for it in served if it["kind"] == kind and "/" not in it["name"]]
        if not plurals:
            return None
        where = f"/namespaces/{namespace}" if namespace else ""
        live = self._get(f"{group}{where}/{plurals[0]}/{name}")
        if live is None or live["metadata"].get("deletionTimestamp"):
            return None
        managers = live["metadata"].get("managedFields") or []
        return LiveObject(
            any(str(entry.get("manager", "")).startswith(_MANAGER) for entry in managers),
            datetime.datetime.fromisoformat(live["metadata"]["creationTimestamp"]),
            live,
        )

    @_in_words()
    def release(self, namespace: str, name: str) -> str:
        """A Helm release's status, as Helm keeps it; "absent" without one."""
        labels = [it["metadata"]["labels"] for it in self._secrets(namespace, name)]
        records = [(int(label["version"]), label["status"]) for label in labels]
        return str(max(records, default=(0, "absent"))[1])

    @_in_words()
    def vclusters(self, namespace: str) -> list[str]:
        """The vClusters in a namespace that are not about to go."""
        path = f"/apis/apps/v1/namespaces/{namespace}"
        kinds = ("statefulsets", "deployments")  # without a volume of its own
        answers = [self._get(f"{path}/{kind}", labelSelector="app=vcluster") for kind in kinds]
        live = [it["metadata"] for answer in answers for it in (answer or {}).get("items", [])]
        return [str(it["name"]) for it in live if not it.get("deletionTimestamp")]

    def forged(self, namespace: str, name: str) -> list[helm_record.Forged]:
        """Records of a vCluster's release that its chart did not make."""
        return helm_record.forged(self._secrets(namespace, name), name, namespace)

    @_in_words()
    def uid(self) -> str:
        """Which cluster it is: the UID of its namespace `kube-system`."""
        system = self._get("/api/v1/namespaces/kube-system")
        return str(system["metadata"]["uid"]) if system else ""

    @_in_words()
    def webhook(self, hook: str) -> tuple[str, bool]:
        """The kind and name of the object that has a webhook, and whether that is one of KAI's."""
        for kind in ("validatingwebhookconfiguration", "mutatingwebhookconfiguration"):
            for item in (self._get(f"{_ADMISSION}/{kind}s") or {}).get("items", []):
                for it in item.get("webhooks") or []:
                    if it["name"] == hook:
                        service = it["clientConfig"].get("service") or {}
                        own = service.get("namespace") == KAI_NAMESPACE
                        return f"{kind}/{item['metadata']['name']}", own
        raise NoAnswerError(f"it has no webhook {hook}")

    @_in_words()
    def held_in(self, namespace: str) -> list[str]:
        """What others' finalizers keep of a namespace that is to go: kind/name of each."""
        space = self._get(f"/api/v1/namespaces/{namespace}") or {"metadata": {}}
        found = [f"namespace/{namespace}"] if _is_held(space) else []
        for condition in (space.get("status") or {}).get("conditions") or []:
            for plural, group in _REMAINING.findall(str(condition.get("message"))):
                served = self._get(f"/apis/{group}") if group else None
                version = (
                    f"apis/{served['preferredVersion']['groupVersion']}" if served else "api/v1"
                )
                path = f"/{version}/namespaces/{namespace}/{plural}"
                items = (self._get(path) or {}).get("items", [])
                names = [str(it["metadata"]["name"]) for it in items if _is_held(it)]
                found += [f"{plural}{'.' if group else ''}{group}/{name}" for name in names]
        return found

    def _secrets(self, namespace: str, release: str) -> list[Any]:
        wanted = helm_record.SELECTOR.format(release)
        path = f"/api/v1/namespaces/{namespace}/secrets"
        items: list[Any] = (self._get(path, labelSelector=wanted) or {}).get("items", [])
        return items

    def _get(self, path: str, **query: str) -> dict[str, Any] | None:
        try:
            return self._api.get(path, **query)
        except RefusedError as why:
            if why.status == _ABSENT:
                return None
            raise NoAnswerError(f"it answers {why}") from None
        except KubeError as why:
            raise NoAnswerError(f"it does not answer: {why}") from None


def _is_held(item: Mapping[str, Any]) -> bool:
    """Whether somebody else than Kubernetes keeps an object that is to go."""
    finalizers = map(str, item["metadata"].get("finalizers") or [])
    return any("kubernetes.io/" not in it and "/" in it for it in finalizers)


def wrong_record(cluster: LiveCluster, operation: Operation) -> str:
    """A sentence where a tenant may have written what Helm would do with a vCluster; else ""."""
    namespace, name = operation.address
    forged = cluster.forged(namespace, name)
    return helm_record.sentence(forged, name, namespace) if forged else ""


def check_records(now: ExportedState, kubeconfig: str | None, say: Say) -> None:
    """Check Helm's records of a stack's vClusters before something else than an update acts on
    them. Of an update's own steps `fleet-probe record` looks at them.

    A record that cannot be read stops nothing: Helm cannot read it either. Raises UserError where
    a record is not of its chart.
    """
    known, wrong = now.providers(), list[str]()
    for resource in now.resources:
        operation = Operation("updating", resource)
        if not operation.of_vcluster:
            continue
        try:
            cluster = LiveCluster(known[provider_of(resource)], kubeconfig)
            wrong += filter(None, [wrong_record(cluster, operation)])
        except (NoAnswerError, KeyError) as why:
            say(
                f"warning: Helm's record of release {operation.address[1]} was not looked at: {why}"
            )
    if wrong:
        raise UserError(f"{'. '.join(wrong)}; then run the same command again. Nothing was done")


def _within(wanted: Any, live: Any) -> bool:
    if isinstance(wanted, Mapping):
        # The SDK cannot have dashes in the `x-kubernetes-…` of a CRD.
        spelt = {
            key.replace("_", "-") if key.startswith("x_kubernetes_") else key: value
            for key, value in wanted.items()
        }
        return isinstance(live, Mapping) and all(
            _within(value, live.get(key)) for key, value in spelt.items()
        )
    if isinstance(wanted, list):
        same = isinstance(live, list) and len(live) == len(wanted)
        return same and all(map(_within, wanted, live))
    return wanted == live or str(wanted) == str(live)
