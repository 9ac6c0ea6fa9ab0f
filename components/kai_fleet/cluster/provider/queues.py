"""Read, reconcile and delete the Queue objects of one tree in one cluster.

The label `kai-fleet/tree` marks the queues of a tree. If a run is killed before its state is saved,
the next one finds the queues that it created by the label. Of names that a tenant's account may
write in the same cluster the label proves nothing: such queues are the tree's where its state has
them.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from kai_fleet.cluster.kube.api import JSON_PATCH, Api, Object
from kai_fleet.cluster.kube.errors import RefusedError, UnreachableError, complaint
from kai_fleet.cluster.kube.objects import well_named
from kai_fleet.cluster.provider import PluginError
from kai_fleet.values import items, pairs
from kai_fleet.wording import plain

TREE: Final = "kai-fleet/tree"
API_VERSION: Final = "scheduling.run.ai/v2"
KIND: Final = "Queue"
PATH: Final = f"/apis/{API_VERSION}/queues"
_MANAGER: Final = "kai-fleet"
# Queues of KAI's chart from v0.10, by default. Uninstalling keeps them.
DEFAULT_QUEUES: Final = ("default-parent-queue", "default-queue")
_WORKERS: Final = 8  # a queue's webhook answers one request after the other anyway
_WEBHOOK_SECONDS: Final = 30.0
_AWAY_SECONDS: Final = 4.0  # an API server that restarts refuses for about one
_GONE_SECONDS: Final = 60.0
_NAMED: Final = 20  # queues that stay, in a message; the others are in that of the next run
# Refusals that are about the object: others are the cluster's.
_OF_ONE_QUEUE: Final = (400, 403, 409, 413, 422)
_LONGEST: Final = 100  # of what others named
Spec = Mapping[str, Any]


class ClusterAwayError(PluginError):
    """The cluster's API does not answer, or its kubeconfig cannot be used."""


class SomeQueuesError(PluginError):
    """Some queues could not be reconciled; the others are as declared."""


# What went wrong: the name of a queue, or "" where the fault is the cluster's, and a sentence.
Failures = list[tuple[str, str]]


@dataclass(frozen=True)
class Queues:
    """The queues of the tree called `tree` in the cluster behind `api`, `cluster` in messages.

    `known` are the names that the tree's state has. Accounts of the teams `tenants` may write
    queues there whose names begin with `TEAM-`.
    """

    api: Api
    tree: str
    cluster: str = ""
    known: frozenset[str] = frozenset()
    tenants: tuple[str, ...] = ()

    def live(self) -> dict[str, Object]:
        """Queues by name: those of this tree, and default queues of a chart that it uses.

        None without the CRD. Raises ClusterAwayError, and PluginError if the list is refused.
        """
        every = self._all()
        used = {name: item for name, item in every.items() if name in self.known}
        return self._own(every) | {name: item for name, item in used.items() if _of_a_chart(item)}

    def make(
        self, specs: Mapping[str, Spec], labels: Mapping[str, Mapping[str, str]] | None = None
    ) -> Failures:
        """Have exactly these queues: create, change and delete what differs, parents first.

        `labels` are more labels of some of them; others that they carry are left alone.
        A default queue of a KAI's chart is used as it is, and neither changed nor deleted. A queue
        of others that has the name of one is left as it is, and so is what hangs below it; what
        the cluster refuses is left, too. All others are as declared. Raises PluginError if the
        queues cannot be listed.
        """
        live = self._all()
        foreign = self._foreign(specs, live)

        def put(name: str) -> None:
            spec, marks = specs[name], {**(labels or {}).get(name, {}), TREE: self.tree}
            if name not in live:
                about = {"name": name, "labels": marks}
                body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": about, "spec": spec}
                self.api.post(PATH, body, fieldManager=_MANAGER)
                return
            carried = live[name]["metadata"].get("labels") or {}
            if live[name].get("spec") == spec and marks.items() <= carried.items():
                return
            # The whole spec: a field that others set goes, too. KAI writes the status meanwhile.
            changes = [
                {"op": "add", "path": "/spec", "value": spec},
                {"op": "add", "path": "/metadata/labels", "value": {**carried, **marks}},
            ]
            self.api.patch(f"{PATH}/{name}", changes, JSON_PATCH, fieldManager=_MANAGER)

        used = {name for name, item in live.items() if _of_a_chart(item)}
        left = used | foreign.keys()
        failed = self._each({n: spec for n, spec in specs.items() if n not in left}, put)
        own = self._own(live)
        gone = self._delete({name: own[name] for name in own.keys() - specs.keys()})
        return [*foreign.items(), *failed, *gone]

    def remove(self) -> None:
        """Delete them all, children first, and wait until they are gone."""
        if failed := self._delete(self._own(self._all())):
            raise SomeQueuesError(several(failed))
        ends = time.monotonic() + _GONE_SECONDS
        while left := self._own(self._all()):
            self.api.begin(_GONE_SECONDS)
            if time.monotonic() > ends:
                raise SomeQueuesError(
                    f"still there after {_GONE_SECONDS:.0f} s: {', '.join(sorted(left)[:_NAMED])}."
                    f" Look with: kubectl get queues {min(left)} -o yaml"
                )
            time.sleep(0.2)

    def _own(self, items: Mapping[str, Object]) -> dict[str, Object]:
        """Those of this tree: by the label, which others may have written on a queue of theirs."""
        marked = {name: item for name, item in items.items() if _tree_of(item) == self.tree}
        of_tenants = tuple(f"{team}-" for team in self.tenants)
        return {
            name: item
            for name, item in marked.items()
            if name in self.known or not name.startswith(of_tenants)
        }

    def _all(self) -> dict[str, Object]:
        try:
            items: list[Object] = self._patient(lambda: self.api.list(PATH))
        except RefusedError as error:
            if error.status == 404:
                return {}
            raise PluginError(
                f"the queues of cluster {self.cluster} cannot be listed: {_words(error)}"
            ) from None
        return {item["metadata"]["name"]: item for item in well_named(items)}

    def _foreign(self, specs: Mapping[str, Spec], live: Mapping[str, Object]) -> dict[str, str]:
        """Why declared queues are left as they are, by name: others made them, or one above."""
        found = {
            name: self._refusal(live[name], specs[name]) for name in specs.keys() & live.keys()
        }
        foreign = {name: why for name, why in sorted(found.items()) if why}
        below = dict[str, str]()
        for name in sorted(specs.keys() - foreign.keys()):
            above, passed = str(specs[name].get("parentQueue")), {name}
            while above in specs and above not in foreign and above not in passed:
                passed.add(above)
                above = str(specs[above].get("parentQueue"))
            if above in foreign:
                below[name] = (
                    f"queue {name} is left as it is, for it is below this: {foreign[above]}"
                )
        return foreign | below

    def _refusal(self, item: Object, spec: Spec) -> str:
        """Why an existing queue cannot be one of this tree; "" if it can.

        One with an owner is refused even with our label: KAI Resource Management takes a queue of a
        Project's name, and writes it anew.
        """
        name, whose = item["metadata"]["name"], _tree_of(item)
        owners = item["metadata"].get("ownerReferences") or []
        if (whose == self.tree and not owners) or (_of_a_chart(item) and item.get("spec") == spec):
            return ""
        there = f"queue {name} is in the cluster already and"
        if owners:
            by = pairs(next(iter(items(owners)), None))
            owner = plain(f"{by.get('kind')} {by.get('name')}", _LONGEST)
            return f"{there} belongs to {owner}, which writes it anew. Give yours another name"
        of_tree = whose not in (None, self.tree)
        maker = f"belongs to the tree {whose}" if of_tree else "was made by somebody else"
        return (
            f"{there} {maker}. Give yours another name; or, to take it over:"
            f" kubectl label queue {name} --overwrite {TREE}={self.tree}"
        )

    def _delete(self, items: Mapping[str, Object]) -> Failures:
        specs = {name: pairs(item.get("spec")) for name, item in items.items()}
        return self._each(specs, lambda n: self.api.delete(f"{PATH}/{n}"), children_first=True)

    def _each(
        self, specs: Mapping[str, Spec], act: Callable[[str], Any], *, children_first: bool = False
    ) -> Failures:
        """Call `act` for all names, a level at a time; return what failed."""

        def attempt(name: str) -> Failures:
            try:
                self._patient(lambda: act(name))
            except RefusedError as error:
                about = name if error.status in _OF_ONE_QUEUE else ""
                return [(about, f"queue {name}: {_words(error)}")]
            return []

        levels, failed = _levels(specs), Failures()
        try:
            with ThreadPoolExecutor(_WORKERS) as workers:
                for names in reversed(levels) if children_first else levels:
                    for found in workers.map(attempt, names):
                        failed += found
        except ClusterAwayError as error:  # what it was not asked yet is not asked either
            failed.append(("", str(error)))
        return failed

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
                webhook = "failed calling webhook" in error.message
                if waited > _WEBHOOK_SECONDS or not (webhook or error.status == 429):
                    raise
            except UnreachableError as error:
                if waited > _AWAY_SECONDS:
                    raise ClusterAwayError(
                        f"cluster {self.cluster} at {self.api.host}: {complaint(error)}. See that"
                        " kubectl reaches it, then run the same command again"
                    ) from None
            time.sleep(0.5)


def _levels(specs: Mapping[str, Spec]) -> list[list[str]]:
    """The names of queues by level, parents first; those in or below a ring come last."""
    below: dict[str, list[str]] = defaultdict(list)
    names: list[str] = []
    for name, spec in specs.items():
        parent = spec.get("parentQueue")
        hangs = isinstance(parent, str) and parent in specs
        (below[str(parent)] if hangs else names).append(name)
    levels: list[list[str]] = []
    while names:
        levels.append(names)
        names = [child for name in names for child in below.pop(name, ())]
    rest = [name for of_parent in below.values() for name in of_parent]
    return [*levels, rest] if rest else levels


def _tree_of(item: Object) -> str | None:
    return (item["metadata"].get("labels") or {}).get(TREE)


def _of_a_chart(item: Object) -> bool:
    """Whether it is a default queue of KAI's chart that belongs to no tree."""
    notes = item["metadata"].get("annotations") or {}
    is_default = item["metadata"]["name"] in DEFAULT_QUEUES and _tree_of(item) is None
    return is_default and notes.get("helm.sh/resource-policy") == "keep"


def _words(error: RefusedError) -> str:
    """The server's own message."""
    if error.status == 404 and not error.message:
        return "the cluster knows no Queues: KAI is not installed there"
    return error.message or complaint(error)


def several(failures: Failures) -> str:
    """The first of them, a line each."""
    lines = [line for _, line in failures]
    more = f"\nand {len(lines) - 10} more like these" if len(lines) > 10 else ""
    return "\n".join(lines[:10]) + more
