"""A team's vCluster: its control plane, how it is reached, and who enters it."""

import re
from typing import Annotated, Final, Literal

from pydantic import Field, SecretStr

from kai_fleet.settings.sections.access import Access
from kai_fleet.settings.sections.kubernetes import Bytes, Cpus, LabelKey, LabelValue, ObjectName
from kai_fleet.settings.sections.models import (
    SET_SECRET,
    Grants,
    Rising,
    Strict,
    Wrong,
    below,
    like,
    refuse,
    refuse_secret,
)
from kai_fleet.settings.sections.platform import OtherChart, Untested, Values, Version

# "" is the cluster's default.
StorageClass = Annotated[str, like(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")]


# A tag of the image in which vCluster has its parts.
KubernetesVersion = Annotated[str, like(r"^v1\.[0-9]{1,3}\.[0-9]{1,3}(-[-.0-9A-Za-z]+)?$", 80)]
_NO_DATABASE: Final = "is no address of a database; write mysql://… or postgres://…"


def _is_no_database(text: str) -> bool:
    return re.match(r"(mysql|postgres(ql)?)://\S+$", text) is None


class Store(Strict):
    """Where a vCluster keeps its state. The type stays, and how many etcds there are."""

    type: Literal["embedded", "etcd", "embeddedEtcd", "external"] = "embedded"
    """embedded: SQLite on its volume. etcd: own pods. With a licence: embeddedEtcd, external."""
    replicas: Literal[1, 3, 5, 7, 9] | None = None
    """etcd: how many, an odd number; 1 unless set."""
    data_source: Annotated[SecretStr | None, refuse_secret(_is_no_database, _NO_DATABASE)] = Field(
        default=None, strict=False
    )
    """external: mysql://… or postgres://…; set it with `pulumi config set --secret --path`."""

    def mistakes(self) -> Wrong:
        """What is missing, or has no use with this type."""
        yield from self.useless("type", {"replicas": ("etcd",), "data_source": ("external",)})
        if self.type == "external" and self.data_source is None:
            yield "dataSource", f"is missing: the database; {SET_SECRET}"


class ResourceAmounts(Strict):
    """Amounts of what a node has."""

    cpu: Cpus | None = None
    """CPU."""
    memory: Bytes | None = None
    """Memory."""
    ephemeral_storage: Bytes | None = None
    """Of the node's own disk."""


_SYSTEM_GROUP: Final = "is one of Kubernetes' own; write it as the provider calls it"
_Text = Annotated[str, like(r"^\S+$")]
GroupName = Annotated[
    str,
    like(r"^\S(.*\S)?$"),
    refuse(lambda group: group.startswith("system:"), _SYSTEM_GROUP),
]


class Oidc(Strict):
    """An OpenID Connect provider whose tokens a vCluster's API server takes."""

    issuer: Annotated[str, like(r"^https://[^/?#@\s]+(/[^?#@\s]*)?$", 2048)]
    """Its address, as its tokens have it in iss: https://id.example.com."""
    client_id: _Text
    """The client for which its tokens are: kubernetes."""
    username_claim: _Text = "sub"
    """The claim that is a user's name; email wants the scope email."""
    groups_claim: _Text = "groups"
    """The claim that lists groups."""
    ca: Annotated[str, like("^-----BEGIN CERTIFICATE-----\n", 100_000)] | None = None
    """PEM of the authority of its certificate, unless a public one."""
    scopes: list[_Text] = Field(default_factory=list)
    """What kubectl asks for besides openid: email, groups."""


class Vcluster(Strict):
    """The team's vCluster. What a team leaves out comes from `kai-fleet:vcluster`."""

    version: Annotated[Version | None, Grants.NOTHING] = None
    """Such as v0.36.1, which it is if unset."""
    kubernetes_version: Annotated[KubernetesVersion | None, Grants.NOTHING] = None
    """Kubernetes inside, such as v1.34.4; the version's own if unset. It goes up one by one."""
    chart: OtherChart = None
    values: Values = Field(default_factory=dict)
    """Merged over the mode's values."""
    access: Access | None = None
    untested: Untested = False
    node_pool: Annotated[dict[LabelKey, LabelValue], Grants.OTHER] = Field(default_factory=dict)
    """Labels of the nodes for control planes; the team's own nodes unless set."""
    oidc: Oidc | None = None
    """The identity provider by whose accounts people enter it."""
    # Not cluster-admin, which changes queues and removes the guard.
    groups: Annotated[
        dict[GroupName, Literal["view", "edit", "admin"]], Rising(("view", "edit", "admin"))
    ] = Field(default_factory=dict)
    """Groups of that provider: view, edit or admin in namespace default; all read but Secrets."""
    image_pull_secrets: list[ObjectName] = Field(default_factory=list)
    """Secrets of namespace team-NAME that pull images of the control plane and all synced pods."""
    storage_class: StorageClass | None = None
    """StorageClass of its or each etcd's volume; "" and unset: the cluster's default. It stays."""
    size: Bytes | None = None
    """Size of its or each etcd's volume, 5Gi unless set. It stays."""
    replicas: int = Field(default=1, ge=1, le=9)
    """How many pods its control plane has; more than one needs another store."""
    store: Store = Field(default_factory=Store)
    resources: dict[Literal["requests", "limits"], ResourceAmounts] = Field(default_factory=dict)
    """What each pod of its control plane is promised, and the most it may take. Unless set:
    requests of cpu 200m, memory 256Mi, ephemeralStorage 1Gi; limits of memory 4Gi,
    ephemeralStorage 10Gi (before v0.30 2Gi and 8Gi).
    """
    licensed: bool = False
    """There is a vCluster licence, or its free tier: the Pro image, its keys."""

    def mistakes(self) -> Wrong:
        """Those of its sections, and groups without an identity provider."""
        yield from below("store", self.store.mistakes())
        if self.access is not None:
            yield from below("access", self.access.mistakes())
        if self.oidc is None and self.groups:  # at the provider, which may be written wrong
            cause = "is missing: groups are those of an identity provider"
            yield "oidc", f"{cause}; write oidc: {{issuer: https://…, clientId: kubernetes}}"
