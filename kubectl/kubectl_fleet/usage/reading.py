"""What a cluster answers of its nodes, pods and queues: a list request for each kind, at once."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from kubectl_fleet.kube.api import Api
from kubectl_fleet.kube.errors import RefusedError, UnreachableError
from kubectl_fleet.releases.keys import KAI_NAMESPACE

Object: TypeAlias = Mapping[str, Any]
KINDS: Final[Mapping[str, str]] = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "queues": "/apis/scheduling.run.ai/v2/queues",
    "podgroups": "/apis/scheduling.run.ai/v2alpha2/podgroups",
    # Which KAI runs here, by the images of its deployments.
    "deployments": f"/apis/apps/v1/namespaces/{KAI_NAMESPACE}/deployments",
}
_NAMESPACED: Final = ("pods", "podgroups", "events", "replicasets", "statefulsets", "jobs")
_UNAUTHORIZED, _ABSENT, _FAILS = 401, 404, 500


@dataclass(frozen=True)
class ClusterObjects:
    """The objects of a cluster by kind, as `KINDS` names them.

    `forbidden` has for a kind that this user may not list the API server's own words;
    `not_served` are kinds that the cluster does not know: without KAI there are no queues.
    `namespace` is the only one whose pods are here, None where those of all are.
    """

    objects: Mapping[str, Sequence[Object]] = field(default_factory=dict)
    forbidden: Mapping[str, str] = field(default_factory=dict)
    not_served: frozenset[str] = frozenset()
    namespace: str | None = None

    def all(self, kind: str) -> Sequence[Object]:
        """The objects of a kind; none where they may not be listed, or are not served."""
        return self.objects.get(kind, ())


def read(
    api: Api, kinds: Mapping[str, str] = KINDS, namespace: str | None = None
) -> ClusterObjects:
    """Ask for everything at once. Pods that may not be listed are asked for in `namespace`.

    Raises UnreachableError where the cluster does not answer, or does not accept the credentials.
    """
    every = _read(api, kinds)
    if namespace is None or "pods" not in every.forbidden:
        return every
    inside = {kind: _within(kinds[kind], namespace) for kind in _NAMESPACED if kind in kinds}
    own = _read(api, inside)
    elsewhere = {kind: why for kind, why in every.forbidden.items() if kind not in inside}
    return ClusterObjects(
        {**every.objects, **own.objects},
        {**elsewhere, **own.forbidden},
        every.not_served | own.not_served,
        namespace if "pods" in own.objects else None,
    )


def _within(path: str, namespace: str) -> str:
    group, _, kind = path.rpartition("/")
    return f"{group}/namespaces/{namespace}/{kind}"


def _read(api: Api, kinds: Mapping[str, str]) -> ClusterObjects:
    with ThreadPoolExecutor(max_workers=len(kinds)) as pool:
        answers = list(pool.map(lambda path: _list(api, path), kinds.values()))
    objects: dict[str, Sequence[Object]] = {}
    forbidden: dict[str, str] = {}
    not_served = set()
    for kind, answer in zip(kinds, answers, strict=True):
        if not isinstance(answer, RefusedError):
            objects[kind] = answer
        elif answer.status == _UNAUTHORIZED:
            raise UnreachableError("it does not accept the credentials (401)")
        elif answer.status >= _FAILS:
            raise UnreachableError(f"it answers {answer}")
        elif answer.status == _ABSENT:
            not_served.add(kind)
        else:
            forbidden[kind] = answer.message or str(answer)
    return ClusterObjects(objects, forbidden, frozenset(not_served))


def _list(api: Api, path: str) -> Sequence[Object] | RefusedError:
    """A whole collection in one answer, as it is now: what pages cost is more than they save."""
    try:
        return api.get(path).get("items") or []
    except RefusedError as error:
        return error
