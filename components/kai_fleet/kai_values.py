"""The values of one KAI release, by version, and the objects that have what its chart has not."""

from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.inputs import resolved, toleration_spec, without_none
from kai_fleet.registry_secrets import OF_STACK
from kai_fleet.releases import DISABLED, KaiRelease, version_key
from kai_fleet.releases.chart_values import merged, values_at, values_of
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
    over_time = {} if fairshare is None else values_of("SchedulingShard", ["fairshare"], fairshare)
    specs = {name: _shard(name, shard) | over_time for name, shard in named.items()}
    objects: dict[str, dict[str, Any]] = {"schedulingshards": specs}
    if fairshare is not None and not release.prometheus_values:
        objects["configs"] = {"kai-config": {"prometheus": _prometheus(fairshare)}}
    return objects


def _shard(name: str, shard: Mapping[str, Any]) -> dict[str, Any]:
    strategies = {part: shard.get(f"{part}_placement") for part in ("gpu", "cpu")}
    written = {part: strategy or "binpack" for part, strategy in strategies.items()}
    # KAI takes integers; other languages send every number as a fraction.
    depth = {action: resolved(int, most) for action, most in shard.get("queue_depth", {}).items()}
    computed = {
        "partition": None if name == DEFAULT_SHARD else name,
        "placement": written if any(strategies.values()) else None,
        "queue_depth": depth,
    }
    return values_of("SchedulingShard", ["shard"], {**shard, **computed})
