"""What the arguments of several components have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from pydantic import BaseModel, SecretStr

from kai_fleet.declaring.inputs import RegistryArgs, TolerationArgs, without_none
from kai_fleet.releases import DISABLED
from kai_fleet.releases.sharing import MODES, mode_in
from kai_fleet.releases.sources import in_any
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.sections.access import Registries
from kai_fleet_stack.settings.sections.kubernetes import Toleration
from kai_fleet_stack.settings.sections.platform import HostKai, Monitoring
from kai_fleet_stack.settings.sections.queues import Queue, walk
from kai_fleet_stack.settings.sections.teams import HostPlace, Scheduler

if TYPE_CHECKING:  # rules use this module without the components
    from kai_fleet.kai.arguments import FairshareArgs, KaiSchedulerArgs, ShardArgs
    from kai_fleet.monitoring.arguments import MonitoringArgs
    from kai_fleet.queue_tree import QueueArgs


def in_clear(value: object) -> object:
    """Settings as plain values: mappings by field, without None, and secrets in clear text."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        value = dict(value)
    if isinstance(value, Mapping):
        return {key: in_clear(inner) for key, inner in without_none(value).items()}
    if isinstance(value, list | tuple):
        return [in_clear(element) for element in value]
    return value


def tolerations_args(tolerations: list[Toleration]) -> list[TolerationArgs]:
    """Tolerations as they are written."""
    return cast("list[TolerationArgs]", in_clear(tolerations))


def registries_args(registries: Registries) -> dict[str, RegistryArgs]:
    """Accounts by registry, with their passwords in clear text."""
    return cast("dict[str, RegistryArgs]", in_clear(registries))


def chart_account(
    settings: Settings, chart: str | None, registries: Registries | None = None
) -> RegistryArgs | None:
    """The account of the longest registry name that contains a chart, its password in clear text.

    None if `chart` is, or if no registry contains it.

    `registries` are looked up together with the stack's, and replace those of the same name.
    """
    if chart is None:
        return None
    accounts = dict(settings.registries)
    accounts.update(registries or {})
    location = chart.removeprefix("oci://")
    names = [name for name in accounts if in_any(location, [name.removesuffix("/")])]
    if not names:
        return None
    longest = max(names, key=len)
    return cast("RegistryArgs", in_clear(accounts[longest]))


def kai_args(
    settings: Settings, kai: HostKai | Scheduler, pods: HostKai | HostPlace, registries: Registries
) -> KaiSchedulerArgs:
    """Arguments of a KAI from its settings.

    A mode of GPU sharing that its chart values set counts before the key `gpuSharing`; a text there
    that is no mode does not.

    Args:
        pods: has tolerations and affinity of its pods: the KAI itself, or its team.
        registries: accounts for its chart, besides the stack's.
    """
    version = kai.version or ""
    in_values = mode_in(version, kai.values)
    mode = in_values if in_values in MODES else settings.sharing_of(kai)
    args: KaiSchedulerArgs = {
        "version": version,
        "untested": kai.untested,
        "values": kai.values,
        "gpu_sharing": mode != DISABLED,
        "tolerations": tolerations_args(pods.tolerations),
        "shards": cast("dict[str, ShardArgs]", in_clear(kai.shards)),
        "topologies": {topology: [*labels] for topology, labels in kai.topologies.items()},
    }
    if mode != DISABLED:
        args["gpu_sharing_mode"] = mode
    if kai.chart is not None:
        args["chart"] = kai.chart
    account = chart_account(settings, kai.chart, registries)
    if account is not None:
        args["chart_account"] = account
    if kai.fairshare is not None:
        args["fairshare"] = cast("FairshareArgs", in_clear(kai.fairshare))
    if pods.affinity is not None:
        args["affinity"] = cast("dict[str, object]", in_clear(pods.affinity))
    return args


def parents(tree: Mapping[str, Queue]) -> Sequence[str]:
    """Names of the queues with children."""
    return [placed.name for placed in walk(tree) if placed.queue.children]


def monitoring_args(monitoring: Monitoring) -> MonitoringArgs:
    """Where the host's Prometheus is, and how it finds metrics."""
    return {
        "namespace": monitoring.namespace,
        "labels": {**monitoring.labels},
        "interval": monitoring.interval,
    }


def queue_args(tree: Mapping[str, Queue], shard: str | None = None) -> dict[str, QueueArgs]:
    """Queues with the keys that the file sets, because QueueTree fills in missing quotas.

    `shard`, if there is one, replaces that of the top-level queues.
    """
    queues: dict[str, QueueArgs] = {}
    for name, queue in tree.items():
        args = cast("QueueArgs", queue.model_dump(exclude_unset=True, exclude_none=True))
        if shard is not None:
            args["shard"] = shard
        queues[name] = args
    return queues
