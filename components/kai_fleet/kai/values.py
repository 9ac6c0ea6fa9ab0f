"""The values of one KAI release, by version."""

from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.fleet.model import DeclaredKai
from kai_fleet.options import hidden
from kai_fleet.releases import KaiRelease
from kai_fleet.releases.chart_values import merged, nested, unknown_keys
from kai_fleet.releases.sharing import sharing_values
from kai_fleet.settings.sections.access import OF_STACK
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.platform import Fairshare, Scheduling

RESTRICTED: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "runAsUser": 10000,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def kai_values(
    release: KaiRelease,
    own: DeclaredKai | None = None,
    isolation: Isolation | None = None,
    others: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What the chart of that version gets: the table's values, then those written for it, `own`.

    Through v0.17 the charts share no GPUs by themselves (K6). Without a RuntimeClass the pods that
    reserve a shared GPU see none where the container runtime's default is not NVIDIA's (K5).
    `others` are values for what others made in its cluster.
    """
    own = own or DeclaredKai(release.version)
    tolerations = [it.spec for it in own.tolerations]
    written = merged(
        prometheus_values(release, own.scheduling or Scheduling()), others or {}, own.values
    )
    return merged(
        sharing_values(release.version, own.sharing),
        _isolated(release, isolation or Isolation()),
        nested(release.runtime_class_key, "nvidia") if release.runtime_class_key else {},
        {"global": {"tolerations": tolerations}} if tolerations else {},
        {"global": {"affinity": own.affinity.spec}} if own.affinity else {},
        _noted(release, own.labels),
        {"global": {"imagePullSecrets": [{"name": OF_STACK}]}} if own.registries else {},
        release.values,
        hidden(written),
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


def prometheus_values(release: KaiRelease, scheduling: Scheduling) -> dict[str, Any]:
    """The chart's values for Prometheus, in versions that have some: they bring its roles too."""
    if scheduling.fairshare is None or not release.prometheus_values:
        return {}
    return {"prometheus": prometheus(scheduling.fairshare)}


def prometheus(fairshare: Fairshare) -> dict[str, Any]:
    """Config's part about Prometheus: with an address KAI does not run its own."""
    address = {"externalPrometheusUrl": fairshare.prometheus} if fairshare.prometheus else {}
    return {"enabled": True, **address}
