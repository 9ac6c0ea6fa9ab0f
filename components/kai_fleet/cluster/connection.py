"""Connections of components to their clusters, for providers, probes and provider functions."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import pulumi
import pulumi_kubernetes as kubernetes

# Timeout of one request to a tenant's API server, which may never answer: Pulumi sends about
# fifteen in sequence before it gives up. KAI's webhooks take at most 10 seconds.
ANSWER_SECONDS = 15
# Fields of a kubeconfig, in YAML or JSON.
_AUTHORITY = re.compile(r'certificate-authority-data"?:\s*"?([A-Za-z0-9+/=]+)')
_SERVER = re.compile(r'server"?:\s*"?([^\s",]+)')


@dataclass(frozen=True)
class ClusterConnection:
    """A kubeconfig's content, always a secret; or a context of the user's default kubeconfig.

    Without either it is the current context of that kubeconfig.
    """

    kubeconfig: pulumi.Output[str] | None = None
    context: str | None = None

    def environment(self) -> dict[str, pulumi.Input[str]]:
        """The variable by which a probe finds the cluster: PROBE_KUBECONFIG or PROBE_CONTEXT."""
        return {f"PROBE_{key.upper()}": value for key, value in self.properties().items()}

    def properties(self) -> dict[str, pulumi.Input[str]]:
        """`kubeconfig` or `context`, as components and the package's provider take them.

        Without either `context` is "", which means the current one.
        """
        if self.kubeconfig is not None:
            return {"kubeconfig": self.kubeconfig}
        return {"context": self.context or ""}

    def identity(self) -> pulumi.Input[str]:
        """What identifies the cluster: a hash of the kubeconfig's CA, else the context.

        "" stands for the current context. Without a CA it is a hash of the server's URL, and
        without that of a constant.

        The CA stays when credentials or addresses change. A recreated vCluster has another one. The
        hash is no secret.
        """
        if self.kubeconfig is None:
            return self.context or ""
        return pulumi.Output.unsecret(self.kubeconfig.apply(_authority))


def _authority(kubeconfig: str) -> str:
    """A hash, of 16 characters, of the CA in a kubeconfig, else of the server's URL.

    A text without either, such as a comment, has the hash of a constant.
    """
    found = _AUTHORITY.search(kubeconfig) or _SERVER.search(kubeconfig)
    identity = found[1] if found else "None"
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


def connection_of(component: str, args: Mapping[str, object]) -> ClusterConnection:
    """The connection of a component to its cluster.

    The first that is set: the argument `kubeconfig`, the argument `context`, and the configuration
    `kubernetes:context`. A context "" counts as absent, a kubeconfig "" does not. A Kubernetes
    provider would not do: it does not expose its kubeconfig.

    Args:
        component: Its type and name, for the message: `KaiScheduler ml`.
        args: Its arguments.

    Raises:
        pulumi.RunError: None of the three is set.
    """
    kubeconfig = args.get("kubeconfig")
    if kubeconfig is not None:
        content = pulumi.Output.secret(cast("pulumi.Input[str]", kubeconfig))
        return ClusterConnection(kubeconfig=content)
    context = args.get("context") or pulumi.Config("kubernetes").get("context")
    if context:
        return ClusterConnection(context=str(context))
    raise pulumi.RunError(
        f"{component}: has no way to its cluster; write kubeconfig, or context: a context of your"
        " kubeconfig"
    )


def provider_from_args(
    component: pulumi.ComponentResource, name: str, args: Mapping[str, object]
) -> pulumi.ProviderResource | None:
    """The option `provider` for a component's children.

    It is a new Kubernetes provider called `name` if `args` has `kubeconfig` or `context`, and the
    component's options have no provider; otherwise None. With the argument `probe_environment` it
    is one for a vCluster, as `inside` says. The new provider has no `cluster_identifier`, so
    another cluster in the kubeconfig replaces it, and new credentials only update it. Raises
    pulumi.RunError as `connection_of` does.
    """
    provider = component.get_provider("kubernetes:core/v1:Namespace")
    if provider is not None or not {"kubeconfig", "context"} & args.keys():
        return None
    return kubernetes_provider(
        name,
        connection_of(name, args),
        pulumi.ResourceOptions(parent=component),
        inside=bool(args.get("probe_environment")),
    )


def kubernetes_provider(
    name: str,
    connection: ClusterConnection,
    opts: pulumi.ResourceOptions,
    cluster_identifier: pulumi.Input[str] | None = None,
    *,
    inside: bool = False,
) -> kubernetes.Provider:
    """A Kubernetes provider for a cluster.

    `inside` is true for a vCluster: each request has a timeout of 15 seconds, and declared objects
    that exist already are updated. While `cluster_identifier` stays, another kubeconfig only
    updates the provider; without one another cluster replaces it.
    """
    return kubernetes.Provider(
        name,
        cluster_identifier=cluster_identifier,
        context=connection.context,
        kubeconfig=connection.kubeconfig,
        # Reverts changes made by hand: the person who changed a field owns it, and server-side
        # apply without force reports a conflict.
        enable_patch_force=True,
        kube_client_settings={"timeout": ANSWER_SECONDS} if inside else None,
        # A vCluster on the volume of an earlier one still has the objects declared there. On the
        # host, objects that exist belong to others.
        upsert_existing_objects=inside or None,
        # Otherwise a new password replaces a pull Secret, and pulls fail in the meantime.
        enable_secret_mutable=True,
        opts=opts,
    )
