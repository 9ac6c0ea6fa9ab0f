"""The values of one KAI release, by version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.releases import KaiRelease
from components.secrets import hidden
from components.values import merged, nested


def kai_values(
    release: KaiRelease,
    *,
    gpu_sharing: bool = True,
    runtime_class: str | None = "nvidia",
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What the chart of that version gets: the table's values, then `overrides`.

    gpu_sharing allows fractions of a GPU; the charts have it off (K6). runtime_class is the
    RuntimeClass of the pods that reserve a shared GPU; without it they see none where the
    container runtime's default is not NVIDIA's (K5).
    """
    reservation = (
        nested(release.runtime_class_key, runtime_class)
        if release.runtime_class_key and runtime_class
        else {}
    )
    return merged(
        {"global": {"gpuSharing": gpu_sharing}},
        reservation,
        release.values,
        hidden(overrides or {}),
    )
