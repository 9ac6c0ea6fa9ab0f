"""The values of one KAI release, by version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.settings.files.secret_values import hidden
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.tolerations import Toleration
from kubectl_fleet.releases import DISABLED, KaiRelease, has_sharing_modes

RESTRICTED: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "runAsUser": 10000,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def kai_values(
    release: KaiRelease,
    *,
    gpu_sharing: bool = True,
    runtime_class: str | None = "nvidia",
    isolation: Isolation | None = None,
    tolerations: Sequence[Toleration] = (),
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What the chart of that version gets: the table's values, then `overrides`.

    gpu_sharing allows fractions of a GPU; through v0.17 the charts have it off (K6). runtime_class
    is the RuntimeClass of the pods that reserve a shared GPU; without it they see none where the
    container runtime's default is not NVIDIA's (K5). `tolerations` are those of all its parts.
    """
    reservation = (
        nested(release.runtime_class_key, runtime_class)
        if release.runtime_class_key and runtime_class
        else {}
    )
    return merged(
        {"global": _sharing(release, gpu_sharing)},
        _isolated(release, isolation or Isolation()),
        reservation,
        {"global": {"tolerations": [it.spec for it in tolerations]}} if tolerations else {},
        release.values,
        hidden(overrides or {}),
    )


def _sharing(release: KaiRelease, on: bool) -> dict[str, Any]:
    """Written also where it is off: from v0.18 a chart that is told nothing shares GPUs."""
    if has_sharing_modes(release.version):
        return {"gpuSharingMode": "NonMemoryEnforced" if on else DISABLED}
    return {"gpuSharing": on}


def _isolated(release: KaiRelease, isolation: Isolation) -> dict[str, Any]:
    """What the charts can do themselves: hide GPUs from containers that ask for none, and run their
    own parts as `restricted` wants it.
    """
    values: dict[str, Any] = {}
    if isolation.on and release.hides_gpus:
        values["blockNvidiaVisibleDevices"] = True
    if isolation.level == "restricted":
        values["securityContext"] = dict(RESTRICTED)
    return {"global": values} if values else {}
