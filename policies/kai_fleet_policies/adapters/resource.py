"""One declared resource, as any program declares it."""

from collections.abc import Mapping
from dataclasses import dataclass

from kai_fleet.values import (
    Maybe,
    get,
    text,
)

Properties = Mapping[str, object]


@dataclass(frozen=True)
class DeclaredResource:
    """One resource.

    Args:
        name: Its name in Pulumi; that in Kubernetes is `object_name`.
        props: Its inputs as plain values; UNKNOWN stands for what only the update knows.
        provider: URN of its provider, or "".
        default_namespace: Namespace that the provider fills in; UNKNOWN if only the update knows
            that.
    """

    urn: str
    type: str
    name: str
    props: Properties
    provider: str = ""
    default_namespace: str = "default"

    @property
    def object_name(self) -> Maybe[str]:
        """Its name in Kubernetes: that of its metadata, which may be UNKNOWN, else Pulumi's."""
        return text(get(self.props, "metadata", "name")) or self.name

    @property
    def namespace(self) -> Maybe[str] | None:
        """The namespace that its metadata has, which may be UNKNOWN.

        None, whatever its provider fills in, if the metadata has none.
        """
        return text(get(self.props, "metadata", "namespace"))
