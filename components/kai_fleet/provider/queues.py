"""The Queue objects of one tree in one cluster: read, made as wanted, removed.

A tree knows its queues by their label `kai-fleet/tree`. So a run that was killed before it could
write down what it made leaves nothing behind: the next one finds it by the label.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, Final

from kai_fleet.kube.api import Api, Object
from kai_fleet.kube.errors import RefusedError, UnreachableError, complaint
from kai_fleet.provider import PluginError

TREE: Final = "kai-fleet/tree"
API_VERSION: Final = "scheduling.run.ai/v2"
KIND: Final = "Queue"
PATH: Final = f"/apis/{API_VERSION}/queues"
_MANAGER: Final = "kai-fleet"
Specs = Mapping[str, Mapping[str, Any]]
Labels = Mapping[str, Mapping[str, str]]

# What KAI's chart makes from v0.10 on, unless told not to. They stay when it is uninstalled.
DEFAULT_QUEUES: Final = ("default-parent-queue", "default-queue")
_MANAGEMENT: Final = "kai.resources/"  # the API group of Projects and Departments
_WORKERS: Final = 8  # a queue's webhook answers one request after the other anyway
_WEBHOOK_SECONDS: Final = 30.0
_GONE_SECONDS: Final = 60.0


class ClusterAwayError(PluginError):
    """The cluster's API does not answer, or there is no way to it."""


class SomeQueuesError(PluginError):
    """Not every queue is as wanted; those that are stay so."""


class Queues:
    """The queues of the tree called `tree` in the cluster behind `api`.

    `cluster` is its name in messages; for `patience` seconds a server that does not answer is asked
    again.
    """

    def __init__(
        self,
        api: Api,
        tree: str,
        cluster: str = "",
        cancelled: Callable[[], bool] = lambda: False,
        patience: float = 15.0,
    ) -> None:
        self._api, self._tree, self._cluster = api, tree, cluster or api.host
        self._cancelled, self._patience = cancelled, patience
        self._away = False  # a server that was waited for in vain is not waited for again

    def live(self, known: Iterable[str] = ()) -> dict[str, Object]:
        """The objects by name: those of this tree, and of those `known` the ones of no tree.

        Without the CRD there are none. Raises ClusterAwayError, and PluginError for a refusal.
        """
        live, names = self._all(), set(known)
        charts = {name: live[name] for name in names if _of_a_chart(live.get(name))}
        return charts | self._ours(live, names)

    def make(self, specs: Specs, known: Iterable[str] = (), labels: Labels | None = None) -> None:
        """Have exactly these queues: create, change and delete what differs, parents first.

        `labels` are more labels of some of them; others that they carry are left alone.
        A default queue of a KAI's chart is used as it is, and neither changed nor deleted. Raises
        PluginError before anything is touched where it differs, another's queue has the name of one
        or a project's controller has taken one of ours, and SomeQueuesError with every refusal
        where the cluster refused some.
        """
        live = self._all()
        if managed := {name: by for name in specs if (by := _managed_by(live.get(name, {})))}:
            name = min(managed)
            raise PluginError(
                f"queue {name} is {managed[name]}'s, made by KAI Resource Management, which writes"
                f" it anew: give yours another name, or take {name} out of that. To keep it from"
                " queues that are not its own: allowExternalQueues: true in its chart's commonArgs"
            )
        ours = self._ours(live, set(known))
        used = {name for name in specs if _of_a_chart(live.get(name))}
        for name in sorted(used):
            if differs := differences(live[name].get("spec") or {}, specs[name]):
                raise PluginError(
                    f"{different(name, differs)}; or, to take it over: kubectl label queue {name}"
                    f" {TREE}={self._tree}"
                )
        if foreign := sorted(specs.keys() & live.keys() - ours.keys() - used):
            raise PluginError(self._foreign(foreign, live))

        def put(name: str) -> None:
            more = (labels or {}).get(name, {})
            self._put(name, specs[name], {**more, TREE: self._tree}, ours.get(name))

        failed: list[str] = []
        parents = {n: spec.get("parentQueue") for n, spec in specs.items() if n not in used}
        for names in _by_depth(parents):
            failed += self._each(names, put)
        failed += self._delete({name: ours[name] for name in ours if name not in specs})
        if failed:
            raise SomeQueuesError(_several(failed))

    def remove(self, known: Iterable[str] = ()) -> None:
        """Delete them all, children first, and wait until they are gone."""
        names = set(known)
        if failed := self._delete(self._ours(self._all(), names)):
            raise SomeQueuesError(_several(failed))
        deadline = time.monotonic() + _GONE_SECONDS
        while left := self._ours(self._all(), names):
            if time.monotonic() > deadline:
                raise SomeQueuesError(
                    f"still there after {_GONE_SECONDS:.0f} s: {', '.join(sorted(left))}."
                    f" Look with: kubectl get queues {min(left)} -o yaml"
                )
            time.sleep(0.2)

    def _all(self) -> dict[str, Object]:
        try:
            items: list[Object] = self._patient(lambda: self._api.list(PATH))
        except RefusedError as error:
            if error.status == 404:
                return {}
            raise PluginError(
                f"the queues of cluster {self._cluster} cannot be listed: {_words(error)}"
            ) from None
        return {item["metadata"]["name"]: item for item in items}

    def _ours(self, live: dict[str, Object], known: set[str]) -> dict[str, Object]:
        return {
            name: item
            for name, item in live.items()
            if _tree_of(item) == self._tree
            or (name in known and _tree_of(item) is None and not _of_a_chart(item))
        }

    def _foreign(self, names: list[str], live: Mapping[str, Object]) -> str:
        one = names[0]
        whose = _tree_of(live[one])
        owner = f"belongs to the tree {whose}" if whose else "was made by somebody else"
        more = f" (and {len(names) - 1} more: {', '.join(names[1:4])})" if len(names) > 1 else ""
        return (
            f"queue {one} is in the cluster already and {owner}{more}. Give yours another name;"
            f" or, to take it over: kubectl label queue {one} --overwrite {TREE}={self._tree}"
        )

    def _put(
        self,
        name: str,
        spec: Mapping[str, Any],
        labels: Mapping[str, str],
        now: Object | None,
        attempts: int = 4,
    ) -> None:
        body: Object = {"apiVersion": API_VERSION, "kind": KIND, "spec": spec}
        if now is None:
            body["metadata"] = {"name": name, "labels": dict(labels)}
            self._patient(lambda: self._api.post(PATH, body, fieldManager=_MANAGER))
            return
        carried, path = now["metadata"].get("labels") or {}, f"{PATH}/{name}"
        if now.get("spec") == spec and labels.items() <= carried.items():
            return
        # A replacement, not an apply: a field that others set has to go too.
        body["metadata"] = {**now["metadata"], "labels": {**carried, **labels}}
        try:
            self._patient(lambda: self._api.put(path, body, fieldManager=_MANAGER))
        except RefusedError as error:
            # KAI writes a queue's status whenever a pod of it comes or goes.
            if error.status != HTTPStatus.CONFLICT or attempts == 1:
                raise
            self._put(name, spec, labels, self._patient(lambda: self._api.get(path)), attempts - 1)

    def _delete(self, items: Mapping[str, Object]) -> list[str]:
        def delete(name: str) -> None:
            self._patient(lambda: self._api.delete(f"{PATH}/{name}"))

        parents = {name: item.get("spec", {}).get("parentQueue") for name, item in items.items()}
        levels = reversed(_by_depth(parents))
        return [line for names in levels for line in self._each(names, delete)]

    def _each(self, names: list[str], act: Callable[[str], None]) -> list[str]:
        """Do it for all of them, several at once; the sentences of those that failed."""

        def attempt(name: str) -> str | None:
            if self._cancelled():
                return f"queue {name}: not done, the update was cancelled"
            try:
                act(name)
            except (RefusedError, PluginError) as error:
                words = _words(error) if isinstance(error, RefusedError) else error
                return f"queue {name}: {words}"
            return None

        with ThreadPoolExecutor(_WORKERS) as workers:
            return [line for line in workers.map(attempt, names) if line]

    def _patient(self, ask: Callable[[], Any]) -> Any:
        """Ask again while a webhook or an API server that is just starting does not answer.

        `failurePolicy: Fail` makes KAI's queue webhook a part that must be up; an API server
        inside a vCluster refuses connections for a second after an upgrade.
        """
        begun = time.monotonic()
        while True:
            waited = time.monotonic() - begun
            try:
                return ask()
            except RefusedError as error:
                late = self._cancelled() or waited > _WEBHOOK_SECONDS
                if late or not _passing(error):
                    raise
            except UnreachableError as error:
                if self._away or self._cancelled() or waited > self._patience:
                    self._away = True
                    raise ClusterAwayError(
                        f"cluster {self._cluster} at {self._api.host}: {complaint(error)}. See that"
                        " kubectl reaches it, then run the same command again"
                    ) from None
            time.sleep(0.5)


def _managed_by(item: Mapping[str, Any]) -> str | None:
    """`Project NAME` or `Department NAME`, where KAI Resource Management owns a queue."""
    for owner in item.get("metadata", {}).get("ownerReferences") or ():
        if str(owner.get("apiVersion", "")).startswith(_MANAGEMENT):
            return f"{owner['kind']} {owner['name']}"
    return None


def _of_a_chart(item: Mapping[str, Any] | None) -> bool:
    """Whether it is a default queue of a KAI's chart that no tree has taken over."""
    if item is None or item["metadata"]["name"] not in DEFAULT_QUEUES or _tree_of(item) is not None:
        return False
    return (item["metadata"].get("annotations") or {}).get("helm.sh/resource-policy") == "keep"


def differences(live: Mapping[str, Any], declared: Mapping[str, Any]) -> list[str]:
    """The fields of a queue that are not as declared, each with both values."""
    one, other = dict(_fields(live)), dict(_fields(declared))
    return [
        f"{key} is {one.get(key, 'unset')} there, and {other.get(key, 'unset')} here"
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]


def different(name: str, differs: list[str]) -> str:
    """The sentence for a default queue that is not as wanted."""
    more = f", and {len(differs) - 3} more" if len(differs) > 3 else ""
    return (
        f"queue {name} is in the cluster already, from a KAI's chart, and differs:"
        f" {'; '.join(differs[:3])}{more}. Write it as it is there, or give yours another name"
    )


def _fields(spec: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in spec.items():
        if isinstance(value, Mapping):
            yield from _fields(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _tree_of(item: Mapping[str, Any]) -> str | None:
    tree = (item["metadata"].get("labels") or {}).get(TREE)
    return None if tree is None else str(tree)


def _by_depth(parents: Mapping[str, str | None]) -> list[list[str]]:
    """The names level by level, parents first; what hangs on a cycle comes last."""
    left = dict(parents)
    levels: list[list[str]] = []
    while left:
        level = [name for name, parent in left.items() if parent not in left] or list(left)
        levels.append(level)
        for name in level:
            del left[name]
    return levels


def _passing(error: RefusedError) -> bool:
    webhook = any(words in error.message for words in ("failed calling webhook", "failed to call"))
    return error.status == 429 or (error.status == 500 and webhook)


def _words(error: RefusedError) -> str:
    """The server's own message."""
    if error.status == 404 and not error.message:
        return "the cluster knows no Queues: KAI is not installed there"
    return error.message or complaint(error)


def _several(failed: list[str]) -> str:
    more = f"\nand {len(failed) - 10} more like these" if len(failed) > 10 else ""
    return "\n".join(failed[:10]) + more
