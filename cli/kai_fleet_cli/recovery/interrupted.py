"""What became of something that a run had begun to make, by what its cluster has of it."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from kai_fleet.kai.keys import KAI_NAMESPACE
from kai_fleet.releases import helm_record
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery.helm import Remedy
from kai_fleet_cli.recovery.object_reader import Cluster, Live, Unanswered
from kai_fleet_cli.recovery.state import (
    NAMESPACE,
    OF_VCLUSTER,
    RELEASE,
    Operation,
    State,
    provider_of,
)
from kai_fleet_cli.recovery.vcluster_records import is_of_vcluster

_PATIENCE_SECONDS: Final = 60.0  # a killed engine's plugin may still be at work


@dataclass
class Verdict:
    """What is to be done. `unanswered` are clusters that could not be asked."""

    imports: list[Operation] = field(default_factory=list)
    remedies: list[tuple[Operation, Remedy]] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)

    @property
    def decided(self) -> bool:
        """Whether anything came of it."""
        return bool(self.imports or self.remedies)


class Judge:
    """Decides one operation after the other.

    `since` is None where the state itself says that the run had begun to make the thing; else an
    object of the host counts as this stack's own only if it was made after that, while the
    stack's runs were failing.
    """

    def __init__(
        self,
        now: State,
        clusters: ExitStack,
        since: datetime.datetime | None,
        say: Callable[[str], None],
    ) -> None:
        self.verdict = Verdict()
        self._now, self._since, self._say = now, since, say
        self._known, self._clusters = now.providers(), clusters
        self._asked: dict[str, Cluster] = {}

    def decide(self, operation: Operation) -> None:
        """Look at one; what is not on a cluster, and changes of objects, are simply done again."""
        missing = operation.kind == "creating" and operation.urn not in self._now.urns()
        if not operation.on_cluster or not (missing or operation.type == RELEASE):
            return
        try:
            cluster = self._cluster(operation)
            if operation.type == RELEASE:
                self._release(cluster, operation, missing)
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
            self.verdict.imports.append(operation)
        else:
            self._say(f"{operation}: {operation.id} is there, but this stack did not make it")

    def _ours(self, operation: Operation, live: Live) -> bool:
        if not live.by_pulumi or not live.has(operation.resource["inputs"]):
            return False
        if self._since is None or self._inside(operation) or self._in_own_namespace(operation):
            return True
        return live.made >= self._since.replace(microsecond=0)

    def _release(self, cluster: Cluster, operation: Operation, missing: bool) -> None:
        status = _settled(cluster, operation, self._say)
        half_made = operation.kind in ("creating", "replacing")
        if status == "absent":
            self._say(f"{operation}: it is not installed; it will be now")
        elif missing and not self._in_own_namespace(operation):
            self._say(f"{operation}: {operation.id} is there, but this stack did not make it")
        elif half_made or status not in ("deployed", "failed"):
            # KAI cannot be rolled back; uninstalled, it leaves queues and running pods (K9).
            back = (
                status.endswith(("-upgrade", "-rollback")) and operation.address[0] != KAI_NAMESPACE
            )
            verb = "rollback" if back and not half_made else "uninstall"
            provider = self._known[provider_of(operation.resource)]
            of_vcluster = is_of_vcluster(operation.urn)
            if of_vcluster:
                _believe(cluster, operation)
            remedy = Remedy(verb, *operation.address, provider, hooks=not of_vcluster)
            self._say(f"{operation}: it is there as {status}, and was not finished: {remedy}")
            self.verdict.remedies.append((operation, remedy))

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
        return OF_VCLUSTER in provider_of(operation.resource)


def _believe(cluster: Cluster, operation: Operation) -> None:
    """Raises UserError where a tenant may have written what Helm would do."""
    namespace, name = operation.address
    if found := cluster.forged(namespace, name):
        said = helm_record.sentence(found, name, namespace)
        raise UserError(f"{operation}: {said}, and run the same command again. Nothing was done")


def _settled(cluster: Cluster, operation: Operation, say: Callable[[str], None]) -> str:
    """A release's status; one that is pending is looked at again for a minute."""
    until = time.monotonic() + _PATIENCE_SECONDS
    status = cluster.release(*operation.address)
    if status.startswith("pending-"):
        say(f"{operation}: it is {status}; waiting up to a minute, in case something still does it")
    while status.startswith("pending-") and time.monotonic() < until:
        time.sleep(1.0)
        status = cluster.release(*operation.address)
    return status
