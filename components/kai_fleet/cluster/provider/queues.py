"""Read, reconcile and delete the Queue objects of one tree in one cluster.

The label `kai-fleet/tree` marks the queues of a tree. If a run is killed before its state is saved,
the next one finds the queues that it created by the label.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet.cluster.kube.api import JSON_PATCH, Api, Object
from kai_fleet.cluster.kube.errors import RefusedError, UnreachableError, complaint
from kai_fleet.cluster.provider import PluginError

TREE: Final = "kai-fleet/tree"
API_VERSION: Final = "scheduling.run.ai/v2"
KIND: Final = "Queue"
PATH: Final = f"/apis/{API_VERSION}/queues"
_MANAGER: Final = "kai-fleet"
Specs = Mapping[str, Mapping[str, Any]]
Labels = Mapping[str, Mapping[str, str]]

# Queues of KAI's chart from v0.10, by default. Uninstalling keeps them.
DEFAULT_QUEUES: Final = ("default-parent-queue", "default-queue")
_MANAGEMENT: Final = "kai.resources/"  # the API group of Projects and Departments
_WORKERS: Final = 8  # a queue's webhook answers one request after the other anyway
_WEBHOOK_SECONDS: Final = 30.0
_GONE_SECONDS: Final = 60.0


class ClusterAwayError(PluginError):
    """The cluster's API does not answer, or its kubeconfig cannot be used."""


class SomeQueuesError(PluginError):
    """Some queues could not be reconciled; the others are as declared."""


@dataclass
class Queues:
    """The queues of the tree called `tree` in the cluster behind `api`.

    `cluster` is its name in messages; for `patience` seconds a server that does not answer is asked
    again.
    """

    api: Api
    tree: str
    cluster: str = ""
    cancelled: Callable[[], bool] = lambda: False
    patience: float = 15.0
    away: bool = field(default=False, init=False)  # it did not answer in time: fail at once

    def live(self, known: Iterable[str] = ()) -> dict[str, Object]:
        """Queues by name: those of this tree, and `known` ones that belong to no tree.

        None without the CRD. Raises ClusterAwayError, and PluginError if the list is refused.
        """
        names = set(known)
        return {name: item for name, item in self._all().items() if self._has(item, names)}

    def make(self, specs: Specs, known: Iterable[str] = (), labels: Labels | None = None) -> None:
        """Have exactly these queues: create, change and delete what differs, parents first.

        `labels` are more labels of some of them; others that they carry are left alone.
        A default queue of a KAI's chart is used as it is, and neither changed nor deleted. Raises
        PluginError before anything is touched where a queue of others has the name of one, and
        SomeQueuesError with every refusal where the cluster refused some.
        """
        live, names = self._all(), set(known)
        there = [live[name] for name in sorted(specs.keys() & live.keys())]
        refusals = [self._refusal(item, specs[_name(item)], names) for item in there]
        if foreign := [refusal for refusal in refusals if refusal]:
            raise PluginError(_several(foreign))
        used = {name for name, item in live.items() if _of_a_chart(item)}

        def put(name: str) -> None:
            more = {**(labels or {}).get(name, {}), TREE: self.tree}
            self._put(name, specs[name], more, live.get(name))

        parents = {n: spec.get("parentQueue") for n, spec in specs.items() if n not in used}
        failed = [line for level in _by_depth(parents) for line in self._each(level, put)]
        own = {name: item for name, item in live.items() if self._has(item, names)}
        failed += self._delete({name: own[name] for name in own.keys() - specs.keys() - used})
        if failed:
            raise SomeQueuesError(_several(failed))

    def remove(self, known: Iterable[str] = ()) -> None:
        """Delete them all, children first, and wait until they are gone."""
        names = set(known)
        if failed := self._delete(self._deletable(names)):
            raise SomeQueuesError(_several(failed))
        deadline = time.monotonic() + _GONE_SECONDS
        while left := self._deletable(names):
            if time.monotonic() > deadline:
                raise SomeQueuesError(
                    f"still there after {_GONE_SECONDS:.0f} s: {', '.join(sorted(left))}."
                    f" Look with: kubectl get queues {min(left)} -o yaml"
                )
            time.sleep(0.2)

    def _all(self) -> dict[str, Object]:
        try:
            items: list[Object] = self._patient(lambda: self.api.list(PATH))
        except RefusedError as error:
            if error.status == 404:
                return {}
            raise PluginError(
                f"the queues of cluster {self.cluster} cannot be listed: {_words(error)}"
            ) from None
        return {_name(item): item for item in items}

    def _has(self, item: Object, known: set[str]) -> bool:
        """Whether a queue is one of this tree: by its label, or known and of no tree."""
        tree = _tree_of(item)
        return tree == self.tree or (tree is None and _name(item) in known)

    def _deletable(self, known: set[str]) -> dict[str, Object]:
        live = self.live(known)
        return {name: item for name, item in live.items() if not _of_a_chart(item)}

    def _refusal(self, item: Object, spec: Mapping[str, Any], known: set[str]) -> str:
        """Why an existing queue cannot be one of this tree; "" if it can."""
        name, whose = _name(item), _tree_of(item)
        for owner in item["metadata"].get("ownerReferences") or ():
            if str(owner.get("apiVersion", "")).startswith(_MANAGEMENT):
                return (
                    f"queue {name} is {owner['kind']} {owner['name']}'s, made by KAI Resource"
                    " Management, which writes it anew: give yours another name, or take"
                    f" {name} out of that. To keep it from queues that are not its own:"
                    " allowExternalQueues: true in its chart's commonArgs"
                )
        take_over = f"to take it over: kubectl label queue {name}"
        if _of_a_chart(item):
            differs = differences(item.get("spec") or {}, spec)
            own = f"{different(name, differs)}; or, {take_over} {TREE}={self.tree}"
            return own if differs else ""
        if self._has(item, known):
            return ""
        owner = f"belongs to the tree {whose}" if whose else "was made by somebody else"
        return (
            f"queue {name} is in the cluster already and {owner}. Give yours another name; or,"
            f" {take_over} --overwrite {TREE}={self.tree}"
        )

    def _put(
        self, name: str, spec: Mapping[str, Any], labels: Mapping[str, str], now: Object | None
    ) -> None:
        if now is None:
            about = {"name": name, "labels": labels}
            body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": about, "spec": spec}
            self._patient(lambda: self.api.post(PATH, body, fieldManager=_MANAGER))
            return
        carried = now["metadata"].get("labels") or {}
        if now.get("spec") == spec and labels.items() <= carried.items():
            return
        # The whole spec: a field that others set has to go too. KAI writes the status meanwhile.
        changes = [
            {"op": "add", "path": "/spec", "value": spec},
            {"op": "add", "path": "/metadata/labels", "value": {**carried, **labels}},
        ]
        path = f"{PATH}/{name}"
        self._patient(lambda: self.api.patch(path, changes, JSON_PATCH, fieldManager=_MANAGER))

    def _delete(self, items: Mapping[str, Object]) -> list[str]:
        def delete(name: str) -> None:
            self._patient(lambda: self.api.delete(f"{PATH}/{name}"))

        parents = {name: item.get("spec", {}).get("parentQueue") for name, item in items.items()}
        levels = reversed(_by_depth(parents))
        return [line for names in levels for line in self._each(names, delete)]

    def _each(self, names: list[str], act: Callable[[str], None]) -> list[str]:
        """Call `act` for all names in parallel; return the messages of those that failed."""

        def attempt(name: str) -> str:
            if self.cancelled():
                return f"queue {name}: not done, the update was cancelled"
            try:
                act(name)
            except (RefusedError, PluginError) as error:
                return f"queue {name}: {_words(error)}"
            return ""

        with ThreadPoolExecutor(_WORKERS) as workers:
            return [line for line in workers.map(attempt, names) if line]

    def _patient(self, ask: Callable[[], Any]) -> Any:
        """Retry while a webhook or an API server is starting and does not answer.

        KAI's queue webhook has `failurePolicy: Fail`, so it has to run; a vCluster's API server
        refuses connections for a second after an upgrade.
        """
        begun = time.monotonic()
        while True:
            waited = time.monotonic() - begun
            try:
                return ask()
            except RefusedError as error:
                late = self.cancelled() or waited > _WEBHOOK_SECONDS
                if late or not _passing(error):
                    raise
            except UnreachableError as error:
                if self.away or self.cancelled() or waited > self.patience:
                    self.away = True
                    raise ClusterAwayError(
                        f"cluster {self.cluster} at {self.api.host}: {complaint(error)}. See that"
                        " kubectl reaches it, then run the same command again"
                    ) from None
            time.sleep(0.5)


def differences(live: Mapping[str, Any], declared: Mapping[str, Any]) -> list[str]:
    """The fields of a queue that are not as declared, each with both values."""
    one, other = dict(_fields(live)), dict(_fields(declared))
    return [
        f"{key} is {one.get(key, 'unset')} there, and {other.get(key, 'unset')} here"
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]


def different(name: str, differs: list[str]) -> str:
    """The sentence for a default queue that is not as declared."""
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


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])


def _tree_of(item: Object) -> str | None:
    return (item["metadata"].get("labels") or {}).get(TREE)


def _of_a_chart(item: Object) -> bool:
    """Whether it is a default queue of KAI's chart that belongs to no tree."""
    notes = item["metadata"].get("annotations") or {}
    is_default = _name(item) in DEFAULT_QUEUES and notes.get("helm.sh/resource-policy") == "keep"
    return is_default and _tree_of(item) is None


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


def _words(error: RefusedError | PluginError) -> str:
    """The server's own message."""
    if isinstance(error, PluginError):
        return str(error)
    if error.status == 404 and not error.message:
        return "the cluster knows no Queues: KAI is not installed there"
    return error.message or complaint(error)


def _several(failed: list[str]) -> str:
    more = f"\nand {len(failed) - 10} more like these" if len(failed) > 10 else ""
    return "\n".join(failed[:10]) + more
