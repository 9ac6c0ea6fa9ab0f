"""What becomes of something that a run had begun to make, by what its cluster has of it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from fleet.recovery.live_objects import Cluster, Live, Unanswered
from fleet.recovery.state import NAMESPACE, RELEASE, Operation, State, provider_of


@dataclass
class Verdict:
    """The operations by what is to be done. `unanswered` are clusters that could not be asked."""

    adopted: list[Operation] = field(default_factory=list)
    half_made: list[Operation] = field(default_factory=list)  # releases to uninstall
    gone: list[Operation] = field(default_factory=list)  # releases to drop from the state
    unlocked: list[Operation] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)

    @property
    def decided(self) -> bool:
        """Whether anything came of it."""
        return bool(self.adopted or self.half_made or self.gone or self.unlocked)


class Judge:
    """Decides one operation after the other.

    `providers` gives the inputs of the state's providers by URN. `since` is None where the state
    itself says that the run had begun to make the thing; else an object of the host counts as
    this stack's own only if it was made after that, while the stack's runs were failing.
    """

    def __init__(
        self,
        now: State,
        providers: Callable[[], dict[str, dict[str, Any]]],
        clusters: ExitStack,
        since: datetime.datetime | None,
        say: Callable[[str], None],
    ) -> None:
        self.verdict = Verdict()
        self._now, self._since, self._say = now, since, say
        self._providers, self._clusters = providers, clusters
        self._known: Mapping[str, dict[str, Any]] | None = None
        self._asked: dict[str, Cluster] = {}

    def decide(self, operation: Operation) -> None:
        """Look at one; what is not on a cluster, and changes of objects, are simply done again."""
        made_new = operation.kind == "creating" and operation.urn not in self._now.urns()
        if not operation.on_cluster or not (made_new or operation.type == RELEASE):
            return
        try:
            cluster = self._cluster(operation)
            if operation.type == RELEASE:
                self._release(cluster, operation, made_new)
            else:
                self._object(cluster, operation)
        except Unanswered as why:
            if self._inside(operation):
                # Should it be there, the update is told so, and it is looked at again then.
                self._say(f"{operation}: its vCluster cannot be asked: {why}")
            else:
                self.verdict.unanswered.append(f"{operation}: its cluster cannot be asked: {why}")

    def _cluster(self, operation: Operation) -> Cluster:
        urn = provider_of(operation.resource)
        if urn not in self._asked:
            if self._known is None:
                self._known = self._providers()
            if urn not in self._known:
                raise Unanswered("the state does not know its provider")
            self._asked[urn] = Cluster(self._known[urn], self._clusters)
        return self._asked[urn]

    def _object(self, cluster: Cluster, operation: Operation) -> None:
        live = cluster.object(operation.resource["inputs"], *operation.address)
        if live is None:
            self._say(f"{operation}: it was not made; it will be now")
        elif self._ours(operation, live):
            self._say(f"{operation}: an interrupted run made it; it is taken into the state")
            self.verdict.adopted.append(operation)
        else:
            self._say(f"{operation}: {operation.id} is there, but this stack did not make it")

    def _ours(self, operation: Operation, live: Live) -> bool:
        if not live.by_pulumi or not live.has(operation.resource["inputs"]):
            return False
        if self._since is None or self._inside(operation) or self._in_own_namespace(operation):
            return True
        return live.made >= self._since.replace(microsecond=0)

    def _release(self, cluster: Cluster, operation: Operation, made_new: bool) -> None:
        status, revision = cluster.release(*operation.address)
        if status == "absent":
            if made_new:
                self._say(f"{operation}: it was not installed; it will be now")
            else:
                self._say(f"{operation}: it is gone already")
                self.verdict.gone.append(operation)
        elif made_new and not self._in_own_namespace(operation):
            self._say(f"{operation}: {operation.id} is there, but this stack did not make it")
        elif made_new and status == "deployed":
            self._say(f"{operation}: an interrupted run installed it; it is taken into the state")
            self.verdict.adopted.append(operation)
        elif made_new:
            self._say(f"{operation}: it is half installed ({status}): uninstalled, then made anew")
            self.verdict.half_made.append(operation)
        elif status.startswith("pending-"):
            self._say(f"{operation}: its {status[8:]} was cut off; Helm's lock is taken off")
            cluster.unlock(*operation.address, revision)
            # Without its only revision there is no release: it is installed over what is left.
            done = self.verdict.gone if revision == 1 else self.verdict.unlocked
            done.append(operation)

    def _in_own_namespace(self, operation: Operation) -> bool:
        """Whether it is in a namespace that this stack made, on the same cluster."""
        namespace, _ = operation.address
        return bool(namespace) and any(
            resource["type"] == NAMESPACE
            and resource.get("id") == namespace
            and resource.get("provider") == operation.resource.get("provider")
            for resource in self._now.resources
        )

    def _inside(self, operation: Operation) -> bool:
        """Whether its cluster is a vCluster of this stack: its provider is a part of one."""
        return ":VirtualCluster$" in provider_of(operation.resource)
