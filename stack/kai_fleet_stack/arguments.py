"""The arguments of each component, from the settings of a stack.

Most settings and arguments have the same name. A setting that is None is left out, so that the
component's default holds.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict, cast

import pulumi
from pydantic import BaseModel, SecretStr

from kai_fleet.inputs import RegistryArgs, TolerationArgs, resolved, toleration_text, without_none
from kai_fleet.names import STACK_PULL_SECRET, TEAM_PULL_SECRET
from kai_fleet.queue_specs import UNLIMITED, named_specs
from kai_fleet.queue_specs import walk as walk_args
from kai_fleet.releases import DEFAULT_VCLUSTER, DISABLED, GPU_PROVIDERS, KAI, taken_for
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.releases.sharing import MODES, NV_FRACTIONS, mode_in
from kai_fleet.releases.sources import in_any
from kai_fleet.team_stack_access import TeamAccess
from kai_fleet.vcluster_values import argument_values
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.sections.access import Registries, RegistryCredentials
from kai_fleet_stack.settings.sections.kubernetes import Affinity, Toleration
from kai_fleet_stack.settings.sections.platform import HostKai, Monitoring
from kai_fleet_stack.settings.sections.queues import Queue, walk
from kai_fleet_stack.settings.sections.teams import Grant, HostPlace, Scheduler, TeamSettings
from kai_fleet_stack.settings.sections.vcluster import Oidc, Vcluster
from kai_usage import mig

if TYPE_CHECKING:  # rules use this module without the components
    from kai_fleet.gpu_stack import GpuStackArgs
    from kai_fleet.host_guards import HostGuardsArgs
    from kai_fleet.kai_scheduler import FairshareArgs, KaiSchedulerArgs, ShardArgs
    from kai_fleet.monitoring import FleetMonitoringArgs, MonitoringArgs
    from kai_fleet.queue_tree import QueueArgs, QueueTreeArgs, ShareArgs
    from kai_fleet.team import TeamArgs
    from kai_fleet.team_namespace import BoundsArgs, IsolationArgs, NetworkArgs, TeamNamespaceArgs
    from kai_fleet.virtual_cluster import AccessArgs, OidcArgs, StoreArgs, VirtualClusterArgs

# Argument `scheduler` of a namespace, by the mode of its team.
_SCHEDULER_BY_MODE: Final = {"virtual": "inside", "host": "host", "default": "none"}


class Connection(TypedDict):
    """The arguments by which components reach the host cluster: one of them."""

    kubeconfig: NotRequired[pulumi.Input[str]]
    context: NotRequired[str]


class UseExisting(TypedDict):
    """What others own on the host: `use_existing` of GpuStack and KaiScheduler, and the teams whose
    namespace existed before the stack.
    """

    gpu: NotRequired[list[str]]
    kai: NotRequired[list[str]]
    teams: NotRequired[list[str]]


@dataclass(frozen=True)
class Arguments:
    """The arguments of all components of one stack.

    Lists and mappings are copied, because those of arguments may have Outputs in place of values.

    Args:
        refused: output `refused` of the host's QueueTree, after it is declared.
    """

    settings: Settings
    host: Connection = field(default_factory=Connection)
    existing: UseExisting = field(default_factory=UseExisting)
    refused: pulumi.Input[dict[str, str]] | None = None

    @property
    def _teams(self) -> tuple[str, ...]:
        """Teams of this stack, and teams that it grants a stack of their own."""
        return (*self.settings.teams, *self.settings.team_stacks)

    # The host.

    def gpu_stack(self) -> "GpuStackArgs":
        """Arguments of the GPU stack, whose DaemonSets tolerate the taints of all teams' nodes."""
        settings = self.settings
        gpu = settings.gpu
        tolerations = dict[str, TolerationArgs]()
        for name in self._teams:
            for toleration in _tolerations(settings.own_of(name).tolerations):
                tolerations[str(toleration_text(toleration))] = toleration
        args: GpuStackArgs = {
            "provider": gpu.provider,
            "values": gpu.values,
            "tolerations": list(tolerations.values()),
            "registries": _registries(settings.registries),
            "system_priorities": gpu.system_priorities,
            "in_kind": settings.cluster.kind is not None,
        }
        if gpu.version is not None:
            args["version"] = gpu.version
        if gpu.chart is not None:
            args["chart"] = gpu.chart
        account = self._chart_account(gpu.chart)
        if account is not None:
            args["chart_account"] = account
        if "gpu" in self.existing:
            args["use_existing"] = self.existing["gpu"]
        return args

    def host_guards(self) -> "HostGuardsArgs":
        """Arguments of the guards. Guards that exist without being in the state are taken over.

        They are of an interrupted update: `existing` has refused a host of another stack before.
        """
        return {"host_kai": self.settings.kai is not None, "use_existing": False}

    def host_kai(self) -> "KaiSchedulerArgs":
        """Arguments of the host's KAI, which the settings must have."""
        settings = self.settings
        kai = settings.kai
        assert kai is not None
        use_existing = [*self.existing.get("kai", ())]
        if GPU_PROVIDERS[settings.gpu.provider].cluster_policy:
            use_existing.append("clusterPolicyCrd")  # the GPU operator installs it
        return {
            **self._kai(kai, kai, settings.registries),
            "labels": {**settings.labels},
            "isolation": settings.isolation.level,
            "registries": _registries(settings.registries),
            "use_existing": use_existing,
            **self.host,
        }

    def host_queues(self) -> "QueueTreeArgs":
        """Arguments of the host's queues, all with a GPU quota.

        A queue that teams use gets the sum of their GPUs as its limit, unless it has one.
        """
        settings = self.settings
        queues = _queue_args(settings.queues)
        gpus_by_queue = self._gpus_by_queue()
        # Computed before a limit is written, which would change the sums of the queues above.
        specs = named_specs(queues)
        quotas = [spec["resources"]["gpu"]["quota"] for _, spec in specs]
        for (name, queue), quota in zip(walk_args(queues), quotas, strict=True):
            most = gpus_by_queue.get(name)
            queue["gpu"] = _gpu_share(queue.get("gpu", {}), quota, most)
        args: QueueTreeArgs = {
            "queues": queues,
            "shared": True,
            "tenants": sorted(settings.team_stacks),
            "cluster": settings.cluster.name,
        }
        return {**args, **self.host}

    def _gpus_by_queue(self) -> dict[str, int]:
        """Sum of the GPUs of the teams that use a queue of the host, as KAI counts them."""
        gpus = dict[str, int]()
        for name in self._teams:
            _, queue = self._scheduler(name)
            if queue is None:
                continue
            gpus.setdefault(queue, 0)
            gpus[queue] += self.settings.own_of(name).counted
        return gpus

    def refusals_of_nobody(self) -> pulumi.Input[str]:
        """Why queues that no team uses differ from the settings, a line each; "" if none does."""
        used_queues = {queue for _, queue in map(self._scheduler, self._teams)}
        return resolved(lambda refused: _lines(refused, used_queues), self.refused or {})

    def monitoring(self) -> "FleetMonitoringArgs":
        """Arguments of the host's monitoring, which the settings must have."""
        settings = self.settings
        monitoring = settings.monitoring
        assert monitoring is not None
        return {
            "namespace": monitoring.namespace,
            "operator": monitoring.operator,
            "labels": {**monitoring.labels},
            "interval": monitoring.interval,
            "gpu_resource": settings.gpu.resource,
            "host_kai": settings.kai is not None,
            "parent_queues": [*_parents(settings.queues)],
        }

    def accounts(self) -> dict[str, TeamAccess]:
        """Argument `teams` of TeamStackAccess: an account for each team with a stack of its own."""
        accounts = dict[str, TeamAccess]()
        for name, grant in self.settings.team_stacks.items():
            account: TeamAccess = {"foreign_queues": self._foreign_queues(name)}
            if self.settings.kai is not None and grant.parent_queue is not None:
                self._grant_queue(account, name, grant.parent_queue, self.settings.kai)
            accounts[name] = account
        return accounts

    def _grant_queue(self, account: TeamAccess, team: str, granted: str, kai: HostKai) -> None:
        """Let a team stack's account write queues below the one that it is granted."""
        queues = {queue.name: queue for queue in walk(self.settings.queues)}
        account["parent_queue"] = granted
        if team in queues and team != granted:
            account["foreign_queues"].insert(0, team)
        queue = queues.get(granted)
        if queue is None:
            return
        if queue.shard is not None and queue.shard != DEFAULT_SHARD:
            account["shard"] = queue.shard
        version = kai.version or ""
        release = KAI.get(taken_for(KAI, version) or version)
        if release is not None and release.max_queue_depth is not None:
            depth = len(queue.above) + 1
            account["levels"] = max(0, release.max_queue_depth - depth)

    # A team's namespace on the host.

    def namespace(self, name: str) -> "TeamNamespaceArgs":
        """Arguments of the namespace of a team of this stack, or of one with a stack of its own."""
        settings = self.settings
        team = settings.own_of(name)
        scheduler, queue = self._scheduler(name)
        by_host = scheduler == "host"
        has_own_stack = name in settings.team_stacks
        args = self._required_of_namespace(name)
        if by_host and queue and self.refused is not None:
            args["queue_refusal"] = self._refusal(queue, self.refused)
        if by_host and has_own_stack:
            args["queue_prefix"] = f"{name}-"
        if settings.monitoring is not None:
            args["monitoring"] = self._namespace_monitoring(team, settings.monitoring, scheduler)
        if not has_own_stack:
            vcluster = self._without_database(name)
            args["vcluster_version"] = vcluster.get("version", DEFAULT_VCLUSTER)
            args["vcluster_values"] = argument_values(vcluster)
        return args

    def _required_of_namespace(self, name: str) -> "TeamNamespaceArgs":
        """The arguments that the namespace of any team has."""
        settings = self.settings
        team = settings.own_of(name)
        kai = settings.kai
        sharing = settings.sharing_of(kai) if kai else DISABLED
        scheduler, queue = self._scheduler(name)
        by_host = scheduler == "host"
        slices_as_gpus = int(mig.gpus_of(team.slices))
        return {
            "name": f"team-{name}",
            "guards": "declared",  # the program declares them before any namespace
            "gpus": max(0, team.counted - slices_as_gpus),
            "gpu_resource": settings.gpu.resource,
            "slices": {**team.slices},
            "devices": {**team.isolation.devices},
            "device_classes": {**team.isolation.device_classes},
            "node_pool": {**team.node_pool},
            "control_pool": {**self.control_pool(name)},
            "foreign_pools": [{**pool} for pool in self._foreign_pools(name)],
            "scheduler": scheduler,
            "isolation": self._isolation(name),
            "tolerations": _tolerations(team.tolerations),
            "queues": [queue] if by_host and queue else [],
            "foreign_queues": [*self._foreign_queues(name)],
            "host_kai": kai is not None,
            "guard": settings.guard.mode,
            "gpu_sharing": sharing != DISABLED,
            "nv_fractions": by_host and sharing == NV_FRACTIONS,
            # From sources and not from a team's values: level restricted admits these images.
            "kai_images": [*settings.known_sources.kai_images],
            "labels": {**team.labels},
            "annotations": {**team.annotations},
            "registries": _registries(settings.registries),
            "account": name in settings.team_stacks,
            "use_existing": name in self.existing.get("teams", ()),
        }

    def _isolation(self, name: str) -> "IsolationArgs":
        isolation = self.settings.own_of(name).isolation
        return {
            "level": isolation.level,
            "priority_classes": [*isolation.priority_classes],
            "runtime_classes": [*isolation.runtime_classes],
            "annotations": [*isolation.annotations],
            "volumes": [*isolation.volumes],
            "volume_classes": [*self.volume_classes(name)],
            "network": cast("NetworkArgs", _plain(isolation.network)),
            "bounds": cast("BoundsArgs", _plain(isolation.bounds)),
        }

    def _namespace_monitoring(
        self, team: TeamSettings | Grant, monitoring: Monitoring, scheduler: str
    ) -> "MonitoringArgs":
        """Monitoring of a team's namespace. Only a team of this stack has queues that are known."""
        has_kai = isinstance(team, TeamSettings) and scheduler == "inside"
        queues = team.queues if isinstance(team, TeamSettings) and has_kai else {}
        return {
            "namespace": monitoring.namespace,
            "operator": monitoring.operator,
            "labels": {**monitoring.labels},
            "interval": monitoring.interval,
            "certificates": monitoring.certificates,
            "scheduler": has_kai,
            "parent_queues": [*_parents(queues)],
        }

    def _foreign_pools(self, name: str) -> list[dict[str, str]]:
        """Labels of the nodes that other teams and control planes use, each pool once, sorted.

        Empty for a team with nodes of its own.
        """
        settings = self.settings
        if settings.own_of(name).node_pool:
            return []
        pools = [settings.vcluster.node_pool]
        for other in self._teams:
            if other != name:
                pools.append(self.control_pool(other))
                pools.append(settings.own_of(other).node_pool)
        labels = {tuple(sorted(pool.items())) for pool in pools if pool}
        return [dict(pool) for pool in sorted(labels)]

    def volume_classes(self, name: str) -> list[str]:
        """Classes that a team's claims may name: those granted to it, and that of vClusters."""
        classes = [*self.settings.own_of(name).isolation.volume_classes]
        if self.settings.vcluster.storage_class:
            classes.append(self.settings.vcluster.storage_class)
        return classes

    def _scheduler(self, name: str) -> tuple[str, str | None]:
        """Argument `scheduler` of a team's namespace, and the host's queue that the team uses.

        A team's own stack chooses its mode: with a granted queue it is taken for `host`, without a
        host KAI for `inside`, else for `none`.
        """
        team = self.settings.own_of(name)
        if isinstance(team, TeamSettings):
            return _SCHEDULER_BY_MODE[team.scheduler.mode], team.queue
        if self.settings.kai is None:
            return "inside", team.parent_queue
        return "host" if team.parent_queue else "none", team.parent_queue

    def _refusal(self, queue: str, refused: pulumi.Input[dict[str, str]]) -> pulumi.Input[str]:
        """Why a queue of the host differs from the settings; "" if it does not."""
        return resolved(lambda reasons: reasons.get(queue, ""), refused)

    def _without_database(self, name: str) -> "VirtualClusterArgs":
        """Arguments of a team's vCluster without the URL of a database, which has a password."""
        args = self.vcluster(name)
        if "data_source" in args["store"]:
            args["store"] = {}
        return args

    def control_pool(self, name: str) -> dict[str, str]:
        """Labels of the nodes for a team's control plane; the first that is set decides.

        That of its vCluster, that of kai-fleet:vcluster, the team's own nodes.
        """
        team = self.settings.own_of(name)
        of_vcluster = team.vcluster.node_pool if isinstance(team, TeamSettings) else {}
        return dict(of_vcluster or self.settings.vcluster.node_pool or team.node_pool)

    def _foreign_queues(self, name: str) -> list[str]:
        """Queues and teams that begin with `NAME-`, the prefix of a team stack's own queues.

        The queue that the team is granted is left out.
        """
        _, granted = self._scheduler(name)
        names = {placed.name for placed in walk(self.settings.queues)}
        names.update(self._teams)
        names.discard(granted or "")
        return sorted(other for other in names if other.startswith(f"{name}-"))

    # A team.

    def team(self, name: str) -> "TeamArgs":
        """Arguments of a team; in a team's own stack without the platform's namespace."""
        settings = self.settings
        team = settings.teams[name]
        args: TeamArgs = {"vcluster": {**self.vcluster(name), **self.host}}
        if settings.platform_facts is None:
            args["namespace"] = self.namespace(name)
        if team.scheduler.mode == "virtual":
            args["kai"] = self.kai(name)
            args["queues"] = self.queues(name)
            if settings.guard.mode != "off":
                args["guard"] = {
                    "mode": settings.guard.mode,
                    "outside": settings.guard.outside([*team.queues]),
                    "gpu_resource": settings.gpu.resource,
                }
        elif team.scheduler.mode == "host" and team.queues:
            args["host_queues"] = {**self.queues(name), **self.host}
        return args

    def vcluster(self, name: str) -> "VirtualClusterArgs":
        """Arguments of a team's vCluster, without kubeconfig or context of the host."""
        team = self.settings.teams[name]
        vcluster = team.vcluster
        args: VirtualClusterArgs = {
            "namespace": f"team-{name}",
            "untested": vcluster.untested,
            "values": vcluster.values,
            "mode": team.scheduler.mode,
            "node_pool": {**team.node_pool},
            "control_pool": {**self.control_pool(name)},
            "replicas": vcluster.replicas,
            "store": cast("StoreArgs", _plain(vcluster.store)),
            "resources": _resources(vcluster),
            "groups": {**vcluster.groups} if vcluster.oidc else {},
            "isolation": team.isolation.level,
            "tolerations": _tolerations(team.tolerations),
            "image_pull_secrets": [*self._pull_secrets(team)],
            "registries": _registries(team.registries),
            "labels": {**team.labels},
            "annotations": {**team.annotations},
            "licensed": vcluster.licensed,
            "stack_key": self.settings.team_path(name),
        }
        self._add_optional(args, team, vcluster)
        return args

    def _add_optional(
        self, args: "VirtualClusterArgs", team: TeamSettings, vcluster: Vcluster
    ) -> None:
        """Add to the arguments of a vCluster those whose settings are not None."""
        if vcluster.version is not None:
            args["version"] = vcluster.version
        if vcluster.kubernetes_version is not None:
            args["kubernetes_version"] = vcluster.kubernetes_version
        if vcluster.chart is not None:
            args["chart"] = vcluster.chart
        account = self._chart_account(vcluster.chart, team.registries)
        if account is not None:
            args["chart_account"] = account
        if vcluster.access is not None:
            args["access"] = cast("AccessArgs", _plain(vcluster.access))
        if vcluster.storage_class is not None:
            args["storage_class"] = vcluster.storage_class
        if vcluster.size is not None:
            args["size"] = vcluster.size
        if vcluster.oidc is not None:
            args["oidc"] = _oidc(vcluster.oidc)
        if team.affinity is not None:
            args["affinity"] = _affinity(team.affinity)

    def _pull_secrets(self, team: TeamSettings) -> list[str]:
        """Existing pull Secrets of a vCluster, and those that the stacks declare, each once."""
        facts = self.settings.platform_facts
        names = [*team.vcluster.image_pull_secrets]
        if self.settings.registries or (facts and facts.registries):
            names.append(STACK_PULL_SECRET)
        if team.registries:
            names.append(TEAM_PULL_SECRET)
        return list(dict.fromkeys(names))

    def _chart_account(
        self, chart: str | None, registries: Registries | None = None
    ) -> RegistryArgs | None:
        """The account of the longest registry name that contains a chart; None without one.

        `registries` are looked up together with the stack's, and replace those of the same name.
        """
        accounts = {**self.settings.registries, **(registries or {})}
        location = (chart or "").removeprefix("oci://")
        names = [name for name in accounts if in_any(location, [name.removesuffix("/")])]
        if not names:
            return None
        longest = max(names, key=len)
        return _account(accounts[longest])

    def kai(self, name: str) -> "KaiSchedulerArgs":
        """Arguments of a team's KAI, without its cluster.

        It has no `registries`: pods in a vCluster are pulled with Secrets of the host's namespace.
        """
        team = self.settings.teams[name]
        return {
            **self._kai(team.scheduler, team, team.registries),
            "labels": {**team.labels},
            "isolation": team.isolation.level,
        }

    def _kai(
        self, kai: HostKai | Scheduler, pods: HostKai | HostPlace, registries: Registries
    ) -> "KaiSchedulerArgs":
        """Arguments of a KAI from its settings.

        Args:
            pods: has tolerations and affinity of its pods.
            registries: accounts for its chart, besides the stack's.
        """
        version = kai.version or ""
        in_values = mode_in(version, kai.values)
        mode = in_values if in_values in MODES else self.settings.sharing_of(kai)
        args: KaiSchedulerArgs = {
            "version": version,
            "untested": kai.untested,
            "values": kai.values,
            "gpu_sharing": mode != DISABLED,
            "tolerations": _tolerations(pods.tolerations),
            "shards": cast("dict[str, ShardArgs]", _plain(kai.shards)),
            "topologies": {topology: [*labels] for topology, labels in kai.topologies.items()},
        }
        if mode != DISABLED:
            args["gpu_sharing_mode"] = mode
        if kai.chart is not None:
            args["chart"] = kai.chart
        account = self._chart_account(kai.chart, registries)
        if account is not None:
            args["chart_account"] = account
        if kai.fairshare is not None:
            args["fairshare"] = cast("FairshareArgs", _plain(kai.fairshare))
        if pods.affinity is not None:
            args["affinity"] = _affinity(pods.affinity)
        return args

    def queues(self, name: str) -> "QueueTreeArgs":
        """Arguments of a team's queues, without their cluster.

        In mode virtual they are inside its vCluster, in mode host below the queue of the host that
        the platform grants.
        """
        team = self.settings.teams[name]
        if team.scheduler.mode == "virtual":
            inside: QueueTreeArgs = {
                "queues": _queue_args(team.queues),
                "gpus": team.counted,
            }
            if team.pools:
                inside["pools"] = {**team.gpus_by_pool}
            return inside
        facts = self.settings.platform_facts
        grant = facts.granted(name) if facts else None
        shard = grant.shard if grant else None
        on_host: QueueTreeArgs = {
            "queues": _queue_args(team.queues, shard),
            "cluster": self.settings.cluster.name,
        }
        if grant is not None and grant.parent_queue is not None:
            on_host["parent"] = grant.parent_queue
        return on_host


def _plain(value: object) -> object:
    """Settings as plain values: models as mappings without None, secrets in clear text."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        value = dict(value)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in without_none(value).items()}
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    return value


def _tolerations(tolerations: Iterable[Toleration]) -> list[TolerationArgs]:
    return [cast(TolerationArgs, _plain(toleration)) for toleration in tolerations]


def _registries(registries: Registries) -> dict[str, RegistryArgs]:
    return {name: _account(account) for name, account in registries.items()}


def _account(account: RegistryCredentials) -> RegistryArgs:
    return {"username": account.username, "password": account.password.get_secret_value()}


def _affinity(affinity: Affinity) -> dict[str, object]:
    return {str(kind): terms for kind, terms in affinity.items()}


def _oidc(oidc: Oidc) -> "OidcArgs":
    """The provider for the API server; `scopes` are only for kubectl."""
    args: OidcArgs = {
        "issuer": oidc.issuer,
        "client_id": oidc.client_id,
        "username_claim": oidc.username_claim,
        "groups_claim": oidc.groups_claim,
    }
    if oidc.ca is not None:
        args["ca"] = oidc.ca
    return args


def _resources(vcluster: Vcluster) -> dict[str, dict[str, pulumi.Input[str]]]:
    """Requests and limits with the names of a pod's spec; empty ones are left out."""
    args: dict[str, dict[str, pulumi.Input[str]]] = {}
    for bound, amounts in vcluster.resources.items():
        for name, amount in without_none(dict(amounts)).items():
            resource = name.replace("_", "-")
            args.setdefault(bound, {})[resource] = amount
    return args


def _gpu_share(share: "ShareArgs", quota: float, most: int | None) -> "ShareArgs":
    """A GPU share with its quota, and with a limit unless it has one.

    Args:
        quota: the quota that the share gets without this; UNLIMITED is replaced by `most`.
        most: GPUs of the teams that use the queue; None if none does.
    """
    if most is None:
        return {**share, "quota": quota}
    if quota == UNLIMITED:
        quota = most
    return {"limit": max(most, quota), **share, "quota": quota}


def _lines(refused: Mapping[str, str], used_queues: Container[str | None]) -> str:
    refusals = [why for queue, why in sorted(refused.items()) if queue not in used_queues]
    return "\n".join(refusals)


def _parents(tree: Mapping[str, Queue]) -> Sequence[str]:
    """Names of the queues with children."""
    return [placed.name for placed in walk(tree) if placed.queue.children]


def _queue_args(tree: Mapping[str, Queue], shard: str | None = None) -> "dict[str, QueueArgs]":
    """Queues with the keys that the file sets, because QueueTree fills in missing quotas.

    `shard`, if there is one, replaces that of the top-level queues.
    """
    queues: dict[str, QueueArgs] = {}
    for name, queue in tree.items():
        args = cast("QueueArgs", queue.model_dump(exclude_unset=True, exclude_none=True))
        if shard is not None:
            args["shard"] = shard
        queues[name] = args
    return queues
