"""The values of one KAI release, by version, and the objects that have what its chart has not."""

from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.inputs import resolved, toleration_spec
from kai_fleet.registry_secrets import OF_STACK
from kai_fleet.releases import DISABLED, KaiRelease, version_key
from kai_fleet.releases.chart_values import merged, nested, values_of
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.releases.sharing import NOT_ENFORCED, sharing_values

# The first chart with labels for the namespace in which shared GPUs are held.
_LABELS_SINCE: Final = (0, 16, 7)


def kai_values(release: KaiRelease, args: Mapping[str, Any]) -> dict[str, Any]:
    """What the chart of that version gets for KaiSchedulerArgs; their `values` come last.

    Through v0.17 the charts share no GPUs by themselves. Without a RuntimeClass the pods that
    reserve a shared GPU see none where the container runtime's default is not NVIDIA's.
    """
    shares, mode = args.get("gpu_sharing", True), args.get("gpu_sharing_mode", NOT_ENFORCED)
    level, runtime_class = args.get("isolation", "baseline"), release.runtime_class_key
    labelled = version_key(release.version) >= _LABELS_SINCE
    computed = {
        "tolerations": [toleration_spec(each) for each in args.get("tolerations", ())],
        "pull_secrets": [{"name": OF_STACK}] if args.get("registries") else None,
        "reservation_labels": dict(args.get("labels", {})) if labelled else None,
    }
    layers = {
        "every": True,
        "hidden GPUs": level != "off" and release.hides_gpus,
        "restricted": level == "restricted",
        "prometheus": release.prometheus_values and "fairshare" in args,
        "existing priority classes": "priorityClasses" in args.get("use_existing", ()),
    }
    return merged(
        sharing_values(release.version, mode if shares else DISABLED),
        nested(runtime_class, "nvidia") if runtime_class else {},
        release.values,
        values_of("kai", (layer for layer in layers if layers[layer]), {**args, **computed}),
        args.get("values", {}),
    )


def kai_objects(release: KaiRelease, args: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The `spec` of each SchedulingShard, and of the Config where the chart has no values for it,
    by plural kind and name.
    """
    shards, fairshare = args.get("shards", {}), args.get("fairshare")
    if fairshare is None:
        return {"schedulingshards": {name: _shard(name, shard) for name, shard in shards.items()}}
    over_time = values_of("kai", ["shard over time"], fairshare)
    named = {DEFAULT_SHARD: {}, **shards}
    specs = {name: _shard(name, shard) | over_time for name, shard in named.items()}
    config = {} if release.prometheus_values else values_of("kai", ["prometheus"], args)
    return {"schedulingshards": specs} | ({"configs": {"kai-config": config}} if config else {})


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
    return values_of("kai", ["shard"], {**shard, **computed})
