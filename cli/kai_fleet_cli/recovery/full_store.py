"""A vCluster whose store takes no more writes: the command that makes room and keeps its data.

What is printed depends on what the host has now, so the command that was run is not printed again.
"""

import math
import re
from collections.abc import Sequence
from typing import Final

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.store_use import claims, etcd_use, grows, members, size_of, store_use
from kai_fleet.vcluster_values import ETCD, ChartStore

_OF_QUOTA: Final = re.compile("mvcc: database space exceeded")
NEARLY: Final = 0.8  # of a volume or a quota: less than that is room enough to go on
_GIB: Final = 2**30
_PKI: Final = "/run/config/pki"  # where the chart's etcd has Secret NAME-certs


def repair(api: Api, team: str, store: ChartStore, message: str) -> tuple[str, str]:
    """Cause and command for a full store, or cause and "" where no command helps.

    `api` is the host's. Raises KubeError where it does not answer.
    """
    if store.type == "etcd" and _OF_QUOTA.search(message):
        return _of_quota(api, team, store)
    return _of_volumes(api, team, store)


def _of_quota(api: Api, team: str, store: ChartStore) -> tuple[str, str]:
    """Compact and defragment; where what is in use fills the quota by itself, raise that."""
    use = etcd_use(api, team, members(team, store)[0])
    if use and use.used > NEARLY * use.quota:
        cause = f"what the etcd of its vCluster holds fills its quota of {_gib(use.quota)}"
        where = f"vcluster.values of team {team} in the stack file"
        return f"{cause}: write {larger_quota(use.quota)} at {where}", ""
    return "the etcd of its vCluster is at its quota, and takes no more writes", compaction(team)


def larger_quota(quota: float) -> str:
    """The chart values that double the quota of the chart's etcd."""
    return f"{ETCD}.statefulSet.extraArgs: [--quota-backend-bytes={math.ceil(2 * quota)}]"


def compaction(team: str) -> str:
    """The command that makes room in a vCluster's etcd and has it take writes again.

    Etcd's image has no shell, so each step is a command of its own.
    """
    member = f"{team}-etcd-0"
    # The certificate has this name, and not the pod's address.
    endpoint = f"https://{member}.{team}-etcd-headless.team-{team}:2379"
    files = f"--cacert {_PKI}/etcd-ca.crt --cert {_PKI}/apiserver-etcd-client.crt"
    files += f" --key {_PKI}/apiserver-etcd-client.key"
    etcdctl = f"kubectl -n team-{team} exec {member} -c etcd -- etcdctl --command-timeout 300s"
    etcdctl += f" --endpoints {endpoint} {files}"
    revision = "endpoint status -w fields | sed -n 's/^\"Revision\" : //p'"
    return (
        f'etcdctl() {{ {etcdctl} "$@"; }}; etcdctl compact "$(etcdctl {revision})";'
        " etcdctl defrag --cluster && etcdctl alarm disarm"
    )


def _of_volumes(api: Api, team: str, store: ChartStore) -> tuple[str, str]:
    """Have the claims grow and the control plane start again; the rest by what is found."""
    at, names = f"-n team-{team}", claims(team, store)
    path = f"/api/v1/namespaces/team-{team}/persistentvolumeclaims"
    found = [KubeObject(item) for item in api.list(path)]
    own = [claim for claim in found if claim.name in names]
    if not own:
        cause = "the store of its vCluster is full, and on no volume"
        return f"{cause}: make room on the disk of its node, or in its database", ""
    if growing := [claim for claim in own if grows(claim)]:
        claim = growing[0]
        why = next((str(each.get("message")) for each in claim.status.get("conditions") or []), "")
        look = f"look with: kubectl {at} describe pvc {claim.name}"
        has = claim.status["capacity"]["storage"]
        cause = f"claim {claim.name} of its full store is to grow and has {has} still"
        return f"{cause}{f' ({why})' if why else ''}: {look}", ""
    restart = f"kubectl {at} rollout restart {_workload(team, store)}"
    again = f"{restart} && kubectl {at} rollout status {_workload(team, store)}"
    fixed = _fixed_classes(api, own)  # before kubelets are asked, which may use up the time
    if _has_room(api, team, store):
        return "the store of its vCluster took no writes, and its volume has room now", again
    if fixed:
        body = '{"allowVolumeExpansion":true}'
        cause = (
            f"the store of its vCluster is full, and StorageClass {fixed[0]} lets no volume grow"
        )
        command = f"kubectl patch storageclass {fixed[0]} -p '{body}'"
        return f"{cause}; its driver has to be one that can", command
    return "the store of its vCluster is full", f"{growth(team, own)} && {again}"


def growth(team: str, own: Sequence[KubeObject]) -> str:
    """The command that has the volumes of these claims grow to twice their size."""
    size = f"{math.ceil(2 * max(map(size_of, own)) / _GIB)}Gi"
    body = f'{{"spec":{{"resources":{{"requests":{{"storage":"{size}"}}}}}}}}'
    names = " ".join(claim.name for claim in own)
    return f"kubectl -n team-{team} patch pvc {names} -p '{body}'"


def _workload(team: str, store: ChartStore) -> str:
    """What has the store open."""
    return f"statefulset/{team}-etcd" if store.type == "etcd" else f"{store.workload}/{team}"


def _has_room(api: Api, team: str, store: ChartStore) -> bool:
    """Whether every volume of the store is known to have room."""
    labels = {"labelSelector": f"app in (vcluster,vcluster-etcd),release={team}"}
    pods = map(KubeObject, api.list(f"/api/v1/namespaces/team-{team}/pods", **labels))
    nodes = {str(node) for pod in pods if (node := pod.spec.get("nodeName"))}
    volumes = store_use(api, team, store, sorted(nodes)).volumes
    return len(volumes) == len(claims(team, store)) and max(volumes.values()) < NEARLY


def _fixed_classes(api: Api, own: Sequence[KubeObject]) -> list[str]:
    """The classes of claims whose volumes do not grow; none where classes may not be read."""
    try:
        classes = map(KubeObject, api.list("/apis/storage.k8s.io/v1/storageclasses"))
    except KubeError:
        return []
    fixed = {item.name for item in classes if item.get("allowVolumeExpansion") is not True}
    return sorted(fixed & {str(claim.spec.get("storageClassName")) for claim in own})


def _gib(size: float) -> str:
    return f"{size / _GIB:.1f} GiB"
