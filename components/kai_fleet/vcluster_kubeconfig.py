"""Who enters a vCluster: the administrator's kubeconfig, and groups of an identity provider."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi
from pulumi.output import UNKNOWN
from pulumi.runtime import invoke_async, is_dry_run
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet import deployed
from kai_fleet.cluster.connection import ClusterConnection
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, explain, of_secret
from kai_fleet.guards.policies import content
from kai_fleet.guards.rights import role_ref
from kai_fleet.names import SECRET, VIRTUAL_CLUSTER
from kai_fleet.vcluster_values import PREFIX, context_name, store_of

ROLES: Final = ("view", "edit", "admin")
_RBAC: Final = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class KubeconfigSecret:
    """The Secret `vc-NAME` of a vCluster in a host namespace; `values` are those of its chart."""

    name: str
    component: pulumi.Resource
    host: ClusterConnection
    namespace: pulumi.Input[str]
    values: Mapping[str, Any]

    def kubeconfig(self, server: pulumi.Output[str]) -> pulumi.Output[str]:
        """Build a kubeconfig for a server; of the Secret only certificates and key are used."""

        def built(data: Mapping[str, Any], problem: str, server: str, context: str) -> Any:
            if not problem:
                return of_secret(data, server, context)
            if is_dry_run():
                return UNKNOWN  # the update waits for it
            # Somebody changed the Secret since the wait. An error here would end the program and
            # every other team's update; with this text only the resources inside fail.
            pulumi.log.warn(problem, self.component)
            return f"# {problem}"

        context = context_name(self.name, self.namespace)
        known = pulumi.Output.all(self._read(server), server, context)
        return pulumi.Output.secret(known.apply(lambda values: built(*values[0], *values[1:])))

    def wait_trigger(self, release: pulumi.Output[str]) -> pulumi.Input[str]:
        """A number that grows where the wait has to run again for an unchanged release: it was
        uninstalled by hand, or its Secret cannot be used any more.

        If the wait then fails, so do the resources inside; every other vCluster is updated.
        """
        number = deployed.read().again(VIRTUAL_CLUSTER, self.name)
        if number != deployed.read().waited(VIRTUAL_CLUSTER, self.name):
            return str(number)  # it runs in any case

        def counted(problem: str) -> str:
            if problem and is_dry_run():
                pulumi.log.warn(f"{problem}. The update waits for it", self.component)
            return str(number + bool(problem))

        # The number shows nothing of the Secret's content.
        return pulumi.Output.unsecret(self._read(release).apply(lambda read: counted(read[1])))

    def _read(self, later: pulumi.Output[str]) -> pulumi.Output[Any]:
        """The Secret's data, and why it has no usable kubeconfig, once `later` is known. The state
        does not have it.

        A provider function: for a read resource (`.get`) the engine writes its whole state twice in
        each run, even if nothing changed; with fifteen teams that was half of its work.
        """
        query = {"namespace": self.namespace, "name": f"vc-{self.name}", **self.host.properties()}
        options = pulumi.InvokeOptions(parent=self.component)

        # With plain values: in a component that a plugin constructs, the engine takes dependencies
        # of an Output for not yet created, and answers with an unknown value.
        async def read(known: dict[str, Any]) -> tuple[Any, str]:
            answer = await invoke_async(SECRET, known, options)
            return answer.get("data"), self._problem(answer, known["namespace"])

        return pulumi.Output.all(query, later).apply(lambda values: read(values[0]))

    def _problem(self, answer: Mapping[str, Any], namespace: str) -> str:
        """Why the Secret has no usable kubeconfig; "" where it has one."""
        name, workload = self.name, store_of(self.values).workload
        if problem := answer.get("problem"):
            return (
                f"Secret vc-{name} of namespace {namespace} {problem}. Look with: kubectl -n"
                f" {namespace} get secrets,statefulsets; if somebody removed something by hand:"
                f" .venv/bin/fleet up --refresh --stack {pulumi.get_stack()}; if the Secret"
                f" alone: kubectl -n {namespace} rollout restart {workload} {name}"
            )
        try:
            of_secret(answer["data"], "https://localhost", name)
        except TenantKubeconfigError as error:
            return explain(name, namespace, error, workload)
        return ""


def declare_groups(name: str, groups: Mapping[str, str], inside: pulumi.ResourceOptions) -> None:
    """Declare what groups may do inside a vCluster, if there are any; `name` begins the resources'.

    All groups may read every namespace by ClusterRole `view`, which shows no Secrets. `edit` and
    `admin` are bound in namespace `default` only: `edit` in kube-system would allow pods with its
    ServiceAccounts, and so everything.
    """
    if groups:
        # Kubernetes aggregates it into view, and so into edit and admin.
        labels = {f"{_RBAC}/aggregate-to-view": "true"}
        metadata: Any = {"name": "kai-fleet-readers", "labels": labels}
        rules = content("rights")["groups_inside"]
        rbac.ClusterRole(f"{name}-readers", metadata=metadata, rules=rules, opts=inside)
    for role in ROLES:
        of_all, metadata = role == "view", {"name": f"kai-fleet-{role}"}
        kind: Any = rbac.ClusterRoleBinding if of_all else rbac.RoleBinding
        members = [
            {"kind": "Group", "name": f"{PREFIX}{group}", "api_group": _RBAC}
            for group in sorted(groups)
            if of_all or groups[group] == role
        ]
        if members:
            kind(
                f"{name}-{role}",
                metadata=metadata if of_all else {**metadata, "namespace": "default"},
                role_ref=role_ref("ClusterRole", role),
                subjects=members,
                opts=inside,
            )
