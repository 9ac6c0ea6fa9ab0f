"""The Queue objects of one tree in one cluster: read, made as wanted, removed.

A tree knows its queues by their label `kai-fleet/tree`. So a run that was killed before it could
write down what it made leaves nothing behind: the next one finds it by the label.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from provider.http_api import Object, complaint
from provider.plugin import PluginError
from provider.queue_api import API_VERSION, KIND, QueueApi

TREE: Final = "kai-fleet/tree"
Specs = Mapping[str, Mapping[str, Any]]
Labels = Mapping[str, Mapping[str, str]]

_WORKERS: Final = 8  # a queue's webhook answers one request after the other anyway
_ATTEMPTS_SECONDS: Final = 30.0
_GONE_SECONDS: Final = 60.0


class SomeQueuesError(PluginError):
    """Not every queue is as wanted; those that are stay so."""


class Queues:
    """The queues of the tree called `tree` in the cluster behind `api`."""

    def __init__(
        self, api: client.ApiClient, tree: str, cancelled: Callable[[], bool] = lambda: False
    ) -> None:
        self._api = QueueApi(api)
        self._tree = tree
        self._cancelled = cancelled

    def live(self, known: Iterable[str] = ()) -> dict[str, Object]:
        """The objects by name: those of this tree, and of those `known` the ones of no tree.

        Raises PluginError where the cluster does not answer; without the CRD there are none.
        """
        return self._ours(self._all(), set(known))

    def make(self, wanted: Specs, known: Iterable[str] = (), labels: Labels | None = None) -> None:
        """Have exactly these queues: create, change and delete what differs, parents first.

        `labels` are more labels of some of them; others that they carry are left alone.
        Raises PluginError before anything is touched where another's queue has a wanted name, and
        SomeQueuesError with every refusal where the cluster refused some.
        """
        found = self._all()
        ours = self._ours(found, set(known))
        foreign = sorted(wanted.keys() & found.keys() - ours.keys())
        if foreign:
            raise PluginError(self._foreign(foreign, found))
        failed: list[str] = []

        def put(name: str) -> None:
            more = (labels or {}).get(name, {})
            self._put(name, wanted[name], {**more, TREE: self._tree}, ours.get(name))

        for names in _by_depth({name: spec.get("parentQueue") for name, spec in wanted.items()}):
            failed += self._each(names, put)
        self._delete({name: item for name, item in ours.items() if name not in wanted}, failed)
        if failed:
            raise SomeQueuesError(_several(failed))

    def remove(self, known: Iterable[str] = ()) -> None:
        """Delete them all, children first, and wait until they are gone."""
        failed: list[str] = []
        self._delete(self.live(known), failed)
        if failed:
            raise SomeQueuesError(_several(failed))
        deadline = time.monotonic() + _GONE_SECONDS
        while left := self.live(known):
            if time.monotonic() > deadline:
                raise SomeQueuesError(
                    f"still there after {_GONE_SECONDS:.0f} s: {', '.join(sorted(left))}."
                    f" Look with: kubectl get queues {min(left)} -o yaml"
                )
            time.sleep(0.2)

    def _all(self) -> dict[str, Object]:
        try:
            found: dict[str, Object] = self._patient(self._api.all)
            return found
        except ApiException as why:
            if why.status == 404:
                return {}
            raise PluginError(f"the cluster's queues cannot be listed: {_words(why)}") from None

    def _ours(self, found: dict[str, Object], known: set[str]) -> dict[str, Object]:
        return {
            name: item
            for name, item in found.items()
            if _tree_of(item) == self._tree or (name in known and _tree_of(item) is None)
        }

    def _foreign(self, names: list[str], found: Mapping[str, Object]) -> str:
        one = names[0]
        whose = _tree_of(found[one])
        owner = f"belongs to the tree {whose}" if whose else "was made by somebody else"
        more = f" (and {len(names) - 1} more: {', '.join(names[1:4])})" if len(names) > 1 else ""
        return (
            f"queue {one} is in the cluster already and {owner}{more}. Give yours another name;"
            f" or, to take it over: kubectl label queue {one} --overwrite {TREE}={self._tree}"
        )

    def _put(
        self, name: str, spec: Mapping[str, Any], labels: Mapping[str, str], now: Object | None
    ) -> None:
        body: Object = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": name, "labels": dict(labels)},
            "spec": spec,
        }
        if now is None:
            self._patient(lambda: self._api.create(body))
            return
        carried = now["metadata"].get("labels") or {}
        if now.get("spec") != spec or not labels.items() <= carried.items():
            # A replacement, not an apply: a field that somebody else set has to go too.
            body["metadata"] = {**now["metadata"], "labels": {**carried, **labels}}
            self._patient(lambda: self._api.replace(name, body))

    def _delete(self, items: Mapping[str, Object], failed: list[str]) -> None:
        parents = {name: item.get("spec", {}).get("parentQueue") for name, item in items.items()}
        for names in reversed(_by_depth(parents)):
            failed += self._each(names, self._delete_one)

    def _delete_one(self, name: str) -> None:
        self._patient(lambda: self._api.delete(name))

    def _each(self, names: list[str], act: Callable[[str], None]) -> list[str]:
        """Do it for all of them, several at once; the sentences of those that failed."""

        def attempt(name: str) -> str | None:
            if self._cancelled():
                return f"queue {name}: not done, the update was cancelled"
            try:
                act(name)
            except ApiException as why:
                return f"queue {name}: {_words(why)}"
            except PluginError as why:
                return f"queue {name}: {why}"
            return None

        with ThreadPoolExecutor(_WORKERS) as workers:
            return [said for said in workers.map(attempt, names) if said]

    def _patient(self, ask: Callable[[], Any]) -> Any:
        """Ask again while a webhook or an API server that is just starting does not answer.

        `failurePolicy: Fail` makes KAI's queue webhook a part that must be up (K16); an API server
        inside a vCluster refuses connections for a second after an upgrade (measured, 13).
        """
        deadline = time.monotonic() + _ATTEMPTS_SECONDS
        while True:
            late = self._cancelled() or time.monotonic() > deadline
            try:
                return ask()
            except ApiException as why:
                if late or not _passing(why):
                    raise
            except (urllib3.exceptions.HTTPError, OSError) as why:
                if late:
                    raise PluginError(
                        f"the cluster's API does not answer ({type(why).__name__})"
                    ) from None
            time.sleep(0.5)


def _tree_of(item: Mapping[str, Any]) -> str | None:
    labels = item["metadata"].get("labels") or {}
    found = labels.get(TREE)
    return str(found) if found is not None else None


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


def _passing(why: ApiException) -> bool:
    if why.status == 429:
        return True
    text = str(why.body or "")
    return why.status == 500 and ("failed calling webhook" in text or "failed to call" in text)


def _words(why: ApiException) -> str:
    """The server's own message."""
    try:
        return str(json.loads(why.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        if why.status == 404:
            return "the cluster knows no Queues: KAI is not installed there"
        return complaint(why)


def _several(failed: list[str]) -> str:
    more = f"\nand {len(failed) - 10} more like these" if len(failed) > 10 else ""
    return "\n".join(failed[:10]) + more
