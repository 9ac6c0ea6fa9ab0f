"""A team's place on the host: its namespace, and everything that bounds what is made there.

By the labels and annotations of the namespace the API server and the guards judge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import pulumi_command as command
from pulumi_kubernetes import core
from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict
from pulumi_kubernetes.networking import v1 as networking

from kai_fleet import probes
from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.cluster.existing_objects import NONE, ExistingObjects
from kai_fleet.cluster.registry_secrets import registry_secret
from kai_fleet.fleet.deployed_state import NAMESPACE, NAMESPACE_PATCH, TEAM_NAMESPACE
from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.guards import components as guards
from kai_fleet.guards.policies import (
    ENFORCED,
    ISOLATION_LABEL,
    TEAM_LABEL,
    USED_LABEL,
    as_annotations,
)
from kai_fleet.host.monitoring_args import team_args
from kai_fleet.host.team_stack_access import account_rights, declare_role, subject
from kai_fleet.isolation import network_policies, team_quotas, vcluster_rights
from kai_fleet.monitoring import TeamMonitoring
from kai_fleet.options import after, child_of, noted
from kai_fleet.settings.sections.access import OF_STACK
from kai_fleet.settings.sections.monitoring import Monitoring

USED: Final = {USED_LABEL: "used"}


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
    policies: guards.GuardPolicies | None = None
    account: Sequence[pulumi.Resource] | None = None
    monitoring: Monitoring | None = None
    existing: ExistingObjects = NONE


class TeamNamespace(pulumi.ComponentResource):
    """The namespace `team-NAME`, its quotas, network policies, guards, and its vCluster's rights.

    Nothing in it belongs to the team: it is declared by the platform's stack, also for a team with
    a stack of its own. A vCluster depends on `ready`.
    It is not removed while a vCluster is in it. Raises pulumi.RunError where a namespace of others
    has labels that do not fit.
    """

    ready: list[pulumi.Resource]

    def __init__(
        self, name: str, args: TeamNamespaceArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        team = args.team
        own = noted(opts, team.labels, team.annotations)
        super().__init__(TEAM_NAMESPACE, name, None, own)
        self._space = f"team-{name}"
        opts = opts or pulumi.ResourceOptions()
        # What is of the whole cluster stands beside the namespace, not after it: while that ends,
        # which takes Kubernetes 5 s, it is removed.
        beside = child_of(self, opts)
        metadata = namespace_metadata(team)
        goes_with: pulumi.Resource | None
        end = {"VACANT_NAMESPACE": self._space}
        if is_of_others(team, args.existing):
            end["VACANT_NAMESPACE_STAYS"] = "yes"
            # Ours are these labels and annotations alone, and what is inside goes one by one. They
            # are left there: below a component, releases of the plugin take the deletion of a patch
            # for that of the namespace.
            namespace: pulumi.Resource = core.v1.NamespacePatch(
                f"{name}-namespace",
                metadata={
                    "name": metadata["name"],
                    "labels": {**labels_of(team), **USED},
                    "annotations": metadata["annotations"],
                },
                opts=child_of(self, opts, retain_on_delete=True),
            )
            goes_with = opts.deleted_with
        else:
            goes_with = namespace = core.v1.Namespace(
                f"{name}-namespace", metadata=metadata, opts=beside
            )
        # They go with the namespace, never before it: nobody is to lift a bound by itself.
        self._inside = pulumi.ResourceOptions(
            parent=self, depends_on=[namespace], deleted_with=goes_with
        )
        bounds: list[pulumi.Resource] = [namespace]
        for called, quota in team_quotas.quotas(team).items():
            bounds.append(self._bound(core.v1.ResourceQuota, f"{name}-{called}", called, quota))
        if team.isolated:
            for called, policy in network_policies.of_team(team).items():
                part = f"{name}-network-{called.removeprefix('kai-fleet-')}"
                bounds.append(self._bound(networking.NetworkPolicy, part, called, policy))
            bounds += self._rights(name, team)
            if team.rules is not None:
                guard = guards.HostGuardArgs(self._space, team.rules, args.policies)
                bounds.append(guards.HostGuard(f"{name}-host-guard", guard, beside))
            bounds += args.policies.ready if args.policies is not None else []
        if team.host_guard is not None:
            of_queues = guards.QueueGuardArgs(team.host_guard, self._space, args.policies)
            bounds.append(guards.QueueGuard(f"{name}-queue-guard", of_queues, beside))
        if args.account is not None:
            let_in = after(self._inside, *args.account)
            bounds.append(account_rights(f"{name}-account-rights", name, let_in))
            bounds += args.account
        # A team's own goes with its vCluster, and moves with it between stacks.
        if registries := team.registries.get(OF_STACK):
            made = registry_secret(name, OF_STACK, self._space, registries, self._inside)
            bounds.append(made)
        if args.monitoring is not None:
            child = pulumi.ResourceOptions(parent=self, depends_on=[namespace])
            of_team = team_args(team, args.monitoring)
            TeamMonitoring(name, self._space, of_team, self._inside, child)
        # Nothing while it is there; when it goes, before everything else of it: what bounds the
        # namespace stays until nothing new can be made there.
        vacant = command.local.Command(
            f"{name}-vacant",
            delete=probes.command("vacant"),
            environment={**args.host.environment(), **end},
            opts=pulumi.ResourceOptions(parent=self, depends_on=bounds),
        )
        self.ready = [vacant]  # after all bounds
        self.register_outputs({"namespace": self._space})

    def _bound(self, kind: Any, name: str, called: str, spec: Any) -> pulumi.Resource:
        metadata = {"name": called, "namespace": self._space}
        made: pulumi.Resource = kind(name, metadata=metadata, spec=spec, opts=self._inside)
        return made

    def _rights(self, name: str, team: DeclaredTeam) -> Sequence[pulumi.Resource]:
        """On the host it reads; in the namespace it writes what it syncs. The chart gives none."""
        account, part = subject(vcluster_rights.account(name), self._space), f"{name}-vcluster"
        reads = declare_role(
            (f"{part}-role", f"{part}-binding"),
            {"name": vcluster_rights.called(name)},
            vcluster_rights.on_host(sees_nodes=team.mode == "virtual"),
            account,
            pulumi.ResourceOptions(parent=self),
        )
        writes = declare_role(
            (f"{part}-inside", f"{part}-inside-binding"),
            {"name": vcluster_rights.NAME, "namespace": self._space},
            vcluster_rights.of_team(team),
            account,
            self._inside,
        )
        return [*reads, *writes]


def namespace_metadata(team: DeclaredTeam) -> ObjectMetaArgsDict:
    """Name, labels, and as annotations what the host's policies let the team's pods do.

    What a stack file adds to them changes neither: these come last.
    """
    bounds = team.host_guard.parameters() if team.host_guard is not None else {}
    if team.isolated:
        bounds |= team.rules.parameters() if team.rules is not None else {}
    return {
        "name": f"team-{team.name}",
        "labels": labels_of(team),
        "annotations": {**team.annotations, **as_annotations(bounds)},
    }


def is_of_others(team: DeclaredTeam, existing: ExistingObjects) -> bool:
    """Whether the team's namespace was there before the stack, which then uses it.

    One with the team's label alone was made by an update of the stack that was cut off, or by
    another stack. Raises pulumi.RunError where it has other values of labels than the team gets.
    """
    resource = f"{team.name}-namespace"
    if existing.holds(NAMESPACE_PATCH, resource):
        return True
    name = f"team-{team.name}"
    found = existing.of_others(NAMESPACE, name, resource)
    if found is None:
        return False
    if TEAM_LABEL in found["labels"]:
        return all(found["labels"].get(key) == it for key, it in USED.items())
    wanted = labels_of(team)
    differ = {key: it for key, it in found["labels"].items() if wanted.get(key, it) != it}
    if differ:
        has = ", ".join(f"{key}={value}" for key, value in sorted(differ.items()))
        wants = ", ".join(f"{key}={wanted[key]}" for key in sorted(differ))
        raise pulumi.RunError(
            f"namespace {name} was on the cluster before this stack and is used for team"
            f" {team.name}, but it has {has}, and the team's labels are {wants}. Nothing was"
            " made. Agree with its owner and set the label: kubectl label namespace"
            f" {name} --overwrite {wants.replace(', ', ' ')}; or give the team another name"
        )
    return True


def labels_of(team: DeclaredTeam) -> dict[str, str]:
    """The labels of the team's namespace: the file's, and over them those that decide."""
    labels = {**team.labels, TEAM_LABEL: team.name}
    if team.isolation is not None and team.isolation.on:
        # `restricted` is held by the guard: the label knows no exceptions, and needs some.
        labels[ENFORCED] = "baseline"
        labels[f"{ENFORCED}-version"] = "latest"
        labels[ISOLATION_LABEL] = team.isolation.level
    return labels
