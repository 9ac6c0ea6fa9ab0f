"""How a component reaches its cluster: to declare on it, to probe it, and to read of it."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import pulumi_kubernetes as kubernetes
import yaml

from kai_fleet.inputs import plain
from kai_fleet.values import get, items, value_at

# For one request to a tenant's API server, which may never answer: the engine asks some fifteen of
# them one after the other before it gives the team up. KAI's webhooks take 10 at most.
ANSWER_SECONDS: Final = 15


@dataclass(frozen=True)
class ClusterConnection:
    """A kubeconfig's content, which is a secret wherever it goes, or a context of the caller's own
    kubeconfig.
    """

    kubeconfig: pulumi.Output[str] | None = None
    context: str | None = None

    def environment(self) -> dict[str, pulumi.Input[str]]:
        """The variables from which a probe builds its client; never part of a command line."""
        return {f"PROBE_{key.upper()}": value for key, value in self.properties().items()}

    def properties(self) -> dict[str, pulumi.Input[str]]:
        """`kubeconfig` or `context`, as components and the package's own provider take them."""
        if self.kubeconfig is not None:
            return {"kubeconfig": self.kubeconfig}
        return {"context": self.context or ""}

    def identity(self) -> pulumi.Input[str]:
        """What stands for the cluster: a context, or the authority in the kubeconfig, which stays
        where credentials or addresses change, and is another in a vCluster that is made anew.
        """
        if self.kubeconfig is None:
            return self.context or ""
        return pulumi.Output.unsecret(self.kubeconfig.apply(_authority))


def _authority(kubeconfig: str) -> str:
    try:
        content = yaml.safe_load(kubeconfig)
    except yaml.YAMLError:
        content = None  # whoever connects says what is wrong with it

    def named(kind: str, name: Any) -> Any:
        entries = items(value_at(content, f"{kind}s"))
        return next((get(each, kind) for each in entries if get(each, "name") == name), {})

    cluster = named("cluster", get(named("context", get(content, "current-context")), "cluster"))
    known = get(cluster, "certificate-authority-data") or get(cluster, "server")
    return hashlib.sha256(str(known).encode()).hexdigest()[:16]


def connection_of(component: str, args: Mapping[str, Any]) -> ClusterConnection:
    """The connection that a component's `kubeconfig` or `context` gives, else `kubernetes:context`.

    Args:
        component: type and name, for the message: `KaiScheduler ml`.

    Raises:
        pulumi.RunError: there is none of them; a provider does not tell its own.
    """
    if args.get("kubeconfig") is not None:
        return ClusterConnection(kubeconfig=pulumi.Output.secret(args["kubeconfig"]))
    context = plain(component, "context", args.get("context"))
    if context := context or pulumi.Config("kubernetes").get("context"):
        return ClusterConnection(context=context)
    raise pulumi.RunError(
        f"{component}: has no way to its cluster; write kubeconfig, or context: a context of your"
        " kubeconfig"
    )


def provider_options(
    component: pulumi.ComponentResource, name: str, args: Mapping[str, Any]
) -> dict[str, pulumi.ProviderResource]:
    """Options with the Kubernetes provider of what a component declares: a new one called `name`,
    of its `kubeconfig` or `context`, unless its own options have one.

    Without `cluster_identifier`: then it is replaced where another cluster stands in the
    kubeconfig, and only updated by other credentials.
    """
    provider = component.get_provider("kubernetes:core/v1:Namespace")
    if provider is not None or not {"kubeconfig", "context"} & args.keys():
        return {}
    seconds = ANSWER_SECONDS if "probe_environment" in args else None
    opts = pulumi.ResourceOptions(parent=component)
    return {"provider": kubernetes_provider(name, connection_of(name, args), opts, seconds)}


def kubernetes_provider(
    name: str,
    connection: ClusterConnection,
    opts: pulumi.ResourceOptions,
    seconds: int | None = None,
    cluster_identifier: pulumi.Input[str] | None = None,
) -> kubernetes.Provider:
    """The provider of what is declared on a cluster; `seconds` are for each of its answers, without
    end where None.
    """
    return kubernetes.Provider(
        name,
        cluster_identifier=cluster_identifier,
        context=connection.context,
        kubeconfig=connection.kubeconfig,
        # Changes by hand are put right; without this the API server refuses to, because whoever
        # changed a field owns it now.
        enable_patch_force=True,
        kube_client_settings=None if seconds is None else {"timeout": seconds},
        # Else a new password would replace the Secret of a registry, and pulls would fail.
        enable_secret_mutable=True,
        opts=opts,
    )
