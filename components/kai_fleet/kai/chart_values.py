"""Chart values of KAI's release, and specs of its shards, from KaiSchedulerArgs."""

from typing import Any, cast

from kai_fleet.declaring.inputs import resolved, toleration_spec
from kai_fleet.kai.arguments import KaiSchedulerArgs, ShardArgs
from kai_fleet.names import STACK_PULL_SECRET
from kai_fleet.releases import DISABLED, KaiRelease, version_key
from kai_fleet.releases.chart_values import merged, nested, values_of
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.releases.sharing import NOT_ENFORCED, SharingMode, sharing_values

Values = dict[str, Any]

# The first chart with labels for the namespace of the pods that reserve shared GPUs.
_RESERVATION_LABELS_SINCE = "v0.16.7"


def kai_values(release: KaiRelease, args: KaiSchedulerArgs) -> Values:
    """Chart values of this version for the arguments, with `values` of the arguments over all.

    If `gpu_sharing` is false, its mode does not count. What `_computed` gives replaces arguments.
    Raises KeyError for a toleration without a key.

    Through v0.17 the charts share no GPUs by themselves. Without a RuntimeClass the pods that
    reserve a shared GPU see none if the container runtime's default is not NVIDIA's.
    """
    mode: SharingMode = DISABLED
    if args.get("gpu_sharing", True):
        mode = cast(SharingMode, args.get("gpu_sharing_mode", NOT_ENFORCED))
    runtime_class = {}
    if release.runtime_class_key:
        runtime_class = nested(release.runtime_class_key, "nvidia")
    return merged(
        sharing_values(release.version, mode),
        runtime_class,
        release.values,
        values_of("kai", _layers(release, args), {**args, **_computed(release, args)}),
        args.get("values", {}),
    )


def _computed(release: KaiRelease, args: KaiSchedulerArgs) -> Values:
    """Values that chart-values.yaml takes beside the arguments; it drops empty ones.

    `tolerations` replaces the argument of that name. Labels are there only from v0.16.7 on.
    """
    computed: Values = {
        "tolerations": [toleration_spec(taint) for taint in args.get("tolerations", [])]
    }
    if args.get("registries"):
        computed["pull_secrets"] = [{"name": STACK_PULL_SECRET}]
    if version_key(release.version) >= version_key(_RESERVATION_LABELS_SINCE):
        computed["reservation_labels"] = dict(args.get("labels", {}))
    return computed


def _layers(release: KaiRelease, args: KaiSchedulerArgs) -> list[str]:
    """Layers of chart-values.yaml, the later ones over the earlier ones."""
    level = args.get("isolation", "baseline")
    layers = ["every"]
    if release.hides_gpus and level != "off":
        layers.append("hidden GPUs")
    if level == "restricted":
        layers.append("restricted")
    if release.prometheus_values and "fairshare" in args:
        layers.append("prometheus")
    if "priorityClasses" in args.get("use_existing", []):
        layers.append("existing priority classes")
    return layers


def kai_objects(release: KaiRelease, args: KaiSchedulerArgs) -> dict[str, dict[str, Values]]:
    """The `spec` of each SchedulingShard, and of the Config if the chart has no values for it.

    By the resource in KAI's API (`schedulingshards`, `configs`) and the object's name. `fairshare`
    is in the spec of every shard, also of `default`, which `shards` may lack. Only with it is there
    a Config. Outputs in the arguments stay Outputs.
    """
    specs = {name: _shard_spec(name, shard) for name, shard in args.get("shards", {}).items()}
    objects = {"schedulingshards": specs}
    fairshare = args.get("fairshare")
    if fairshare is None:
        return objects
    over_time = values_of("kai", ["shard over time"], fairshare)
    specs.setdefault(DEFAULT_SHARD, {})
    for spec in specs.values():
        spec.update(over_time)
    if not release.prometheus_values:
        config = values_of("kai", ["prometheus"], args)
        if config:
            objects["configs"] = {"kai-config": config}
    return objects


def _shard_spec(name: str, shard: ShardArgs) -> Values:
    """The `spec` of a SchedulingShard, without what its arguments lack.

    The chart's own `default` selects nodes without a label.
    """
    # KAI takes integers; other languages send every number as a fraction.
    queue_depth = {
        action: resolved(int, jobs) for action, jobs in shard.get("queue_depth", {}).items()
    }
    computed: Values = {
        "partition": None if name == DEFAULT_SHARD else name,
        "queue_depth": queue_depth,
    }
    if placement := shard.get("placement"):
        computed["placement"] = {"gpu": "binpack", "cpu": "binpack", **placement}
    return values_of("kai", ["shard"], {**shard, **computed})
