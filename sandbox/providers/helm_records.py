"""What Helm keeps of each release: a Secret per revision, whose labels say what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .rest import Cluster

# The labels are enough: the rest of such a Secret is the whole chart.
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True)
class Record:
    """The newest revision of a release."""

    revision: int
    status: str

    @property
    def pending(self) -> bool:
        """Whether an operation on it never ended."""
        return self.status.startswith("pending-")


def newest(cluster: Cluster, name: str, namespace: str) -> Record | None:
    """The newest revision, None when there is none: as helm itself sees it, a tenth of a second
    sooner. Raises PluginError.
    """
    listed = cluster.request(
        "GET",
        f"/api/v1/namespaces/{namespace}/secrets",
        accept=_METADATA,
        labelSelector=f"owner=helm,name={name}",
    )
    labels = [item["metadata"]["labels"] for item in listed.get("items") or []]
    found = [Record(int(its["version"]), its["status"]) for its in labels]
    return max(found, key=lambda record: record.revision, default=None)
