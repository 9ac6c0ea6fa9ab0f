"""KAI's SchedulingShards, and the Config that goes with fairness over time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_command as command

from kai_fleet import probes
from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.options import child_of
from kai_fleet.settings.sections.scheduling import (
    Fairshare,
    Scheduling,
    Shard,
)
from kubectl_fleet.releases import KaiRelease
from kubectl_fleet.releases.keys import DEFAULT_SHARD


@dataclass
class SchedulingShardsArgs:
    """`scheduling` as configured, for the KAI of `version` in the cluster of `access`.

    `release` is an output of its Helm release: where that is made anew, so are the shards.
    """

    version: str
    access: ClusterAccess
    scheduling: Scheduling
    release: pulumi.Input[Any]
    prometheus_by_chart: bool = field(default=False)


class SchedulingShards(pulumi.ComponentResource):
    """The shards of one KAI, applied field by field.

    KAI's chart makes the shard `default` and its Config, and has no values for most of what
    stands here. So this owns single fields of objects that are the chart's, by server-side apply:
    Helm's upgrades and the operator leave alone what they did not write. A Patch resource would
    own them too, but is gone with the object where a release is replaced, and not made again
    because nothing of it changed; this step has the release for its trigger. Declare it after
    `ready`.
    """

    def __init__(
        self, name: str, args: SchedulingShardsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:SchedulingShards", name, None, opts)
        objects = kai_objects(args.scheduling, config=not args.prometheus_by_chart)
        command.local.Command(
            f"{name}-apply",
            create=probes.command("shards", "apply"),
            update=probes.command("shards", "apply"),
            delete=probes.command("shards", "remove"),
            environment={
                **args.access.environment(),
                "KAI_VERSION": args.version,
                "KAI_OBJECTS": json.dumps(objects, sort_keys=True),
            },
            triggers=[args.release],
            opts=child_of(self, opts, delete_before_replace=True),
        )
        self.register_outputs({"shards": sorted(objects["schedulingshards"])})


def has_shards(scheduling: Scheduling) -> bool:
    """Whether anything is configured that stands in shards."""
    return bool(scheduling.shards) or scheduling.fairshare is not None


def kai_objects(scheduling: Scheduling, *, config: bool) -> dict[str, dict[str, Any]]:
    """The `spec` of each object by plural kind and name; `config`: that of the Config too."""
    fairshare = scheduling.fairshare
    shards = {DEFAULT_SHARD: Shard(), **scheduling.shards}
    objects: dict[str, dict[str, Any]] = {
        "schedulingshards": {
            name: _shard(name, shard, fairshare)
            for name, shard in shards.items()
            if name in scheduling.shards or fairshare is not None
        }
    }
    if fairshare is not None and config:
        objects["configs"] = {"kai-config": {"prometheus": prometheus(fairshare)}}
    return objects


def prometheus_values(release: KaiRelease, scheduling: Scheduling) -> dict[str, Any]:
    """The chart's values for Prometheus, in versions that have some: they bring its roles too."""
    if scheduling.fairshare is None or not release.prometheus_values:
        return {}
    return {"prometheus": prometheus(scheduling.fairshare)}


def prometheus(fairshare: Fairshare) -> dict[str, Any]:
    """Config's part about Prometheus: with an address KAI does not run its own."""
    address = {"externalPrometheusUrl": fairshare.prometheus} if fairshare.prometheus else {}
    return {"enabled": True, **address}


def _shard(name: str, shard: Shard, fairshare: Fairshare | None) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if name != DEFAULT_SHARD:
        spec["partitionLabelValue"] = name
    if shard.placement is not None:
        spec["placementStrategy"] = {"gpu": shard.placement.gpu, "cpu": shard.placement.cpu}
    if shard.min_runtime is not None:
        spec["minRuntime"] = _without_none(
            preemptMinRuntime=shard.min_runtime.preempt, reclaimMinRuntime=shard.min_runtime.reclaim
        )
    if shard.queue_depth:
        spec["queueDepthPerAction"] = dict(shard.queue_depth)
    if fairshare is not None:
        spec |= {"kValue": fairshare.k_value, "usageDBConfig": _usage(fairshare)}
    return spec


def _usage(fairshare: Fairshare) -> dict[str, Any]:
    return {
        "clientType": "prometheus",
        # Without it the operator fills in the address of its own one.
        **_without_none(connectionString=fairshare.prometheus),
        "usageParams": {
            "windowSize": fairshare.window,
            "windowType": fairshare.window_type,
            **_without_none(
                halfLifePeriod=fairshare.half_life,
                tumblingWindowStartTime=fairshare.start,
                cronString=fairshare.cron,
            ),
        },
    }


def _without_none(**fields: str | None) -> Mapping[str, str]:
    return {key: value for key, value in fields.items() if value is not None}
