"""The host cluster: one that there is, or a kind cluster that the stack makes."""

from pydantic import Field, SecretStr

from kai_fleet.settings.sections.kind import Kind
from kai_fleet.settings.sections.model import Strict
from kai_fleet.settings.sections.platform import Name


class Cluster(Strict):
    """The host cluster. Its name is its identity: credentials may rotate under it."""

    name: Name = Field(description="Stable identity of the cluster.")
    context: str | None = Field(
        default=None, min_length=1, description="A context of your kubeconfig."
    )
    kubeconfig: SecretStr | None = Field(
        default=None,
        min_length=1,
        strict=False,
        description="The kubeconfig itself, set with `pulumi config set --secret --path`.",
    )
    kind: Kind | None = Field(
        default=None, description="A kind cluster on this machine, made and deleted with the stack."
    )
