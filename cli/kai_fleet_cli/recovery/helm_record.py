"""Whose a Helm release is: its records have the chart that it was installed from."""

import base64
import binascii
import json
import re
import zlib

from kai_fleet.cluster.kube.api import Api, Object
from kai_fleet.values import value_at

_LONGEST_RECORD = 8 << 20  # bytes; Kubernetes keeps 1 MiB, compressed
_GZIP = 31  # window bits by which zlib takes gzip's header
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def charts_of(api: Api, release: str, namespace: str) -> set[str]:
    """The names of the charts in the records of a release; empty without a record.

    Records are the Secrets in its namespace, which a tenant may write; a name is safe to show.

    Raises:
        KubeError: The records cannot be read.
        ValueError: A record is not as Helm writes it.
    """
    path = f"/api/v1/namespaces/{namespace}/secrets"
    return {_chart(record) for record in api.list(path, labelSelector=f"owner=helm,name={release}")}


def _chart(record: Object) -> str:
    """The name of the chart in a record. Only its first 8 MiB are decompressed.

    Raises ValueError if the record is not as Helm writes it, or is larger than that.
    """
    encoded = value_at(record, "data.release")
    if not isinstance(encoded, str):
        raise ValueError("has no release")
    try:
        compressed = base64.b64decode(base64.b64decode(encoded))
        text = zlib.decompressobj(_GZIP).decompress(compressed, _LONGEST_RECORD)
        name = value_at(json.loads(text), "chart.metadata.name")
    except (binascii.Error, zlib.error, UnicodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("names no chart")
    return name
