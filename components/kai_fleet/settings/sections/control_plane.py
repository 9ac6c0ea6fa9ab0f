"""A vCluster's control plane: how often it runs, where its state is, how much it gets."""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field, SecretStr, StringConstraints

from kai_fleet.settings.sections.isolation import Cpus, Memory, Scratch, Volume
from kai_fleet.settings.sections.model import Strict
from kubectl_fleet.wording import listed

# "" is the cluster's default; as an alternative in the type it would be an enum of no name in SDKs.
StorageClass = Annotated[
    str,
    StringConstraints(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253),
]
StoreType = Literal["embedded", "etcd", "embeddedEtcd", "external"]
_ONLY_FOR: Final = {
    "replicas": ("etcd",),
    "storage_class": ("etcd",),
    "size": ("etcd",),
    "data_source": ("external",),
}


class Store(Strict):
    """Where a vCluster keeps its state. The type stays, and how many etcds there are."""

    type: StoreType = Field(
        default="embedded",
        description="embedded: SQLite on the volume. etcd: pods of its own. With a licence:"
        " embeddedEtcd, in the control plane; external, a database.",
    )
    replicas: int | None = Field(
        default=None, ge=1, le=9, description="etcd: how many, an odd number; 1 unless set."
    )
    storage_class: StorageClass | None = Field(
        default=None, description="etcd: of each one's volume; vcluster.storageClass unless set."
    )
    size: Volume | None = Field(
        default=None, description="etcd: of each one's volume; vcluster.size unless set."
    )
    data_source: SecretStr | None = Field(
        default=None,
        strict=False,
        description="external: mysql://… or postgres://…; set it with `pulumi config set --secret"
        " --path`.",
    )


class ResourceAmounts(Strict):
    """Amounts of what a node has."""

    cpu: Cpus | None = Field(default=None, description="CPU.")
    memory: Memory | None = Field(default=None, description="Memory.")
    ephemeral_storage: Scratch | None = Field(default=None, description="Of the node's own disk.")


class ControlPlaneResources(Strict):
    """What each pod of a control plane is promised, and the most it may take."""

    requests: ResourceAmounts = Field(
        default_factory=ResourceAmounts,
        description="Unless set: cpu 200m, memory 256Mi, ephemeralStorage 1Gi.",
    )
    limits: ResourceAmounts = Field(
        default_factory=ResourceAmounts,
        description="Unless set: memory 4Gi, ephemeralStorage 10Gi (before v0.30 2Gi and 8Gi).",
    )


def store_mistakes(store: Store) -> Iterator[tuple[str, str]]:
    """What is missing, or has no use with this type: (key, sentence)."""
    for name, types in _ONLY_FOR.items():
        if getattr(store, name) is not None and store.type not in types:
            ways = f"write type: {listed(types)}, or drop it"
            yield Store.key_of(name), f"has no use with type {store.type}; {ways}"
    if store.replicas is not None and store.replicas % 2 == 0:
        yield (
            "replicas",
            f"is {store.replicas}, which stands no more failures than {store.replicas - 1}: etcd"
            f" needs more than half; write {store.replicas + 1}",
        )
    if store.type == "external" and store.data_source is None:
        yield "dataSource", "is missing: the database; encrypt it with pulumi config set --secret"
