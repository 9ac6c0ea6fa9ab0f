"""How the program and its probes reach a cluster, and which cluster it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import pulumi_command as command
import pulumi_kubernetes as kubernetes
from pulumi.runtime import invoke_output

from kai_fleet.cluster.connection import ClusterConnection, kubernetes_provider
from kai_fleet.fleet.deployed_state import VIRTUAL_CLUSTER, DeployedState, named
from kai_fleet.host.kind_cluster import KindCluster
from kai_fleet.provider import CLUSTER_UID, PACKAGE
from kai_fleet.settings.sections.access import Cluster

_FAILS: Final = 'printf "%s\\n" "$PROBLEM" >&2; exit 1'


@dataclass
class ClusterAccess:
    """A cluster by its stable name, and a context of the caller's kubeconfig or the content of one.

    The content is a secret wherever it goes (P6). The name is the provider's cluster identifier:
    rotated credentials update the provider and replace nothing (P3). Where there is an `identifier`
    that one is: for clusters that are made, and perhaps made anew under the same name. `found_by`
    are the variables by which a probe finds the content itself: no state has it once more then.
    """

    name: str
    context: str | None = None
    kubeconfig: pulumi.Input[str] | None = None
    identifier: pulumi.Input[str] | None = None
    found_by: Mapping[str, pulumi.Input[str]] | None = None

    def provider(
        self, name: str, opts: pulumi.ResourceOptions, seconds: int | None = None
    ) -> kubernetes.Provider:
        """The provider for what is declared on this cluster.

        `seconds` are for each of its answers, without end where None.
        """
        return kubernetes.Provider(
            name,
            cluster_identifier=self.name if self.identifier is None else self.identifier,
            context=self.context,
            kubeconfig=self.secret(),
            # Changes by hand are put right; without this the API server refuses to, because
            # whoever changed a field owns it now.
            enable_patch_force=True,
            kube_client_settings=None if seconds is None else {"timeout": seconds},
            # Else a new password would replace the Secret of a registry, and pulls would fail.
            enable_secret_mutable=True,
            opts=opts,
        )

    def environment(self) -> dict[str, pulumi.Input[str]]:
        """The variables from which a probe builds its client; never part of a command line."""
        if self.found_by is not None:
            return dict(self.found_by)
        secret = self.secret()
        if secret is not None:
            return {"PROBE_KUBECONFIG": secret}
        return {"PROBE_CONTEXT": self.context or ""}

    def reached(self) -> dict[str, pulumi.Input[str]]:
        """The properties from which the project's own provider builds its client."""
        properties = {"context": self.context, "kubeconfig": self.secret()}
        return {key: value for key, value in properties.items() if value is not None}

    def secret(self) -> pulumi.Output[str] | None:
        """The kubeconfig's content as a secret; None where a context is named."""
        return None if self.kubeconfig is None else pulumi.Output.secret(self.kubeconfig)


def _fail(environment: Mapping[str, str]) -> None:
    if problem := environment.get("PROBLEM"):
        raise pulumi.RunError(problem)


def own_provider() -> pulumi.ProviderResource:
    """The stack's provider of this project, which serves queue trees and reads Secrets.

    Give it to the platform and to the teams. The engine's own for the package would have the whole
    of `kai-fleet:…` in the stack file for its configuration: in the state once more, and another in
    each stack, so that no team could move.
    """
    return pulumi.ProviderResource(PACKAGE, PACKAGE, {})


def cluster_identity(
    name: str,
    access: ClusterAccess,
    deployed: DeployedState,
    parent: pulumi.Resource,
    problem: pulumi.Input[str] = "",
) -> pulumi.Output[str]:
    """The cluster's identifier, from a step that keeps it; `name` is that of its provider.

    What is inside a vCluster belongs to it, and to no other at the same address. The identifier is
    the UID of its namespace `kube-system`. Another UID replaces this step, the provider whose
    identifier it gives, and everything declared with that provider, old ones first. Give these
    `deleted_with` the provider: then the API of a cluster that is gone is not called. A cluster
    that does not answer now is taken for the one that it was.

    `problem` says why there is no way in, "" where there is one. Then this step fails, and what is
    inside is left as it is; the program goes on, with every other cluster.
    """
    step = f"{name}-identity"
    known = deployed.triggers.get(named(VIRTUAL_CLUSTER, step)) or [""]
    read: pulumi.Output[Any] = invoke_output(
        CLUSTER_UID, dict(access.reached()), pulumi.InvokeOptions(parent=parent)
    )

    def environment(answer: dict[str, Any], problem: str) -> dict[str, str]:
        uid = str(known[0]) if problem else str(answer.get("uid") or known[0])
        if not (problem or uid):
            problem = f"the API of vCluster {name} does not answer: {answer['problem']}"
        return {"CLUSTER": uid, **({"PROBLEM": problem} if problem else {})}

    found = pulumi.Output.all(read, problem).apply(lambda it: environment(*it))
    now = pulumi.Output.unsecret(found)
    if pulumi.runtime.is_dry_run():
        now.apply(_fail)  # no step fails in a preview; no resource waits for this, so it comes last
    stdout: pulumi.Output[str] = command.local.Command(
        step,
        create=now.apply(lambda it: _FAILS if "PROBLEM" in it else 'printf %s "$CLUSTER"'),
        environment=now,
        triggers=[now["CLUSTER"]],
        opts=pulumi.ResourceOptions(parent=parent, delete_before_replace=True),
    ).stdout
    return stdout


@dataclass(frozen=True)
class HostAccess:
    """`args` are `kubeconfig` or `context` of components there, `transformations` those of all that
    is declared there.
    """

    connection: ClusterConnection
    provider: kubernetes.Provider
    args: Mapping[str, Any]
    transformations: Sequence[pulumi.ResourceTransformation] = ()


def host_access(cluster: Cluster) -> HostAccess:
    """The way to the host cluster; a kind cluster of the stack is declared for it."""
    transformations = list[pulumi.ResourceTransformation]()
    content: pulumi.Input[str] | None = None
    if cluster.kubeconfig is not None:
        content = cluster.kubeconfig.get_secret_value()
    if cluster.kind is not None:
        kind = KindCluster(cluster.name, cluster.kind)
        content, transformations = kind.kubeconfig, [kind.going_with_it]
    if content is None:
        connection = ClusterConnection(context=cluster.context)
        args: dict[str, Any] = {"context": cluster.context}
    else:
        connection = ClusterConnection(kubeconfig=pulumi.Output.secret(content))
        args = {"kubeconfig": connection.kubeconfig}
    # Its name is its identity: rotated credentials replace nothing (P3).
    provider = kubernetes_provider(
        "host", connection, pulumi.ResourceOptions(), cluster_identifier=cluster.name
    )
    return HostAccess(connection, provider, args, transformations)
