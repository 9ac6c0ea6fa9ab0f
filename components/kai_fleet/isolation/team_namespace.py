"""A team's place on the host: its namespace, and everything that bounds what is made there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_command as command
from pulumi_kubernetes import core
from pulumi_kubernetes.meta import v1 as meta
from pulumi_kubernetes.networking import v1 as networking
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet import probes
from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.cluster.existing_objects import NONE, ExistingObjects
from kai_fleet.cluster.noted import noted
from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.guards.guard_policies import GuardPolicies
from kai_fleet.guards.host_guard import HostGuard, HostGuardArgs
from kai_fleet.guards.queue_guard import QueueGuard, QueueGuardArgs
from kai_fleet.host.team_stack_access import account_rights
from kai_fleet.isolation import (
    network_policies,
    team_quotas,
    vcluster_rights,
    vcluster_role,
)
from kai_fleet.isolation.namespace_metadata import (
    USED,
    is_of_others,
    labels_of,
    namespace_metadata,
)
from kai_fleet.monitoring.team_monitoring import TeamMonitoring, TeamMonitoringArgs
from kai_fleet.registry_secrets import registry_secret
from kai_fleet.settings.sections.monitoring import Monitoring
from kai_fleet.settings.sections.registries import OF_STACK
from kai_fleet.state.team_parts import TEAM_NAMESPACE


@dataclass
class TeamNamespaceArgs:
    """`team` is what the namespace is for, and what bounds it. `policies` are the host's, for the
    guards to put to work; where None, the guard of the namespace declares its own. `account` is
    what the account of the team's own stack is made of; None where the platform's stack runs the
    team. `monitoring`: where and how Prometheus is told of it. `existing` is what the host has
    already: a namespace of others is used, and stays when the team goes.
    """

    host: ClusterAccess
    team: DeclaredTeam
    policies: GuardPolicies | None = None
    account: Sequence[pulumi.Resource] | None = None
    monitoring: Monitoring | None = None
    existing: ExistingObjects = NONE


class TeamNamespace(pulumi.ComponentResource):
    """The namespace `team-NAME`, its quotas, network policies, guards, and its vCluster's rights.

    Nothing in it belongs to the team: it is declared by the platform's stack, also for a team with
    a stack of its own, and stays where it is when the team moves. A vCluster depends on `ready`.
    It is not removed while a vCluster is in it. Raises pulumi.RunError where a namespace of others
    has labels that do not fit.
    """

    ready: list[pulumi.Resource]

    def __init__(
        self, name: str, args: TeamNamespaceArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        own = noted(opts, args.team.labels, args.team.annotations)
        super().__init__(TEAM_NAMESPACE, name, None, own)
        self._name, self._args = name, args
        self._of_team = f"team-{name}"
        opts = opts or pulumi.ResourceOptions()
        # What is of the whole cluster stands beside the namespace, not after it: while that ends,
        # which takes Kubernetes 5 s, it is removed.
        self._beside = pulumi.ResourceOptions(
            parent=self, depends_on=opts.depends_on, deleted_with=opts.deleted_with
        )
        metadata = namespace_metadata(args.team)
        goes_with: pulumi.Resource | None
        end = {"VACANT_NAMESPACE": self._of_team}
        if is_of_others(args.team, args.existing):
            end["VACANT_NAMESPACE_STAYS"] = "yes"
            # Ours are these labels and annotations alone, and what is inside goes one by one. They
            # are left there: below a component, releases of the plugin take the deletion of a patch
            # for that of the namespace.
            self._namespace: pulumi.Resource = core.v1.NamespacePatch(
                f"{name}-namespace",
                metadata={
                    "name": metadata["name"],
                    "labels": {**labels_of(args.team), **USED},
                    "annotations": metadata["annotations"],
                },
                opts=pulumi.ResourceOptions.merge(
                    self._beside, pulumi.ResourceOptions(retain_on_delete=True)
                ),
            )
            goes_with = opts.deleted_with
        else:
            goes_with = self._namespace = core.v1.Namespace(
                f"{name}-namespace", metadata=metadata, opts=self._beside
            )
        # They go with the namespace, never before it: nobody is to lift a bound by itself.
        self._inside = pulumi.ResourceOptions(
            parent=self, depends_on=[self._namespace], deleted_with=goes_with
        )
        bounds: list[pulumi.Resource] = [self._namespace, *self._quotas()]
        if args.team.isolated:
            bounds += [*self._network(), *self._rights(), *self._guards()]
        if args.team.host_guard is not None:
            of_queues = QueueGuardArgs(args.team.host_guard, self._of_team, args.policies)
            bounds.append(QueueGuard(f"{name}-queue-guard", of_queues, self._beside))
        if args.account is not None:
            after = pulumi.ResourceOptions(depends_on=list(args.account))
            let_in = pulumi.ResourceOptions.merge(self._inside, after)
            bounds.append(account_rights(f"{name}-account-rights", name, let_in))
            bounds += args.account
        # A team's own goes with its vCluster, and moves with it between stacks.
        if registries := args.team.registries.get(OF_STACK):
            made = registry_secret(name, OF_STACK, self._of_team, registries, self._inside)
            bounds.append(made)
        if args.monitoring is not None:
            child = pulumi.ResourceOptions(parent=self, depends_on=[self._namespace])
            told = TeamMonitoringArgs(args.monitoring, args.team)
            TeamMonitoring(name, told, self._inside, child)
        # Nothing while it is there; when it goes, before everything else of it: what bounds the
        # namespace stays until nothing new can be made there.
        vacant = command.local.Command(
            f"{name}-vacant",
            delete=probes.command("vacant"),
            environment={**args.host.environment(), **end},
            opts=pulumi.ResourceOptions(parent=self, depends_on=bounds),
        )
        self.ready = [vacant]  # after all bounds
        self.register_outputs({"namespace": self._of_team})

    def _quotas(self) -> list[pulumi.Resource]:
        name = self._name
        return [
            core.v1.ResourceQuota(
                f"{name}-{called}",
                metadata={"name": called, "namespace": self._of_team},
                spec=spec,
                opts=self._inside,
            )
            for called, spec in team_quotas.quotas(self._args.team).items()
        ]

    def _network(self) -> Sequence[pulumi.Resource]:
        specs: Mapping[str, Any] = network_policies.of_team(self._args.team)
        return [
            networking.NetworkPolicy(
                f"{self._name}-network-{called.removeprefix('kai-fleet-')}",
                metadata={"name": called, "namespace": self._of_team},
                spec=spec,
                opts=self._inside,
            )
            for called, spec in specs.items()
        ]

    def _rights(self) -> Sequence[pulumi.Resource]:
        """On the host it reads; in the namespace it writes what it syncs. The chart gives none."""
        team, called = self._args.team, vcluster_rights.called(self._name)
        child = pulumi.ResourceOptions(parent=self)
        reads = rbac.ClusterRole(
            f"{self._name}-vcluster-role",
            metadata={"name": called},
            rules=vcluster_rights.rules(sees_nodes=team.mode == "virtual"),
            opts=child,
        )
        bound = rbac.ClusterRoleBinding(
            f"{self._name}-vcluster-binding",
            metadata={"name": called},
            role_ref=_role_ref("ClusterRole", called),
            subjects=self._vcluster(),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[reads]),
        )
        there: meta.ObjectMetaArgsDict = {
            "name": vcluster_role.NAME,
            "namespace": self._of_team,
        }
        writes = rbac.Role(
            f"{self._name}-vcluster-inside",
            metadata=there,
            rules=vcluster_role.of_team(team),
            opts=self._inside,
        )
        after = pulumi.ResourceOptions(depends_on=[writes])
        bound_there = rbac.RoleBinding(
            f"{self._name}-vcluster-inside-binding",
            metadata=there,
            role_ref=_role_ref("Role", vcluster_role.NAME),
            subjects=self._vcluster(),
            opts=pulumi.ResourceOptions.merge(self._inside, after),
        )
        return [reads, bound, writes, bound_there]

    def _vcluster(self) -> list[rbac.SubjectArgsDict]:
        account = vcluster_rights.account(self._name)
        return [{"kind": "ServiceAccount", "name": account, "namespace": self._of_team}]

    def _guards(self) -> Sequence[pulumi.Resource]:
        policies, rules = self._args.policies, self._args.team.rules
        ready = policies.ready if policies is not None else []
        if rules is None:
            return ready
        args = HostGuardArgs(self._of_team, rules, policies)
        return [HostGuard(f"{self._name}-host-guard", args, self._beside), *ready]


def _role_ref(kind: str, name: str) -> rbac.RoleRefArgsDict:
    return {"api_group": "rbac.authorization.k8s.io", "kind": kind, "name": name}
