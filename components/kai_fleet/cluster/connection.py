"""Connections of components to their clusters, for providers, probes and provider functions."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import pulumi_kubernetes as kubernetes

# Timeout of one request to a tenant's API server, which may never answer: the engine sends about
# fifteen in sequence before it gives up. KAI's webhooks take at most 10.
ANSWER_SECONDS: Final = 15
# Of a kubeconfig, in YAML or JSON.
_AUTHORITY: Final = re.compile(r'certificate-authority-data"?:\s*"?([A-Za-z0-9+/=]+)')
_SERVER: Final = re.compile(r'server"?:\s*"?([^\s",]+)')


@dataclass(frozen=True)
class ClusterConnection:
    """The content of a kubeconfig, always a secret, or a context of the user's default kubeconfig
    files.
    """

    kubeconfig: pulumi.Output[str] | None = None
    context: str | None = None

    def environment(self) -> dict[str, pulumi.Input[str]]:
        """Environment variables for a probe's client; never arguments of its command line."""
        return {f"PROBE_{key.upper()}": value for key, value in self.properties().items()}

    def properties(self) -> dict[str, pulumi.Input[str]]:
        """`kubeconfig` or `context`, as arguments of components and of the package's provider."""
        if self.kubeconfig is not None:
            return {"kubeconfig": self.kubeconfig}
        return {"context": self.context or ""}

    def identity(self) -> pulumi.Input[str]:
        """Identity of the cluster: the context, or a hash of the CA in the kubeconfig. The CA stays
        when credentials or addresses change, and differs in a recreated vCluster.
        """
        if self.kubeconfig is None:
            return self.context or ""
        return pulumi.Output.unsecret(self.kubeconfig.apply(_authority))


def _authority(kubeconfig: str) -> str:
    found = _AUTHORITY.search(kubeconfig) or _SERVER.search(kubeconfig)
    return hashlib.sha256(str(found and found[1]).encode()).hexdigest()[:16]


def connection_of(component: str, args: Mapping[str, Any]) -> ClusterConnection:
    """The connection that a component's `kubeconfig` or `context` gives, else `kubernetes:context`.

    Args:
        component: type and name, for the message: `KaiScheduler ml`.

    Raises:
        pulumi.RunError: none is given; a Kubernetes provider does not expose its kubeconfig.
    """
    if args.get("kubeconfig") is not None:
        return ClusterConnection(kubeconfig=pulumi.Output.secret(args["kubeconfig"]))
    if context := args.get("context") or pulumi.Config("kubernetes").get("context"):
        return ClusterConnection(context=context)
    raise pulumi.RunError(
        f"{component}: has no way to its cluster; write kubeconfig, or context: a context of your"
        " kubeconfig"
    )


def provider_options(
    component: pulumi.ComponentResource, name: str, args: Mapping[str, Any]
) -> dict[str, pulumi.ProviderResource]:
    """The option `provider` for a component's children: a new Kubernetes provider called `name`
    for `kubeconfig` or `context`, unless the component's options have one.

    It has no `cluster_identifier`, so another cluster in the kubeconfig replaces it, and new
    credentials only update it.
    """
    provider = component.get_provider("kubernetes:core/v1:Namespace")
    if provider is not None or not {"kubeconfig", "context"} & args.keys():
        return {}
    inside, opts = "probe_environment" in args, pulumi.ResourceOptions(parent=component)
    return {"provider": kubernetes_provider(name, connection_of(name, args), opts, inside=inside)}


def kubernetes_provider(
    name: str,
    connection: ClusterConnection,
    opts: pulumi.ResourceOptions,
    cluster_identifier: pulumi.Input[str] | None = None,
    *,
    inside: bool = False,
) -> kubernetes.Provider:
    """A Kubernetes provider for a cluster; `inside` a vCluster, each request has a timeout, and an
    object that exists is updated where it is declared.
    """
    return kubernetes.Provider(
        name,
        cluster_identifier=cluster_identifier,
        context=connection.context,
        kubeconfig=connection.kubeconfig,
        # To revert changes by hand: whoever changed a field owns it, and without force server-side
        # apply reports a conflict.
        enable_patch_force=True,
        kube_client_settings={"timeout": ANSWER_SECONDS} if inside else None,
        # A vCluster installed on the volume of an earlier one still has what that declared. On the
        # host, what exists is of others.
        upsert_existing_objects=inside or None,
        # Otherwise a new password replaces a pull Secret, and pulls fail meanwhile.
        enable_secret_mutable=True,
        opts=opts,
    )
