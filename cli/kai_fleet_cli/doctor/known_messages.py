"""What KAI, vCluster and Kubernetes say when something is wrong, and what that means.

The texts were seen on real clusters, or are those of the projects' own sources.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Meaning:
    """What a text means. `fix` may name `{key}` (the KAI's place in the stack file), `{queues}`
    (that of its queues), `{update}` and `{kubectl}`.
    """

    name: str
    cause: str
    fix: str
    varies: bool = False  # the cause quotes the text, which differs from pod to pod

    @property
    def same(self) -> str:
        """What tells that two findings have this cause, where their sentences differ."""
        return self.name if self.varies else ""


_KNOWN: Final[tuple[tuple[str, Meaning], ...]] = (
    (
        r"ValidatingAdmissionPolicy '(?:kai-fleet-queues-[^']*)'.*denied request:? ?(?P<why>.*)",
        Meaning("guard-denied", "the team's guard denies its pods: {why}", "write what it says"),
    ),
    (
        r"GPU sharing is disabled|with gpu sharing request, while GPU sharing",
        Meaning(
            "sharing-off",
            "it asks for a share of a GPU, and GPU sharing is off in this KAI",
            "write gpuSharing: true at {key}, or ask for whole GPUs",
        ),
    ),
    (
        r"no desired configmap name found",
        Meaning(
            "made-too-early",
            "it was made before KAI's admission was ready, and stays Pending for good",
            "delete the pod; its controller, or you, makes it again",
        ),
    ),
    (
        r"RuntimeClass \"?nvidia\"? not found",
        Meaning(
            "runtime-class",
            "RuntimeClass nvidia is not there",
            "set kai-fleet:gpu.provider to operator or device-plugin, then {update}",
        ),
    ),
    (
        r"RuntimeClass \"?(?P<what>[\w.-]+)\"? not found",
        Meaning(
            "runtime-class",
            "RuntimeClass {what} is not there",
            "drop runtimeClassName, or have the platform make that class on the host: one made"
            " inside a vCluster is deleted, because classes are the host's",
        ),
    ),
    (
        r"^(?:.*Queue '(?P<what>[^']+)' does not exist|.*QueueDoesNotExist)",
        Meaning(
            "queue-absent",
            "its queue {what} does not exist",
            "write the label kai.scheduler/queue with a leaf of {queues}",
        ),
    ),
    (
        r"OverLimit.*?(?:[Ll]imit is (?P<limit>[\d.]+) (?P<of>\w+))?",
        Meaning(
            "queue-full",
            "its queue is at its limit: {text}",
            "wait for a pod of that queue to end, or raise its limit at {queues}",
        ),
    ),
    (
        r"NonPreemptibleOverQuota|non.?preemptible.*quota",
        Meaning(
            "over-quota",
            "its priority class is not preemptible, and such pods get no more than the quota of"
            " every queue above them",
            "write priorityClassName: train (50), or raise the quota at {queues}",
        ),
    ),
    (
        r"UnexpectedAdmissionError|Allocate failed due to requested number of devices unavailable",
        Meaning(
            "gpu-twice",
            "the node has given its GPUs to others: two schedulers hand out the same ones",
            "give each team node labels of its own at nodePool, and look for a second scheduler",
        ),
    ),
    (
        r"exceeded quota: shared",
        Meaning(
            "host-quota",
            "the team's bound on what all teams share on the host is reached: {text}",
            "end other pods of the team, or raise what the message names at isolation.bounds of the"
            " team",
        ),
    ),
    (
        r"exceeded quota: system-priority",
        Meaning(
            "host-quota",
            "its priority class is for Kubernetes' own parts, and a team has no pods of it",
            "write another priorityClassName, or none",
        ),
    ),
    (
        r"exceeded quota",
        Meaning(
            "host-quota",
            "the team's bound on the host is reached: {text}",
            "end other pods of the team, or raise gpus of the team",
        ),
    ),
    (
        r"shared-gpu-\d+-evar\"? not found|Found pod without reservation, deleting",
        Meaning(
            "two-modes",
            "a KAI on the host and one inside the vCluster fight for the pod",
            "a host is in virtual mode or in host mode: remove kai-fleet:kai, or the team's own"
            " scheduler, then {update}",
        ),
    ),
    (
        r"failed calling webhook.*x509: certificate signed by unknown authority",
        Meaning(
            "webhook-unsigned",
            "a webhook of KAI has no valid certificate: its installation did not end",
            "{update}; it goes on from there",
        ),
    ),
    (
        r"failed calling webhook \"?(?P<what>[^\": ]+)",
        Meaning(
            "webhook-down",
            "the webhook {what} does not answer, and what it is asked about is refused",
            "look with: `{kubectl} -n kai-scheduler get deployments,endpoints`; then {update}",
        ),
    ),
    (
        r"Failed to bind pod.*not found",
        Meaning(
            "no-virtual-scheduler",
            "KAI inside binds pods that the host's scheduler places too: the vCluster's virtual"
            " scheduler is off",
            "take the scheduler's key out of the vCluster's values, then {update}",
        ),
    ),
    (
        r"fromHost\.nodes\.enabled is false.*virtual scheduler",
        Meaning(
            "vcluster-nodes",
            "a virtual scheduler needs the host's nodes, and their sync is off",
            "take sync.fromHost.nodes out of the vCluster's values, then {update}",
        ),
    ),
    (
        r"selector\.mappings is required for Namespaced scope",
        Meaning(
            "vcluster-podgroups",
            "the sync of PodGroups keeps the vCluster from starting",
            "take sync.fromHost.customResources out of the vCluster's values, then {update}",
        ),
    ),
    (
        r"failed to wait for config caches to sync.*ClusterPolicy",
        Meaning(
            "cluster-policy",
            "the operator waits for the CRD clusterpolicies.nvidia.com, and makes no part of KAI",
            "{update}, which declares it",
        ),
    ),
    (
        r"didn't match Pod's node affinity/selector",
        Meaning(
            "no-such-node",
            "no node has the labels that it asks for: {text}",
            "write a nodeSelector that nodes of its pool have",
        ),
    ),
    (
        r"untolerated taint",
        Meaning("taint", "every node has a taint: {text}", "write a toleration for it"),
    ),
    (
        r"Insufficient|[Nn]ot enough resources|node-gpu|didn't have enough resource",
        Meaning(
            "no-room",
            "no node has room for it: {text}",
            "ask for less, end other pods, or add nodes to the pool",
        ),
    ),
)


def meaning(text: str) -> Meaning | None:
    """What a message of an event, a condition or a container means; None for an unknown one."""
    for pattern, known in _KNOWN:
        found = re.search(pattern, text, flags=re.DOTALL)
        if found is not None:
            parts = {key: value or "" for key, value in found.groupdict().items()}
            parts.setdefault("what", "")
            short = " ".join(text.split())[:240]
            cause = known.cause
            for key, value in {**parts, "text": short}.items():
                cause = cause.replace(f"{{{key}}}", value.strip())
            varies = "{text}" in known.cause
            return Meaning(known.name, " ".join(cause.split()), known.fix, varies)
    return None
