"""A team's vCluster: its control plane, how its API is reached, and who may log in."""

import re
from typing import Annotated, Literal

from pydantic import Field, SecretStr

from kai_fleet.releases.keys import KAI_PRIORITIES
from kai_fleet_stack.settings.sections.access import Access
from kai_fleet_stack.settings.sections.kubernetes import (
    Bytes,
    Cpus,
    LabelKey,
    LabelValue,
    ObjectName,
)
from kai_fleet_stack.settings.sections.models import (
    NO_ENTRIES,
    NO_KEYS,
    SET_SECRET,
    Grants,
    Mistakes,
    Rising,
    Strict,
    below,
    like,
    refuse,
    refuse_secret,
)
from kai_fleet_stack.settings.sections.platform import OtherChart, Values, Version

# "" is the cluster's default.
StorageClass = Annotated[str, like(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")]
# A tag of the image with the parts of Kubernetes that a vCluster runs.
KubernetesVersion = Annotated[str, like(r"^v1\.[0-9]{1,3}\.[0-9]{1,3}(-[-.0-9A-Za-z]+)?$", 80)]
_DATABASE = re.compile(r"(mysql|postgres(ql)?)://\S+$")
_NO_DATABASE = "is no address of a database; write mysql://… or postgres://…"


class Store(Strict):
    """Where a vCluster keeps its state. Type and number of members change by a restore alone."""

    described_by = ("vcluster.arguments.StoreArgs",)

    type: Literal["embedded", "etcd", "embeddedEtcd", "external"] = "embedded"
    replicas: Literal[1, 3, 5, 7, 9] | None = None
    data_source: Annotated[
        SecretStr | None, refuse_secret(lambda url: not _DATABASE.match(url), _NO_DATABASE)
    ] = Field(default=None, strict=False)

    @property
    def database(self) -> str | None:
        """The database's URL in clear, MASK in a plan; None for a store without one."""
        return self.data_source.get_secret_value() if self.data_source else None

    def mistakes(self) -> Mistakes:
        """Keys that the type requires and that are missing, or that it does not read."""
        yield from self.useless("type", {"replicas": ("etcd",), "data_source": ("external",)})
        if self.type == "external" and self.data_source is None:
            yield "dataSource", f"is missing: the database; {SET_SECRET}"


class ResourceAmounts(Strict):
    """Requests or limits of a container."""

    cpu: Cpus | None = None
    """CPU, in cores."""
    memory: Bytes | None = None
    """Memory, in bytes."""
    ephemeral_storage: Bytes | None = None
    """Ephemeral storage on the node's disk, in bytes."""


_SYSTEM_GROUP = "is one of Kubernetes' own; write it as the provider calls it"
_Text = Annotated[str, like(r"^\S+$")]
GroupName = Annotated[
    str, like(r"^\S(.*\S)?$"), refuse(lambda group: group.startswith("system:"), _SYSTEM_GROUP)
]
# No role is cluster-admin, which can change queues and remove the guard.
Groups = Annotated[
    dict[GroupName, Literal["view", "edit", "admin"]],
    Rising(("view", "edit", "admin")),
]


class Oidc(Strict):
    """An OpenID Connect provider whose tokens the vCluster's API server accepts."""

    described_by = ("vcluster.arguments.OidcArgs",)

    issuer: Annotated[str, like(r"^https://[^/?#@\s]+(/[^?#@\s]*)?$", 2048)]
    client_id: _Text
    username_claim: _Text = "sub"
    groups_claim: _Text = "groups"
    ca: Annotated[str, like("^-----BEGIN CERTIFICATE-----\n", 100_000)] | None = None
    scopes: list[_Text] = NO_ENTRIES
    """Scopes that kubectl requests besides openid, such as email for that claim. Default: none."""


def _is_taken_class(name: str) -> bool:
    return name.startswith("system-") or name in KAI_PRIORITIES


_TAKEN_CLASS = "is a class of Kubernetes' or of KAI's own pods; make another PriorityClass"


class Vcluster(Strict):
    """The team's vCluster. Keys that a team leaves out are read from `kai-fleet:vcluster`."""

    described_by = ("vcluster.arguments.VirtualClusterArgs",)

    version: Annotated[Version | None, Grants.NOTHING] = None
    kubernetes_version: Annotated[KubernetesVersion | None, Grants.NOTHING] = None
    chart: OtherChart = None
    values: Values = NO_KEYS
    access: Access | None = None
    untested: bool = False
    node_pool: Annotated[dict[LabelKey, LabelValue], Grants.OTHER] = NO_KEYS
    """Labels of the nodes for control planes. Default: the team's own nodes."""
    oidc: Oidc | None = None
    groups: Groups = NO_KEYS
    image_pull_secrets: list[ObjectName] = NO_ENTRIES
    storage_class: StorageClass | None = None
    size: Bytes | None = None
    availability: Literal["single", "high"] = "single"
    priority_class_name: Annotated[ObjectName, refuse(_is_taken_class, _TAKEN_CLASS)] | None = None
    replicas: int = Field(default=1, ge=1, le=9)
    store: Store = Field(default_factory=Store)
    resources: dict[Literal["requests", "limits"], ResourceAmounts] = NO_KEYS
    licensed: bool = False

    def mistakes(self) -> Mistakes:
        """The mistakes of its sections, and groups without an identity provider.

        To be called after the stack's defaults are filled in, which may have the provider.
        """
        yield from below("store", self.store.mistakes())
        if self.access is not None:
            yield from below("access", self.access.mistakes())
        if self.oidc is None and self.groups:
            # Reported at the provider: it may be there and have been left out as wrong.
            cause = "is missing: groups are those of an identity provider"
            yield "oidc", f"{cause}; write oidc: {{issuer: https://…, clientId: kubernetes}}"
