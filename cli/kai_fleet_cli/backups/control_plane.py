"""The control plane of a team's vCluster on the host: its workload, its pods, its store."""

from dataclasses import dataclass

from kai_fleet.cluster.kube.api import Api, Object
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.values import get
from kai_usage.objects import annotations_of, controller_of

CONTAINER = "syncer"
# Annotations by which vCluster notes on a host pod which one inside it stands for.
_NAMESPACE = "vcluster.loft.sh/object-namespace"
_NAME = "vcluster.loft.sh/object-name"
_UID = "vcluster.loft.sh/object-uid"


@dataclass(frozen=True)
class ControlPlane:
    """The control plane of a team's vCluster.

    Attributes:
        api: The API server of the host.
        team: The team, which is the vCluster's name.
    """

    api: Api
    team: str

    @property
    def namespace(self) -> str:
        """Its namespace on the host."""
        return f"team-{self.team}"

    @property
    def path(self) -> str:
        """The path of the core API in its namespace."""
        return f"/api/v1/namespaces/{self.namespace}"

    @property
    def apps(self) -> str:
        """The path of the API of workloads in its namespace."""
        return f"/apis/apps/v1/namespaces/{self.namespace}"

    def workload(self) -> Object | None:
        """Its StatefulSet, else its Deployment, which has no volume; None without one."""
        stateful_set = self.api.find(f"{self.apps}/statefulsets/{self.team}")
        return stateful_set or self.api.find(f"{self.apps}/deployments/{self.team}")

    def etcd(self) -> Object | None:
        """The StatefulSet of the chart's etcd; None for another store."""
        return self.api.find(f"{self.apps}/statefulsets/{self.team}-etcd")

    def members(self) -> int:
        """How many members the chart's etcd has; 0 for another store."""
        etcd = self.etcd()
        return etcd["spec"]["replicas"] if etcd else 0

    def etcd_is_ready(self) -> bool:
        """Whether more than half of the chart's etcd is Ready; True for another store."""
        etcd = self.etcd()
        if etcd is None:
            return True
        ready = get(etcd, "status", "readyReplicas") or 0
        return bool(2 * ready > etcd["spec"]["replicas"])

    def ready_pod(self) -> str | None:
        """The name of a Ready pod of it; None if none is, or if its etcd has no quorum.

        Without its store a pod counts as Ready for minutes.
        """
        if not self.etcd_is_ready():
            return None
        for pod in self.pods():
            if pod.is_ready and not pod.is_being_deleted:
                return pod.name
        return None

    def pods(self) -> list[KubeObject]:
        """Its pods, those of the workload alone: a tenant's pod may have the same labels."""
        workload = self.workload()
        if workload is None:
            return []
        makers = [workload, *self.replica_sets(workload)]
        controllers = {maker["metadata"]["uid"] for maker in makers}
        pods = map(KubeObject, self.api.list(f"{self.path}/pods"))
        return [pod for pod in pods if controller_of(pod).get("uid") in controllers]

    def exec_words(self, pod: str) -> list[str]:
        """The words of kubectl before a command in the vCluster's container of a pod."""
        return ["exec", "-i", "-n", self.namespace, pod, "-c", CONTAINER, "--"]

    def synced_pods(self) -> dict[str, str]:
        """The pods inside that have a pod on the host, as NAMESPACE/NAME, with their UIDs."""
        notes = map(annotations_of, self.api.list(f"{self.path}/pods"))
        return {
            f"{noted[_NAMESPACE]}/{noted[_NAME]}": noted[_UID] for noted in notes if _UID in noted
        }

    def replica_sets(self, workload: Object | None) -> list[Object]:
        """The ReplicaSets of its workload; empty for a StatefulSet, and without one."""
        if workload is None or workload["kind"] != "Deployment":
            return []
        sets = self.api.list(f"{self.apps}/replicasets")
        uid = workload["metadata"]["uid"]
        return [each for each in sets if controller_of(each).get("uid") == uid]


def chart_version(workload: Object) -> str:
    """The version in the label `chart` of a workload, as `vcluster-0.36.1`; "" without one."""
    chart = str(get(workload, "metadata", "labels", "chart") or "")
    return chart.rpartition("vcluster-")[2]
