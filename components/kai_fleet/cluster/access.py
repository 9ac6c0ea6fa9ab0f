"""How the program and its probes reach a cluster, and what goes when the cluster goes."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.provider import PACKAGE, QUEUES


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

    def provider(self, name: str, opts: pulumi.ResourceOptions) -> kubernetes.Provider:
        """The provider for what is declared on this cluster."""
        return kubernetes.Provider(
            name,
            cluster_identifier=self.name if self.identifier is None else self.identifier,
            context=self.context,
            kubeconfig=self.secret(),
            # Changes by hand are put right; without this the API server refuses to, because
            # whoever changed a field owns it now.
            enable_patch_force=True,
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


def deleted_with(cluster: pulumi.Resource) -> pulumi.ResourceTransformation:
    """Delete resources together with their cluster (`deleted_with`), not one by one.

    For a component: all that it declares on the cluster, unless it is deleted with another resource
    already.
    """

    def transform(
        args: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult | None:
        is_on_it = args.type_.startswith(("kubernetes:", "command:", QUEUES))
        if not is_on_it or args.opts.deleted_with is not None or args.opts.id is not None:
            return None
        with_it = pulumi.ResourceOptions(deleted_with=cluster)
        return pulumi.ResourceTransformationResult(
            args.props, pulumi.ResourceOptions.merge(args.opts, with_it)
        )

    return transform


def own_provider() -> pulumi.ProviderResource:
    """The stack's provider of this project, which serves queue trees and reads Secrets.

    Give it to the platform and to the teams. The engine's own for the package would have the whole
    of `kai-fleet:…` in the stack file for its configuration: in the state once more, and another in
    each stack, so that no team could move.
    """
    return pulumi.ProviderResource(PACKAGE, PACKAGE, {})
