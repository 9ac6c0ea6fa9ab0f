"""Why a pod waits: what can never be had first, then what is full, then what messages mean."""

from dataclasses import dataclass, replace
from typing import Any, Final

from kai_fleet.fleet.amounts import SLACK
from kai_fleet.fleet.cluster import Team
from kai_fleet.fleet.queues import UNLIMITED
from kai_fleet.kube.objects import KubeObject
from kai_fleet.kube.pods import PodUse
from kai_fleet.releases import keys
from kai_fleet.wording import counted, listed
from kai_fleet_cli.doctor.causes import Fault, explain, fault
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_cli.doctor.usage import upwards

_PATIENCE: Final = 60.0  # seconds; what takes no longer is on its way
_NO_GROUP: Final = "kai.scheduler/skip-podgrouper"
_CANNOT_START: Final = ("ImagePullBackOff", "ErrImagePull", "CreateContainerError")


def why(pod: KubeObject, cluster: Cluster, snapshot: Snapshot) -> Fault | None:
    """Why a pod does not run; None for one that runs, or is on its way."""
    use = cluster.uses.get((pod.namespace, pod.name))
    if use is None or use.phase != "Pending" or use.ending:
        return None
    kai, team = snapshot.scheduling(cluster), snapshot.team_of(cluster)
    waiting = _Waiting(pod, use, cluster, kai, snapshot.host, team)
    return waiting.on_its_node() if use.node else waiting.without_node()


@dataclass(frozen=True)
class _Waiting:
    """A pod, its cluster, the cluster whose KAI places it, and the host that has the nodes."""

    pod: KubeObject
    use: PodUse
    cluster: Cluster
    kai: Cluster
    host: Cluster
    team: Team | None

    def on_its_node(self) -> Fault | None:
        """Its containers do not start."""
        for text in self.pod.waiting:
            if self._known(text) is None and text.startswith(_CANNOT_START):
                return self._fault("pod-cannot-start", text=text)
        return self._known(*self.cluster.messages_of(self.pod))

    def without_node(self) -> Fault | None:
        """No scheduler placed it, or binding failed."""
        pod, cluster = self.pod, self.cluster
        bound = (event.get("reason") == "Bound" for event in cluster.events_of(pod))
        if pod.is_true("PodBound") or any(bound):
            return self._fault("pod-bound-in-name-only")
        if self.use.scheduled_by_kai:
            found = self._queue() or self._scheduler() or self._limits() or self._too_large()
        elif self.kai.kai is not None and keys.QUEUE_LABEL in pod.labels:
            return self._fault("pod-of-another-scheduler")
        else:
            found = self._too_large()
        found = found or self._known(*cluster.messages_of(pod))
        if found is not None or cluster.age(pod) <= _PATIENCE:
            return found
        grouped = pod.annotations.get(keys.POD_GROUP) or _NO_GROUP in pod.annotations
        if self.use.scheduled_by_kai and cluster.kai is not None and not grouped:
            parts = cluster.kai.deployments
            grouper = "podgrouper" if "podgrouper" in parts else "pod-grouper"
            return self._fault("pod-ungrouped", grouper=grouper)
        return self._fault("pod-unexplained", text=pod.unscheduled or "no event, no condition")

    def _fault(self, row: str, **values: Any) -> Fault:
        return fault(row, self.cluster, self.pod.namespaced_name, **values)

    def _known(self, *texts: str) -> Fault | None:
        known = explain(self.cluster, "pod", self.pod.namespaced_name, texts)
        return replace(known, check="") if known else None

    def _queue(self) -> Fault | None:
        """It names no queue that takes its pods: a leaf, in host mode the one of its team."""
        name, kai, tree = self.use.queue, self.kai, self.kai.tree
        own = self.team.queue if self.team is not None and self.team.mode == "host" else None
        write = own or listed(tree.leaves) or "a leaf queue, declared first"
        if kai.kai is None or "queues" in kai.unreadable:
            return None
        if name is None:
            return self._fault("pod-without-queue", write=write)
        if name not in tree.by_name:
            return self._fault("pod-of-absent-queue", queue=name, write=write)
        if kai.named("queues", name) is None:
            return self._fault("pod-queue-absent", queue=name, update=kai.update)
        if not tree.is_leaf(name):
            write = listed(tree.leaves_below(name))
            return self._fault("pod-of-parent-queue", queue=name, write=write)
        if own not in (None, name):
            return self._fault("pod-of-another-queue", queue=name, write=own)
        return None

    def _scheduler(self) -> Fault | None:
        """No KAI serves, its RuntimeClass is not there, or its shard is not its queue's."""
        pod, kai = self.pod, self.kai
        serves = any(item.rolled_out for item in kai.schedulers)
        if not serves and "deployments" not in kai.unreadable:
            row = "pod-without-scheduler" if kai.kai else "pod-without-kai"
            return self._fault(row, of=kai.name)
        name = pod.spec.get("runtimeClassName")
        if name and self.cluster.lacks("runtimeclasses", name):
            return self._known(f'RuntimeClass "{name}" not found')
        queue = kai.named("queues", pod.labels.get(keys.QUEUE_LABEL, ""))
        has, label = pod.labels.get(keys.NODE_POOL), keys.NODE_POOL
        if queue is None or (shard := queue.labels.get(label)) == has:
            return None
        # A shard's scheduler sees the pods with its label, not those that only name its queue.
        fix = f"write the label {label}: {shard}" if shard else f"drop the label {label}"
        shards = {"shard": shard or keys.DEFAULT_SHARD, "has": has or keys.DEFAULT_SHARD}
        return self._fault("pod-of-another-shard", queue=queue.name, fix=fix, **shards)

    def _limits(self) -> Fault | None:
        """Its queue, or one above, may never hold what it asks for, or is full now."""
        queues, gpus = self.kai.usage.queues, self.use.amounts.gpu
        above = [
            queue for queue in upwards(queues, self.use.queue) if gpus and queue.limit != UNLIMITED
        ]
        for row, at_once in (("pod-over-limit", False), ("pod-queue-full", True)):
            for queue in above:
                total = gpus + queue.in_use * at_once
                if total > queue.limit + SLACK:
                    amounts = {"held": f"{queue.in_use:g}", "most": f"{queue.limit:g}"}
                    amounts |= {
                        "asked": counted(gpus, "GPU"),
                        "more": self._raise(queue.name, total),
                    }
                    return self._fault(row, queue=queue.name, **amounts)
        return None

    def _too_large(self) -> Fault | None:
        """No node has as many GPUs as it asks for, even empty."""
        gpu, of_pod = self.cluster.desired.gpu_resource, self.use.gpu
        whole = of_pod.whole or (of_pod.devices if of_pod.shared else 0)
        nodes = [node for node in self.cluster.all("nodes") if node.takes_pods]
        most = max((node.gpus(gpu) for node in nodes), default=0.0)
        if whole <= most or "nodes" in self.cluster.unreadable:
            return None
        return self._fault("pod-too-large", asked=f"{whole:g}", most=f"{most:g}")

    def _raise(self, queue: str, to: float) -> str:
        """What raises a queue's limit: the key that declares it, or a command."""
        desired, team, kubectl = self.kai.desired, self.team, self.kai.kubectl
        own = desired.tree.by_name.get(queue)
        if own is None and desired.declared:
            patch = f'{{"spec": {{"resources": {{"gpu": {{"limit": {to:g}}}}}}}}}'
            return f"raise its limit: `{kubectl} patch queue {queue} --type merge -p '{patch}'`"
        if own is not None and team is not None and not own.parent and "gpu" in own.shares:
            pool = own.shard or keys.DEFAULT_SHARD
            if own.shares["gpu"].limit == desired.pools.get(pool, team.gpus):
                return f"raise {team.gpus_path}{f'.{pool}' if team.pools else ''}"
        return f"raise gpu.limit of {queue} at {desired.queues_key}"
