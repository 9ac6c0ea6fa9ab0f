"""Read, reconcile and delete the Queue objects of one tree in one cluster.

The label `kai-fleet/tree` marks the queues of a tree. If a run is killed before its state is saved,
the next run finds by the label which queues it created. A name that the account of a tenant may
write in the same cluster is an exception: its label proves nothing, so such a queue belongs to the
tree only if the tree's state has it.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar

from kai_fleet.cluster.kube.api import JSON_PATCH, Api
from kai_fleet.cluster.kube.errors import (
    AbsentError,
    KubeError,
    RefusedError,
    UnreachableError,
    complaint,
)
from kai_fleet.cluster.kube.objects import KubeObject, well_named
from kai_fleet.releases.keys import CHART_QUEUES
from kai_fleet.values import items, pairs
from kai_fleet.wording import short_line
from kai_usage import trees

Answer = TypeVar("Answer")
Spec = Mapping[str, Any]
Specs = Mapping[str, Spec]  # by the queue's name
LiveQueues = Mapping[str, KubeObject]  # by name
Labels = Mapping[str, str]

TREE = "kai-fleet/tree"
API_VERSION = "scheduling.run.ai/v2"
KIND = "Queue"
PATH = f"/apis/{API_VERSION}/queues"
_MANAGER = "kai-fleet"
_WORKERS = 8  # more would not help: the queues' webhook answers one request at a time
_TREE_SECONDS = 300.0  # a webhook that starts takes up to 30 seconds on each level
_LIST_SECONDS = 30.0  # a server that has not answered by then answers nothing
_WEBHOOK_SECONDS = 30.0  # that a webhook may take to start
_RESTART_SECONDS = 4.0  # an API server that restarts refuses connections for about one
_DELETED_SECONDS = 60.0  # until deleted queues have to be gone
_POLL_SECONDS = 0.2
_RETRY_SECONDS = 0.5
_MOST_NAMED = 20  # names of queues in a message; the next run names the others
_MOST_FAILURES = 10  # lines of failures in a message
# Refusals of one object; any other refusal is about the whole cluster.
_OF_ONE_QUEUE = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
_LONGEST_OWNER = 100  # characters


class QueuesError(KubeError):
    """The queues could not be read or made; the text is the message for the user."""


class ClusterAwayError(QueuesError):
    """The cluster's API does not answer, or its kubeconfig cannot be used."""


class SomeQueuesError(QueuesError):
    """Some queues are not as declared; the others are, unless the cluster stopped answering.

    `partial` is the protocol's ErrorResourceInitFailed if the tree exists, but not as declared. The
    engine saves the state in it, and tries again at the next update.
    """

    partial: object = None


class Failure(NamedTuple):
    """A queue that is not as declared, and why; the name "" says that the whole cluster failed."""

    queue: str
    sentence: str


Failures = list[Failure]


@dataclass(frozen=True)
class Queues:
    """The queues of one tree in one cluster.

    Each method sets the limits of `api` anew: 30 seconds for the list, then `total_seconds`.

    Args:
        api: The cluster.
        tree: The name of the tree, which is the value of the label.
        cluster: The name of the cluster in messages.
        known: The names of queues in the tree's state.
        tenants: Teams whose accounts may write queues there with names that begin with `TEAM-`.
        total_seconds: The time for all requests after the queues are listed.
    """

    api: Api
    tree: str
    cluster: str = ""
    known: frozenset[str] = frozenset()
    tenants: tuple[str, ...] = ()
    total_seconds: float = _TREE_SECONDS

    def live(self) -> LiveQueues:
        """The queues of this tree by name, and the chart's default queues that the state has.

        Empty if the CRD is absent. Raises ClusterAwayError, and QueuesError if the list is refused.
        """
        queues = self._all()
        live = self._own(queues)
        for name, queue in queues.items():
            if name in self.known and _is_of_chart(queue):
                live[name] = queue
        return live

    def make(self, specs: Specs, labels: Mapping[str, Labels] = {}) -> Failures:
        """Have exactly these queues: create, change and delete those that differ, parents first.

        A default queue of KAI's chart with the declared spec is left as it is. These fail, and are
        left as they are: queues that somebody else created under a declared name, the chart's
        default queues with another spec among them; queues below one of these; and queues that the
        cluster refuses. All other queues are as declared afterwards, unless the cluster stops
        answering: then a failure with the name "" says so, and later levels are left out.

        Args:
            specs: The spec of each queue.
            labels: Further labels of some queues. Other labels that queues have are kept.

        Raises:
            ClusterAwayError: The cluster does not answer when the queues are listed.
            QueuesError: It refuses to list them.
        """
        live = self._all()
        foreign = self._foreign(specs, live)
        chart_queues = {name for name, queue in live.items() if _is_of_chart(queue)}
        left_alone = chart_queues | foreign.keys()
        reconciled = {name: spec for name, spec in specs.items() if name not in left_alone}

        def put(name: str) -> None:
            all_labels = {**labels.get(name, {}), TREE: self.tree}
            self._put(name, specs[name], all_labels, live.get(name))

        failures = [Failure(name, why) for name, why in foreign.items()]
        failures += self._for_each(reconciled, put)
        undeclared = {name: queue for name, queue in self._own(live).items() if name not in specs}
        return failures + self._delete(undeclared)

    def _put(self, name: str, spec: Spec, labels: Labels, existing: KubeObject | None) -> None:
        """Create a queue, or change it if it differs from `existing`; None: it does not exist.

        Raises KubeError.
        """
        if existing is None:
            body = {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "metadata": {"name": name, "labels": labels},
                "spec": spec,
            }
            self.api.post(PATH, body, fieldManager=_MANAGER)
            return
        if existing.get("spec") == spec and labels.items() <= existing.labels.items():
            return
        # Replaces the whole spec, so that fields that others set are removed. It leaves the status:
        # KAI writes it at the same time.
        changes = [
            {"op": "add", "path": "/spec", "value": spec},
            {"op": "add", "path": "/metadata/labels", "value": {**existing.labels, **labels}},
        ]
        self.api.patch(f"{PATH}/{name}", changes, JSON_PATCH, fieldManager=_MANAGER)

    def remove(self) -> None:
        """Delete all queues of the tree, children first, and wait until they are gone.

        Raises SomeQueuesError if the cluster refuses a deletion, or if some remain after a minute;
        ClusterAwayError, QueuesError as `live` does.
        """
        failures = self._delete(self._own(self._all()))
        if failures:
            raise SomeQueuesError(several(failures))
        deadline = time.monotonic() + _DELETED_SECONDS
        while remaining := self._own(self._all()):
            if time.monotonic() > deadline:
                names = ", ".join(sorted(remaining)[:_MOST_NAMED])
                raise SomeQueuesError(
                    f"still there after {_DELETED_SECONDS:.0f} s: {names}. Look with: kubectl get"
                    f" queues {min(remaining)} -o yaml"
                )
            time.sleep(_POLL_SECONDS)

    def _own(self, queues: LiveQueues) -> dict[str, KubeObject]:
        """The queues of this tree: those with its label, without those that a tenant labelled.

        A tenant may have labelled each whose name begins with `TEAM-`, unless the state has it.
        """
        prefixes = tuple(f"{team}-" for team in self.tenants)
        own = {}
        for name, queue in queues.items():
            is_trusted = name in self.known or not name.startswith(prefixes)
            if _tree_of(queue) == self.tree and is_trusted:
                own[name] = queue
        return own

    def _all(self) -> LiveQueues:
        """All queues of the cluster by name; none without the CRD.

        Raises ClusterAwayError, and QueuesError if the list is refused.
        """
        self.api.restart_limits(_LIST_SECONDS)
        try:
            queues = self._patient(lambda: self.api.list(PATH))
        except AbsentError:
            return {}
        except RefusedError as error:
            raise QueuesError(
                f"the queues of cluster {self.cluster} cannot be listed: {_words(error)}"
            ) from None
        finally:
            self.api.restart_limits(self.total_seconds)
        return {queue.name: queue for queue in map(KubeObject, well_named(queues))}

    def _foreign(self, specs: Specs, live: LiveQueues) -> dict[str, str]:
        """Why declared queues are left as they are, by name.

        Somebody else created the queue, or one above it.
        """
        foreign = {}
        for name in sorted(specs.keys() & live.keys()):
            refusal = self._refusal(live[name], specs[name])
            if refusal:
                foreign[name] = refusal
        parents = _parents(specs)
        below_foreign = {}
        for name in sorted(specs.keys() - foreign.keys()):
            above = [foreign[each] for each in trees.upwards(parents, name) if each in foreign]
            if above:
                below_foreign[name] = (
                    f"queue {name} is left as it is, for it is below this: {above[0]}"
                )
        return foreign | below_foreign

    def _refusal(self, queue: KubeObject, spec: Spec) -> str:
        """Why an existing queue cannot belong to this tree; "" if it can.

        A default queue of KAI's chart with this spec counts as one that can, but `make` leaves it
        as it is. Any other queue with an owner cannot, even with our label: KAI Resource Management
        takes the queue that is named like a Project, and writes its spec.
        """
        owners = queue["metadata"].get("ownerReferences") or []
        tree = _tree_of(queue)
        if tree == self.tree and not owners:
            return ""
        if _is_of_chart(queue) and queue.get("spec") == spec:
            return ""
        exists = f"queue {queue.name} is in the cluster already and"
        if owners:
            first = pairs(next(iter(items(owners)), None))
            owner = short_line(f"{first.get('kind')} {first.get('name')}", _LONGEST_OWNER)
            return f"{exists} belongs to {owner}, which writes it anew. Give yours another name"
        is_in_another_tree = tree not in (None, self.tree)
        maker = f"belongs to the tree {tree}" if is_in_another_tree else "was made by somebody else"
        return (
            f"{exists} {maker}. Give yours another name; or, to take it over:"
            f" kubectl label queue {queue.name} --overwrite {TREE}={self.tree}"
        )

    def _delete(self, queues: LiveQueues) -> Failures:
        """Delete queues, children first; return the failures."""
        specs = {name: pairs(queue.get("spec")) for name, queue in queues.items()}
        return self._for_each(
            specs, lambda name: self.api.delete(f"{PATH}/{name}"), children_first=True
        )

    def _for_each(
        self,
        specs: Specs,
        act: Callable[[str], object],
        *,
        children_first: bool = False,
    ) -> Failures:
        """Call `act` with each name, the names of a level at the same time; return the failures.

        A refusal that is not about one queue has the name "", and other queues are still tried. If
        the cluster stops answering, that is a failure with the name "", too, and later levels are
        skipped.
        """

        def attempt(name: str) -> Failure | None:
            """Call `act`; return a refusal, None without one. Raises ClusterAwayError."""
            try:
                self._patient(lambda: act(name))
            except RefusedError as error:
                queue = name if error.status in _OF_ONE_QUEUE else ""
                return Failure(queue, f"queue {name}: {_words(error)}")
            return None

        levels = _levels(specs)
        if children_first:
            levels.reverse()
        failures: Failures = []
        try:
            with ThreadPoolExecutor(_WORKERS) as workers:
                for names in levels:
                    for failure in workers.map(attempt, names):
                        if failure is not None:
                            failures.append(failure)
        except ClusterAwayError as error:
            failures.append(Failure("", str(error)))
        return failures

    def _patient(self, ask: Callable[[], Answer]) -> Answer:
        """Call `ask`, again while a webhook or an API server is starting.

        KAI's queue webhook has `failurePolicy: Fail`, so it has to run; a vCluster's API server
        refuses connections for a second after an upgrade. A busy server counts like a webhook. All
        seconds count from the first call, whatever has failed since.

        Raises:
            RefusedError: For another reason, or more than 30 seconds after the first call.
            ClusterAwayError: A call more than 4 seconds after the first one had no answer, or
                none that could be read.
        """
        began = time.monotonic()
        while True:
            waited_seconds = time.monotonic() - began
            try:
                return ask()
            except RefusedError as error:
                is_starting = "failed calling webhook" in error.message
                is_busy = error.status == HTTPStatus.TOO_MANY_REQUESTS
                if waited_seconds > _WEBHOOK_SECONDS or not (is_starting or is_busy):
                    raise
            except UnreachableError as error:
                if waited_seconds > _RESTART_SECONDS:
                    raise ClusterAwayError(
                        f"cluster {self.cluster} at {self.api.host}: {complaint(error)}. See that"
                        " kubectl reaches it, then run the same command again"
                    ) from None
            time.sleep(_RETRY_SECONDS)


def _parents(specs: Specs) -> dict[str, str | None]:
    """The parent of each queue; None without one among these queues."""
    parents = dict[str, str | None]()
    for name, spec in specs.items():
        parent = spec.get("parentQueue")
        is_here = isinstance(parent, str) and parent in specs
        parents[name] = parent if is_here else None
    return parents


def _levels(specs: Specs) -> list[list[str]]:
    """The names of queues by level, parents first; queues in a ring, or below one, come last."""
    by_level: dict[float, list[str]] = defaultdict(list)
    levels = trees.levels(_parents(specs))
    for name in specs:
        level = levels.get(name, math.inf)
        by_level[level].append(name)
    return [by_level[level] for level in sorted(by_level)]


def _tree_of(queue: KubeObject) -> str | None:
    """The tree that a queue's label names; None without the label."""
    return queue.labels.get(TREE)


def _is_of_chart(queue: KubeObject) -> bool:
    """Whether it is a default queue of KAI's chart that belongs to no tree."""
    is_default = queue.name in CHART_QUEUES and _tree_of(queue) is None
    return is_default and queue.annotations.get("helm.sh/resource-policy") == "keep"


def _words(error: RefusedError) -> str:
    """The server's own message; without one, a phrase."""
    if error.status == HTTPStatus.NOT_FOUND and not error.message:
        return "the cluster knows no Queues: KAI is not installed there"
    return error.message or complaint(error)


def several(failures: Sequence[tuple[str, str]]) -> str:
    """The sentences of the first ten failures, a line each, and how many more there are."""
    lines = [sentence for _, sentence in failures[:_MOST_FAILURES]]
    more = len(failures) - _MOST_FAILURES
    if more > 0:
        lines.append(f"and {more} more like these")
    return "\n".join(lines)
