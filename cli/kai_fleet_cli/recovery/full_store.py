"""Repair a vCluster whose store takes no more writes, and keep its data.

The command depends on what the host has now, so after it was run another one is printed.
"""

import math
import re
from collections.abc import Sequence

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.store_use import etcd_use, grows, size_of, store_use
from kai_fleet.releases.chart_stores import ETCD, ChartStore

_QUOTA_EXCEEDED = re.compile("mvcc: database space exceeded")
# Share of a volume or a quota; below it a store has room enough to go on.
NEARLY = 0.8
_GIB = 2**30
_PKI = "/run/config/pki"  # where the chart's etcd mounts Secret NAME-certs


def repair(api: Api, team: str, store: ChartStore, message: str) -> tuple[str, str]:
    """Cause and command for a full store; the command is "" if none repairs it.

    Args:
        api: The host's API server.
        team: The team of the vCluster.
        store: The store of its chart.
        message: The error that says that the store is full.

    Raises:
        KubeError: The host does not answer, or refuses its claims or pods.
        One of MALFORMED: An object of the host is malformed.
    """
    if store.type == "etcd" and _QUOTA_EXCEEDED.search(message):
        return _repair_quota(api, team, store)
    return _repair_volumes(api, team, store)


def _repair_quota(api: Api, team: str, store: ChartStore) -> tuple[str, str]:
    """Cause and command: compact and defragment etcd, also if its use cannot be read.

    If its data alone take more than NEARLY of the quota, the cause tells to double the quota, and
    the command is "". Raises IndexError for a store with no members.
    """
    first_member = store.etcds(team)[0]
    use = etcd_use(api, team, first_member)
    if use is None or use.used <= NEARLY * use.quota:
        cause = "the etcd of its vCluster is at its quota, and takes no more writes"
        return cause, compaction(team)
    cause = f"what the etcd of its vCluster holds fills its quota of {use.quota / _GIB:.1f} GiB"
    key = f"vcluster.values of team {team} in the stack file"
    return f"{cause}: write {larger_quota(use.quota)} at {key}", ""


def larger_quota(quota: float) -> str:
    """The chart values that double the quota of the chart's etcd. `quota` is in bytes."""
    return f"{ETCD}.statefulSet.extraArgs: [--quota-backend-bytes={math.ceil(2 * quota)}]"


def compaction(team: str, kubectl: str = "kubectl") -> str:
    """The command that compacts a vCluster's etcd, defragments all members and disarms the alarm.

    Etcd's image has no shell, so each step is a `kubectl exec` in the first member. `kubectl` is
    the one for the host.
    """
    member = f"{team}-etcd-0"
    # The certificate is for this name, not for the pod's address.
    endpoint = f"https://{member}.{team}-etcd-headless.team-{team}:2379"
    etcdctl = (
        f"{kubectl} -n team-{team} exec {member} -c etcd -- etcdctl --command-timeout 300s"
        f" --endpoints {endpoint}"
        f" --cacert {_PKI}/etcd-ca.crt"
        f" --cert {_PKI}/apiserver-etcd-client.crt"
        f" --key {_PKI}/apiserver-etcd-client.key"
    )
    revision = "endpoint status -w fields | sed -n 's/^\"Revision\" : //p'"
    return (
        f'etcdctl() {{ {etcdctl} "$@"; }}; etcdctl compact "$(etcdctl {revision})";'
        " etcdctl defrag --cluster && etcdctl alarm disarm"
    )


def _repair_volumes(api: Api, team: str, store: ChartStore) -> tuple[str, str]:
    """Cause and command, by the first that applies.

    The store has no volume, or one that grows already: the command is "". All its volumes have room
    now: restart its workload. A StorageClass lets no volume grow: let it. Else grow the volumes and
    restart the workload. Raises KubeError, or one of MALFORMED.
    """
    names = store.claims(team)
    path = f"/api/v1/namespaces/team-{team}/persistentvolumeclaims"
    in_namespace = [KubeObject(item) for item in api.list(path)]
    of_store = [claim for claim in in_namespace if claim.name in names]
    if not of_store:
        cause = "the store of its vCluster is full, and on no volume"
        return f"{cause}: make room on the disk of its node, or in its database", ""
    for claim in of_store:
        if grows(claim):
            return _await_growth(team, claim), ""
    # Classes first: asking kubelets may use up the time that the client has.
    fixed_classes = _fixed_classes(api, of_store)
    if _has_room(api, team, store):
        cause = "the store of its vCluster took no writes, and its volume has room now"
        return cause, _restart(team, store)
    if fixed_classes:
        cause = (
            f"the store of its vCluster is full, and StorageClass {fixed_classes[0]} lets no volume"
            " grow; its driver has to be one that can"
        )
        body = '{"allowVolumeExpansion":true}'
        return cause, f"kubectl patch storageclass {fixed_classes[0]} -p '{body}'"
    command = f"{growth(team, of_store)} && {_restart(team, store)}"
    return "the store of its vCluster is full", command


def _await_growth(team: str, claim: KubeObject) -> str:
    """The cause that a claim is to grow and has not grown yet, with its first condition's message.

    It ends in a command that only shows the claim. Raises one of MALFORMED.
    """
    capacity = claim.status["capacity"]["storage"]
    cause = f"claim {claim.name} of its full store is to grow and has {capacity} still"
    conditions = claim.status.get("conditions") or []
    message = str(conditions[0].get("message") or "") if conditions else ""
    if message:
        cause += f" ({message})"
    return f"{cause}: look with: kubectl -n team-{team} describe pvc {claim.name}"


def growth(team: str, full_claims: Sequence[KubeObject], kubectl: str = "kubectl") -> str:
    """The command that makes claims request twice what the largest requests, rounded up to GiB.

    `kubectl` is the one for the host. Raises ValueError without claims, or if one requests what is
    no quantity.
    """
    largest_bytes = max(size_of(claim) for claim in full_claims)
    size = f"{math.ceil(2 * largest_bytes / _GIB)}Gi"
    body = f'{{"spec":{{"resources":{{"requests":{{"storage":"{size}"}}}}}}}}'
    names = " ".join(claim.name for claim in full_claims)
    return f"{kubectl} -n team-{team} patch pvc {names} -p '{body}'"


def _restart(team: str, store: ChartStore) -> str:
    """The command that restarts the workload that has the store open, and waits for it.

    That is the chart's etcd, or for another store the control plane.
    """
    workload = f"{store.workload}/{team}"
    if store.type == "etcd":
        workload = f"statefulset/{team}-etcd"
    rollout = f"kubectl -n team-{team} rollout"
    return f"{rollout} restart {workload} && {rollout} status {workload}"


def _has_room(api: Api, team: str, store: ChartStore) -> bool:
    """Whether each volume of the store is known to be used to less than NEARLY.

    False if a kubelet does not tell. Raises KubeError if the pods cannot be listed, one of
    MALFORMED for a malformed pod, and ValueError for a store without a volume.
    """
    labels = {"labelSelector": f"app in (vcluster,vcluster-etcd),release={team}"}
    nodes = set[str]()
    for item in api.list(f"/api/v1/namespaces/team-{team}/pods", **labels):
        node = KubeObject(item).spec.get("nodeName")
        if node:
            nodes.add(str(node))
    volumes = store_use(api, team, store, sorted(nodes)).volumes
    return len(volumes) == len(store.claims(team)) and max(volumes.values()) < NEARLY


def _fixed_classes(api: Api, full_claims: Sequence[KubeObject]) -> list[str]:
    """The names of the claims' StorageClasses whose volumes do not grow, sorted.

    Empty if the classes cannot be read. A class that is gone is left out. Raises one of MALFORMED.
    """
    try:
        items = api.list("/apis/storage.k8s.io/v1/storageclasses")
    except KubeError:
        return []
    classes = [KubeObject(item) for item in items]
    fixed = {item.name for item in classes if item.get("allowVolumeExpansion") is not True}
    used = {str(claim.spec.get("storageClassName")) for claim in full_claims}
    return sorted(fixed & used)
