"""The values of one KAI release, by version, and the objects that have what its chart has not."""

from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.inputs import resolved, toleration_spec, without_none
from kai_fleet.options import values_at
from kai_fleet.registry_secrets import OF_STACK
from kai_fleet.releases import DISABLED, KaiRelease, version_key
from kai_fleet.releases.chart_values import merged
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.releases.sharing import NOT_ENFORCED, sharing_values

# How its pods run where isolation is `restricted`.
RESTRICTED: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "runAsUser": 10000,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
# The first chart with labels for the namespace in which shared GPUs are held.
_LABELS_SINCE: Final = (0, 16, 7)


def kai_values(release: KaiRelease, args: Mapping[str, Any]) -> dict[str, Any]:
    """What the chart of that version gets for KaiSchedulerArgs; their `values` come last.

    Through v0.17 the charts share no GPUs by themselves. Without a RuntimeClass the pods that
    reserve a shared GPU see none where the container runtime's default is not NVIDIA's.
    """
    shares, mode = args.get("gpu_sharing", True), args.get("gpu_sharing_mode", NOT_ENFORCED)
    level, existing = args.get("isolation", "baseline"), args.get("use_existing", ())
    by_chart = release.prometheus_values and "fairshare" in args
    own = {
        # Hidden from containers that ask for none.
        "global.blockNvidiaVisibleDevices": True if level != "off" and release.hides_gpus else None,
        "global.securityContext": dict(RESTRICTED) if level == "restricted" else None,
        release.runtime_class_key or "": "nvidia" if release.runtime_class_key else None,
        "global.tolerations": [toleration_spec(each) for each in args.get("tolerations", ())],
        "global.affinity": args.get("affinity"),
        # Of the namespace where shared GPUs are held.
        "global.resourceReservation.namespaceLabels": dict(args.get("labels", {}))
        if version_key(release.version) >= _LABELS_SINCE
        else None,
        "global.imagePullSecrets": [{"name": OF_STACK}] if args.get("registries") else None,
    }
    more = {
        "prometheus": _prometheus(args["fairshare"]) if by_chart else None,
        # By it the chart neither makes nor deletes priority classes. From v0.16.7.
        "defaultPriorityClasses.enabled": False if "priorityClasses" in existing else None,
    }
    return merged(
        sharing_values(release.version, mode if shares else DISABLED),
        values_at(own),
        release.values,
        values_at(more),
        args.get("values", {}),
    )


def _prometheus(fairshare: Mapping[str, Any]) -> dict[str, Any]:
    """Config's part about Prometheus: with an address KAI does not run its own."""
    return {"enabled": True, **without_none({"externalPrometheusUrl": fairshare.get("prometheus")})}


def kai_objects(release: KaiRelease, args: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The `spec` of each SchedulingShard, and of the Config where the chart has no values for it,
    by plural kind and name.
    """
    shards, fairshare = args.get("shards", {}), args.get("fairshare")
    named = shards if fairshare is None else {DEFAULT_SHARD: {}, **shards}
    specs = {name: _shard(name, shard, fairshare) for name, shard in named.items()}
    objects: dict[str, dict[str, Any]] = {"schedulingshards": specs}
    if fairshare is not None and not release.prometheus_values:
        objects["configs"] = {"kai-config": {"prometheus": _prometheus(fairshare)}}
    return objects


def _shard(
    name: str, shard: Mapping[str, Any], fairshare: Mapping[str, Any] | None
) -> dict[str, Any]:
    strategies = {part: shard.get(f"{part}_placement") for part in ("gpu", "cpu")}
    spec: dict[str, Any] = {
        "partitionLabelValue": None if name == DEFAULT_SHARD else name,
        # A strategy needs the other one beside it.
        "placementStrategy": {part: set_ or "binpack" for part, set_ in strategies.items()}
        if any(strategies.values())
        else None,
        "minRuntime.preemptMinRuntime": shard.get("preempt_min_runtime"),
        "minRuntime.reclaimMinRuntime": shard.get("reclaim_min_runtime"),
        # KAI takes integers; other languages send every number as a fraction.
        "queueDepthPerAction": {
            action: resolved(int, most) for action, most in shard.get("queue_depth", {}).items()
        },
    }
    if fairshare is not None:
        usage, window = "usageDBConfig.usageParams", fairshare.get("window", "168h")
        spec |= {
            "kValue": fairshare.get("k_value", 1.0),
            "usageDBConfig.clientType": "prometheus",
            # Without it the operator fills in the address of its own one.
            "usageDBConfig.connectionString": fairshare.get("prometheus"),
            f"{usage}.windowSize": window,
            f"{usage}.windowType": fairshare.get("window_type", "sliding"),
            f"{usage}.halfLifePeriod": fairshare.get("half_life"),
            f"{usage}.tumblingWindowStartTime": fairshare.get("start"),
            f"{usage}.cronString": fairshare.get("cron"),
        }
    return values_at(spec)
