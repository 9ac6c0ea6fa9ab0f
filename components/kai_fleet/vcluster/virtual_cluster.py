"""One vCluster: its namespace, its chart, and a kubeconfig that works from where Pulumi runs."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pulumi
import pulumi_command as command
import pulumi_kubernetes as kubernetes
from pulumi.runtime import invoke_output
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet import probes
from kai_fleet.cluster.access import ClusterAccess, cluster_identity
from kai_fleet.cluster.registry_secrets import registry_secret
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, explain, of_secret, rebuild
from kai_fleet.fleet.deployed_state import VIRTUAL_CLUSTER, DeployedState, named
from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.options import after, chart_args, child_of
from kai_fleet.provider import SECRET
from kai_fleet.releases import DEFAULT_VCLUSTER, VCLUSTER_REPOSITORY, vcluster
from kai_fleet.settings.sections.access import OF_TEAM, Access
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.values import value_at
from kai_fleet.vcluster.oidc import FILE, authority, group_roles
from kai_fleet.vcluster.values import vcluster_values

# Of a tenant's API server, which may never give one. What it has to ask first may take 30.
_ANSWER_SECONDS: Final = 40


@dataclass
class VirtualClusterArgs:
    """`host` is the cluster it runs on, and `team` says what it is like. The team's name must be
    unique there (V9): vCluster takes pods of another vCluster of the same name for its own.
    `ready_timeout` is in seconds. `namespace` is there already; team-NAME unless given.
    """

    host: ClusterAccess
    team: DeclaredTeam
    namespace: pulumi.Input[str] | None = None
    ready_timeout: int = 600
    deployed: DeployedState = field(default_factory=DeployedState)


class VirtualCluster(pulumi.ComponentResource):
    """A vCluster named after the component, in the namespace that a TeamNamespace made.

    The chart leaves its volume and, in host mode, every pod behind (V4, V10, V17): what is left of
    it in the namespace goes after the release. Declare what lives inside with the options of
    `within`. Depend on the TeamNamespace's `ready`. Raises UnknownVersionError.
    """

    namespace: pulumi.Input[str]
    version: str
    release: kubernetes.helm.v3.Release
    server: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    inside: ClusterAccess
    provider: kubernetes.Provider

    def __init__(
        self, name: str, args: VirtualClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(VIRTUAL_CLUSTER, name, None, opts)
        team, access = args.team, args.team.access or Access()
        version = vcluster(team.version or DEFAULT_VCLUSTER, untested=team.untested)
        self.version = version.version
        self.namespace = f"team-{name}" if args.namespace is None else args.namespace
        # Without what the component waits for.
        later = pulumi.ResourceOptions(deleted_with=opts.deleted_with if opts else None)
        first, child = child_of(self, opts), child_of(self, later)
        chart = chart_args(
            "vcluster", version.chart_version, override=team.chart, repository=VCLUSTER_REPOSITORY
        )
        values = vcluster_values(version, team, self.namespace)
        # Helm believes its own record, which is where a tenant may write: it is looked at before
        # the release is changed (here: the release depends on this) or removed (`ready`, below).
        isolated = (team.isolation or Isolation()).on
        look = probes.command("record") if isolated else None
        release = pulumi.Output.concat(self.namespace, "/", name)
        record = {"RECORD_RELEASE": release} if isolated else {}
        # When the team goes, between the release and the namespace: what it leaves there.
        pods = command.local.Command(
            f"{name}-pods",
            update=look,
            delete=probes.command("pods"),
            environment={
                **args.host.environment(),
                "PODS_NAMESPACE": self.namespace,
                "PODS_VCLUSTER": name,
                **record,
                **({"RECORD_BEFORE": _digest(chart, values)} if isolated else {}),
            },
            opts=first,
        )
        before: list[pulumi.Resource] = [pods]
        if file := authority(team):
            trusted = kubernetes.core.v1.ConfigMap(
                f"{name}-oidc",
                metadata={"name": file[0], "namespace": self.namespace},
                data={FILE: file[1]},
                opts=first,
            )
            before.append(trusted)
        if own := team.registries.get(OF_TEAM):
            before.append(registry_secret(name, OF_TEAM, self.namespace, own, first))
        self.release = kubernetes.helm.v3.Release(
            f"{name}-release",
            **chart,
            name=name,
            namespace=self.namespace,
            values=values,
            # No chart of the table has one. The second is what Pulumi's plugin reads when it
            # upgrades, whatever its name says; when it removes, it reads neither.
            disable_webhooks=True,
            disable_crd_hooks=True,
            timeout=args.ready_timeout,
            skip_await=True,  # the step below waits, and says for what
            opts=after(child, *before),
        )
        # Helm returns long before the API answers and the Secret is there (V11).
        ready = command.local.Command(
            f"{name}-ready",
            create=probes.command("vcluster"),
            delete=look,
            environment={
                **args.host.environment(),
                **record,
                "VCLUSTER_NAME": name,
                "VCLUSTER_NAMESPACE": self.namespace,
                "VCLUSTER_VERSION": version.version,
                "VCLUSTER_ACCESS": access.type,
                "VCLUSTER_HOST": access.endpoint,
                "VCLUSTER_NODE_POOL": ",".join(f"{k}={v}" for k, v in team.node_pool.items()),
                "VCLUSTER_TIMEOUT": str(args.ready_timeout),
            },
            triggers=[self.release.id, *args.deployed.again(VIRTUAL_CLUSTER, name)],
            logging=command.local.Logging.STDERR,  # stdout is the server's address
            opts=child,
        )
        address = ready.stdout
        last = args.deployed.printed.get(named(VIRTUAL_CLUSTER, f"{name}-ready"))
        if last and pulumi.runtime.is_dry_run():
            # A wait that runs again prints in the update only. By an unknown address all that is
            # inside would look replaced; where the release is another one, it is.
            address = self.release.id.apply(lambda _: last)
        # Where the host's kubeconfig is a secret, so is all that comes of it; an address is none.
        self.server = pulumi.Output.unsecret(address)
        way_in = self._way_in(name, args)
        self.kubeconfig = pulumi.Output.secret(way_in["kubeconfig"])
        found_by = {
            **args.host.environment(),
            "PROBE_SECRET": pulumi.Output.concat(self.namespace, "/vc-", name),
            "PROBE_SERVER": self.server,
        }
        inside = ClusterAccess(f"{args.host.name}/{name}", None, self.kubeconfig, found_by=found_by)
        identity = cluster_identity(name, inside, args.deployed, self, way_in["problem"])
        self.inside = replace(inside, identifier=identity)
        self.provider = self.inside.provider(name, child_of(self, later), _ANSWER_SECONDS)
        for body in group_roles(team):
            self._let_in(name, body)
        self.register_outputs({"namespace": self.namespace, "server": self.server})

    def within(self, parent: pulumi.Resource) -> pulumi.ResourceOptions:
        """The options of what lives inside, declared below `parent`: it goes with the vCluster,
        without asking its API (P1), and is made anew in another vCluster of this name (S1).
        """
        return pulumi.ResourceOptions(
            parent=parent, provider=self.provider, deleted_with=self.provider
        )

    def _way_in(self, name: str, args: VirtualClusterArgs) -> pulumi.Output[dict[str, str]]:
        """Its `kubeconfig`, of the Secret that it wrote: built anew, whoever wrote that.

        It is read anew in each run, once the server is known, and kept out of the state. By a
        function of the provider: for a resource that is read, the engine writes its whole state
        twice in each run, though nothing changed; with fifteen teams that was half of its work.
        Where the Secret is not there, or may not be used, the `problem` says so, and the kubeconfig
        is that of the last update.
        """
        workload, secret = args.team.store.workload, f"vc-{name}"
        asked = {"namespace": self.namespace, "name": secret, "after": self.server}
        read: pulumi.Output[Any] = invoke_output(
            SECRET, {**asked, **args.host.reached()}, pulumi.InvokeOptions(parent=self)
        )

        def way_in(answer: dict[str, Any], namespace: str, server: str) -> dict[str, str]:
            problem = answer.get("problem")
            if problem:
                problem = (
                    f"Secret {secret} of namespace {namespace} {problem}. Look with: kubectl -n"
                    f" {namespace} get secrets,statefulsets; if somebody removed something by hand:"
                    f" .venv/bin/fleet up --refresh --stack {pulumi.get_stack()}; if the Secret"
                    f" alone: kubectl -n {namespace} rollout restart {workload} {name}"
                )
            else:
                called = value_at(args.team.values, "exportKubeConfig.context")
                try:
                    own = of_secret(answer["data"], server, called or f"{namespace}-{name}")
                    return {"kubeconfig": own, "problem": ""}
                except TenantKubeconfigError as error:
                    problem = explain(name, namespace, error, workload)
            try:
                last = rebuild(str(args.deployed.output("kubeconfigs").get(name) or ""))[0]
            except TenantKubeconfigError:
                last = f"# {problem}"  # which no program takes for a cluster's
            return {"kubeconfig": last, "problem": problem}

        return pulumi.Output.all(read, self.namespace, self.server).apply(lambda it: way_in(*it))

    def _let_in(self, name: str, body: Mapping[str, Any]) -> None:
        metadata, inside = body["metadata"], self.within(self)
        name = f"{name}-{metadata['name'].removeprefix('kai-fleet-')}"
        if body["kind"] == "ClusterRole":
            rbac.ClusterRole(name, metadata=metadata, rules=body["rules"], opts=inside)
            return
        binding = rbac.RoleBinding if "namespace" in metadata else rbac.ClusterRoleBinding
        bound = {"role_ref": body["roleRef"], "subjects": body["subjects"]}
        binding(name, metadata=metadata, **bound, opts=inside)


def _digest(chart: Mapping[str, Any], values: Mapping[str, Any]) -> pulumi.Output[str]:
    """What differs whenever the release does; secret where a value is."""
    of = {"chart": chart["chart"], "version": chart["version"], "values": values}
    text = pulumi.Output.json_dumps(of, sort_keys=True)
    return text.apply(lambda it: hashlib.sha256(it.encode()).hexdigest())
