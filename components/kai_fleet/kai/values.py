"""The values of one KAI release, by version."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kai_fleet.releases.chart_values import merged, nested, unknown_keys
from kai_fleet.settings.files.secret_values import hidden
from kai_fleet.settings.sections.affinity import Affinity
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.tolerations import Toleration
from kubectl_fleet.releases import KaiRelease
from kubectl_fleet.releases.sharing import NOT_ENFORCED, SharingMode, sharing_values

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
    sharing: SharingMode = NOT_ENFORCED,
    runtime_class: str | None = "nvidia",
    isolation: Isolation | None = None,
    tolerations: Sequence[Toleration] = (),
    affinity: Affinity | None = None,
    labels: Mapping[str, str] | None = None,
    pull_secrets: Sequence[str] = (),
    overrides: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What the chart of that version gets: the table's values, then `overrides`.

    sharing is how pods share GPUs; through v0.17 the charts have it off (K6). runtime_class
    is the RuntimeClass of the pods that reserve a shared GPU; without it they see none where the
    container runtime's default is not NVIDIA's (K5). `tolerations` and `affinity` are those of all
    its parts, `labels` of what its chart can label. `pull_secrets` are Secrets of its namespaces.
    """
    reservation = (
        nested(release.runtime_class_key, runtime_class)
        if release.runtime_class_key and runtime_class
        else {}
    )
    return merged(
        sharing_values(release.version, sharing),
        _isolated(release, isolation or Isolation()),
        reservation,
        {"global": {"tolerations": [it.spec for it in tolerations]}} if tolerations else {},
        {"global": {"affinity": affinity.spec}} if affinity else {},
        _noted(release, labels or {}),
        {"global": {"imagePullSecrets": [{"name": it} for it in pull_secrets]}}
        if pull_secrets
        else {},
        release.values,
        hidden(overrides or {}),
    )


def _noted(release: KaiRelease, labels: Mapping[str, str]) -> dict[str, Any]:
    """Those of the namespace where shared GPUs are held, in charts that have a value for them."""
    values = nested("global.resourceReservation.namespaceLabels", dict(labels))
    return values if labels and not unknown_keys("kai", release.version, values) else {}


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
