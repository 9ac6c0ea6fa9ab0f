"""Team: a team's namespace, vCluster, scheduler and queues together."""

from typing import Required, TypedDict, cast

from pulumi import ComponentResource, Output, Resource, ResourceOptions

from kai_fleet import queue_tree
from kai_fleet.backup.arguments import VirtualClusterBackupArgs
from kai_fleet.backup.virtual_cluster_backup import VirtualClusterBackup
from kai_fleet.declaring.argument_check import Allowed, check
from kai_fleet.declaring.options import child_options, component_options, depending_on
from kai_fleet.isolation import queue_guard, team_namespace
from kai_fleet.isolation.policies import declare
from kai_fleet.isolation.team_namespace import TeamNamespace, TeamNamespaceArgs
from kai_fleet.kai import kai_scheduler
from kai_fleet.kai.arguments import KaiArgs, KaiSchedulerArgs
from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.names import TEAM
from kai_fleet.queue_tree import QueueTree, QueueTreeArgs, TreeArgs
from kai_fleet.queues.specs import leaves
from kai_fleet.releases import takes_external_pod_groups
from kai_fleet.vcluster import virtual_cluster
from kai_fleet.vcluster.virtual_cluster import VirtualCluster, VirtualClusterArgs

_ALLOWED = Allowed(
    choices={
        **virtual_cluster.ALLOWED.below("vcluster"),
        **team_namespace.ALLOWED.below("namespace"),
        **kai_scheduler.ALLOWED.below("kai"),
        "guard.mode": ("deny", "audit"),
        "guard.outside": ("deny", "warn", "allow"),
    },
    needs=virtual_cluster.ALLOWED.needs,
    short=queue_tree.ALLOWED.short,
    quantities=queue_tree.ALLOWED.quantities,
)


class QueueGuardArgs(TypedDict, total=False):
    """The ValidatingAdmissionPolicies inside a vCluster: pods have to name a leaf queue of the
    team, and may share GPUs if its KAI does.
    """

    mode: str
    """What happens to pods that name a wrong queue: `deny`; `audit` warns, for roll-out. Default:
    `deny`.
    """
    outside: str
    """What happens to pods that ask for GPUs without KAI: `deny`, `warn`, `allow`. Default: `deny`.
    """
    gpu_resource: str
    """Name by which nodes advertise GPUs. Default: `nvidia.com/gpu`."""


class TeamArgs(TypedDict, total=False):
    """The components of a team. Team fills in what one needs from another: the kubeconfig."""

    vcluster: Required[VirtualClusterArgs]
    """Its vCluster, with the kubeconfig or context of the host."""
    namespace: TeamNamespaceArgs
    """Its namespace on the host. Default: `vcluster.namespace`, which exists already."""
    kai: KaiArgs
    """KAI inside its vCluster. Default: none; a scheduler on the host places its pods."""
    queues: TreeArgs
    """Queues inside its vCluster, created once its KAI is ready. Default: none."""
    host_queues: TreeArgs
    """Queues of the host's KAI, declared by a team that has its own stack. Default: none."""
    guard: QueueGuardArgs
    """Admission guard for queues inside its vCluster. Default: none."""
    backup: VirtualClusterBackupArgs
    """Backups of its vCluster on a schedule. Default: none."""


class Team(ComponentResource):
    """A team's own Kubernetes on its nodes, with its own scheduler or one of the host's.

    In Python, declare workloads with the options of `vcluster.inside`, depending on `ready`: a pod
    without its queue stays Pending.

    Raises:
        pulumi.RunError: an argument is not one that the team takes, or one of its components
            refuses: see there.
    """

    namespace: Output[str]
    """Its namespace on the host."""
    server: Output[str]
    """The address of its vCluster's API: `https://…`."""
    kubeconfig: Output[str]
    """Administrator's kubeconfig of its vCluster, a secret."""
    leaves: Output[list[str]]
    """Names of its leaf queues, which pods may name."""

    def __init__(self, name: str, args: TeamArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__(TEAM, name, None, component_options(opts))
        check(f"Team {name}", TeamArgs, args, _ALLOWED)
        on_host = self._host_options(name, args, opts)
        # What workloads depend on: the trees of queues, the vCluster, and the KAI inside.
        self.ready = list[Resource]()
        if "host_queues" in args:
            # The check above has refused a vcluster in them.
            host_queues = cast(QueueTreeArgs, args["host_queues"])
            self.ready.append(QueueTree(f"{name}-queues", host_queues, on_host))
        self.vcluster = VirtualCluster(name, args["vcluster"], on_host)
        self.ready.append(self.vcluster)
        if "backup" in args:
            backup_args = {**self.vcluster.backup_args, **args["backup"]}
            VirtualClusterBackup(name, cast(VirtualClusterBackupArgs, backup_args), on_host)
        scheduling = self._guard(name, args, self.vcluster.inside(self))
        child = ResourceOptions(parent=self)
        if "kai" in args:
            # After the guard, so that it checks every pod that KAI places.
            kai_args: KaiSchedulerArgs = {"vcluster": self.vcluster, **args["kai"]}
            kai = KaiScheduler(name, kai_args, depending_on(child, *scheduling))
            self.ready.append(kai)
            scheduling = [kai]
        if "queues" in args:
            queue_args: QueueTreeArgs = {"vcluster": self.vcluster, **args["queues"]}
            queues = QueueTree(f"{name}-queues", queue_args, depending_on(child, *scheduling))
            self.ready.append(queues)
        self.namespace = self.vcluster.namespace
        self.server = self.vcluster.server
        self.kubeconfig = self.vcluster.kubeconfig
        # The leaves inside the vCluster; if it has no queues, those on the host.
        tree = args.get("queues") or args.get("host_queues")
        self.leaves = Output.from_input(leaves(tree["queues"]) if tree else [])
        self.register_outputs({"namespace": self.namespace})

    def _host_options(
        self, name: str, args: TeamArgs, opts: ResourceOptions | None
    ) -> ResourceOptions:
        """Declare the namespace, if there is one; return the options of what needs it on the host.

        Without one they have the dependencies of `opts`; else the namespace has these, and they
        depend on it. `vcluster.namespace` stays plain text, which rules read, so depends_on has the
        order. Raises as TeamNamespace does.
        """
        first = child_options(self, opts)
        namespace_args = args.get("namespace")
        if namespace_args is None:
            return first
        namespace = TeamNamespace(name, namespace_args, first)
        return depending_on(child_options(self, opts, ordered=False), namespace)

    def _guard(self, name: str, args: TeamArgs, inside: ResourceOptions) -> list[Resource]:
        """Declare the guard of the queues inside the vCluster; [] without the argument `guard`.

        Pods may name the leaves of `queues`, and none without these; `host_queues` are not read.
        Without a KAI inside, GPUs count as shared, and a pod's own PodGroup names no queue.
        """
        guard = args.get("guard")
        if guard is None:
            return []
        kai = args.get("kai") or KaiArgs(version="")
        bounds = {
            **guard,
            "gpu_sharing": kai.get("gpu_sharing", True),
            "pod_groups": takes_external_pod_groups(kai["version"]),
        }
        queues = leaves(args.get("queues", {"queues": {}})["queues"])
        policies, bindings = queue_guard.inside(name, queues, bounds)
        return declare(f"{name}-guard", policies, bindings, inside)
