"""A team's vCluster: its control plane, how its API is reached, and who may log in."""

import re
from typing import Annotated, Final, Literal

from pydantic import Field, SecretStr

from kai_fleet_stack.settings.sections.access import Access
from kai_fleet_stack.settings.sections.kubernetes import (
    Bytes,
    Cpus,
    LabelKey,
    LabelValue,
    ObjectName,
)
from kai_fleet_stack.settings.sections.models import (
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
from kai_fleet_stack.settings.sections.platform import OtherChart, Untested, Values, Version

# "" is the cluster's default.
StorageClass = Annotated[str, like(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$")]
# A tag of the image with the parts of Kubernetes that a vCluster runs.
KubernetesVersion = Annotated[str, like(r"^v1\.[0-9]{1,3}\.[0-9]{1,3}(-[-.0-9A-Za-z]+)?$", 80)]
_DATABASE: Final = re.compile(r"(mysql|postgres(ql)?)://\S+$")
_NO_DATABASE: Final = "is no address of a database; write mysql://… or postgres://…"


def _is_no_database(text: str) -> bool:
    return _DATABASE.match(text) is None


class Store(Strict):
    """Where a vCluster keeps its state. Type and number of etcd members cannot be changed later."""

    type: Literal["embedded", "etcd", "embeddedEtcd", "external"] = "embedded"
    """embedded: SQLite on its volume. etcd: etcd in pods of its own. embeddedEtcd and external, a
    database, need a licence.
    """
    replicas: Literal[1, 3, 5, 7, 9] | None = None
    """etcd: number of members. Default: 1."""
    data_source: Annotated[SecretStr | None, refuse_secret(_is_no_database, _NO_DATABASE)] = Field(
        default=None, strict=False
    )
    """external: URL with password, mysql://… or postgres://…; set it with
    `pulumi config set --secret --path`.
    """

    def mistakes(self) -> Wrong:
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


def _is_system_group(group: str) -> bool:
    return group.startswith("system:")


_SYSTEM_GROUP: Final = "is one of Kubernetes' own; write it as the provider calls it"
_Text = Annotated[str, like(r"^\S+$")]
GroupName = Annotated[str, like(r"^\S(.*\S)?$"), refuse(_is_system_group, _SYSTEM_GROUP)]
# No role is cluster-admin, which can change queues and remove the guard.
Groups = Annotated[
    dict[GroupName, Literal["view", "edit", "admin"]],
    Rising(("view", "edit", "admin")),
]


class Oidc(Strict):
    """An OpenID Connect provider whose tokens the vCluster's API server accepts."""

    issuer: Annotated[str, like(r"^https://[^/?#@\s]+(/[^?#@\s]*)?$", 2048)]
    """Its address, as its tokens have it in iss: https://id.example.com."""
    client_id: _Text
    """The client for which its tokens are: kubernetes."""
    username_claim: _Text = "sub"
    """Claim with the user's name. email needs the scope email."""
    groups_claim: _Text = "groups"
    """Claim with the user's groups."""
    ca: Annotated[str, like("^-----BEGIN CERTIFICATE-----\n", 100_000)] | None = None
    """Certificate authority of the issuer, as PEM. Default: public authorities."""
    scopes: list[_Text] = Field(default_factory=list)
    """Scopes that kubectl requests besides openid, such as email. Default: none."""


class Vcluster(Strict):
    """The team's vCluster. Keys that a team leaves out are read from `kai-fleet:vcluster`."""

    version: Annotated[Version | None, Grants.NOTHING] = None
    """Version of vCluster. Default: v0.36.1."""
    kubernetes_version: Annotated[KubernetesVersion | None, Grants.NOTHING] = None
    """Version of Kubernetes inside, such as v1.34.4. It can only rise, by one minor version at a
    time. Default: that of the vCluster version.
    """
    chart: OtherChart = None
    values: Values = Field(default_factory=dict)
    """Chart values, merged over those that the program writes. Default: none."""
    access: Access | None = None
    """How its API is reached. Default: by a Service of type LoadBalancer."""
    untested: Untested = False
    node_pool: Annotated[dict[LabelKey, LabelValue], Grants.OTHER] = Field(default_factory=dict)
    """Labels of the nodes for control planes. Default: the team's own nodes."""
    oidc: Oidc | None = None
    """Identity provider whose users may log in. Default: none."""
    groups: Groups = Field(default_factory=dict)
    """Role of each of the provider's groups in the namespace default: view, edit or admin. Every
    group may also read everything but Secrets. Default: none.
    """
    image_pull_secrets: list[ObjectName] = Field(default_factory=list)
    """Secrets in namespace team-NAME that pull the images of the control plane and of all synced
    pods. Default: none.
    """
    storage_class: StorageClass | None = None
    """StorageClass of the volume (with etcd: of each member's). Cannot be changed later. Default,
    and for "": the cluster's default class.
    """
    size: Bytes | None = None
    """Size of the volume (with etcd: of each member's), in bytes. Cannot be changed later. Default:
    5Gi.
    """
    replicas: int = Field(default=1, ge=1, le=9)
    """Number of control plane pods. More than 1 needs a store that is not embedded."""
    store: Store = Field(default_factory=Store)
    """Where it keeps its state."""
    resources: dict[Literal["requests", "limits"], ResourceAmounts] = Field(default_factory=dict)
    """Requests and limits of each control plane pod. Default: requests of cpu 200m, memory 256Mi,
    ephemeralStorage 1Gi; limits of memory 4Gi, ephemeralStorage 10Gi (before v0.30 2Gi and 8Gi).
    """
    licensed: bool = False
    """There is a vCluster licence or its free tier, so use the Pro image and allow its keys."""

    def mistakes(self) -> Wrong:
        """The mistakes of its sections, and groups without an identity provider."""
        yield from below("store", self.store.mistakes())
        if self.access is not None:
            yield from below("access", self.access.mistakes())
        if self.oidc is None and self.groups:
            # Reported at the provider: it may be there and have been left out as wrong.
            cause = "is missing: groups are those of an identity provider"
            yield "oidc", f"{cause}; write oidc: {{issuer: https://…, clientId: kubernetes}}"
