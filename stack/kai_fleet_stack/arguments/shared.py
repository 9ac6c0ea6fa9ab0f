"""What the arguments of several components have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, SecretStr

from kai_fleet.declaring.inputs import RegistryArgs, TolerationArgs, without_none
from kai_fleet.releases import DISABLED
from kai_fleet.releases.sharing import MODES, mode_in
from kai_fleet.releases.sources import in_any
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.sections.access import Registries
from kai_fleet_stack.settings.sections.kubernetes import Toleration
from kai_fleet_stack.settings.sections.platform import HostKai, KaiRelease
from kai_fleet_stack.settings.sections.queues import Queue, walk
from kai_fleet_stack.settings.sections.teams import HostPlace, Scheduler

if TYPE_CHECKING:  # rules use this module without the components
    from kai_fleet.helm_charts.chart_args import ChartSource
    from kai_fleet.kai.arguments import KaiSchedulerArgs
    from kai_fleet.queue_tree import QueueArgs


def in_clear(value: object) -> Any:
    """Settings as the arguments of the same names: plain values, without None, secrets in clear.

    A section becomes a mapping by the names of its fields, with their defaults where the file sets
    none. Tuples become lists. None stays in a list, and where it is the whole value.
    """
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        value = dict(value)
    if isinstance(value, Mapping):
        return {key: in_clear(inner) for key, inner in without_none(value).items()}
    if isinstance(value, list | tuple):
        return [in_clear(element) for element in value]
    return value


def fields_in_clear(section: BaseModel, names: Iterable[str]) -> Any:
    """Some fields of a section as the arguments of the same names, as `in_clear` writes them."""
    fields = {name: getattr(section, name) for name in names}
    return in_clear(fields)


def tolerations_args(tolerations: list[Toleration]) -> list[TolerationArgs]:
    """The tolerations as arguments."""
    return cast("list[TolerationArgs]", in_clear(tolerations))


def registries_args(registries: Registries) -> dict[str, RegistryArgs]:
    """The accounts as arguments, with passwords in clear text, by registry."""
    return cast("dict[str, RegistryArgs]", in_clear(registries))


def add_chart_account(settings: Settings, args: ChartSource, registries: Registries) -> None:
    """Add the account of the longest registry name that contains the chart of these arguments.

    Its password is in clear text. Nothing is added without a chart, or if no registry contains it:
    none does for a location with `https://`. `registries` are looked up together with the stack's,
    and replace those of the same name.
    """
    accounts = {**settings.registries, **registries}
    location = args.get("chart", "").removeprefix("oci://")
    names = [name for name in accounts if in_any(location, [name.removesuffix("/")])]
    if names:
        args["chart_account"] = in_clear(accounts[max(names, key=len)])


def kai_args(
    settings: Settings,
    kai: HostKai | Scheduler,
    pods: HostKai | HostPlace,
    registries: Registries,
) -> KaiSchedulerArgs:
    """Arguments of a KAI from its settings; the password of its chart's account is in clear text.

    A mode of GPU sharing that its chart values set counts before the key `gpuSharing`; a text there
    that is no mode does not. `gpu_sharing_mode` is left out if nothing is shared. Without a version
    the argument is "", which rules refuse. The connection is left to the caller.

    Args:
        pods: has tolerations and affinity of its pods: the KAI itself, or its team.
        registries: accounts for its chart, before those of the stack with the same names.
    """
    version = kai.version or ""
    in_values = mode_in(version, kai.values)
    mode = in_values if in_values in MODES else settings.sharing_of(kai)
    args: KaiSchedulerArgs = fields_in_clear(kai, KaiRelease.model_fields)
    args.update(fields_in_clear(pods, ("tolerations", "affinity")))
    add_chart_account(settings, args, registries)
    args["version"] = version
    args["values"] = kai.values
    args["gpu_sharing"] = mode != DISABLED
    if mode != DISABLED:
        args["gpu_sharing_mode"] = mode
    return args


def parents(tree: Mapping[str, Queue]) -> Sequence[str]:
    """Names of the queues with children, parents before their children."""
    return [placed.name for placed in walk(tree) if placed.queue.children]


def queue_args(
    tree: Mapping[str, Queue],
    shard: str | None = None,
) -> dict[str, QueueArgs]:
    """Queues with the keys that the file sets, because QueueTree fills in missing quotas.

    At all levels; a key that is None is left out. A share is a mapping, also where the file has a
    quota in its place. The caller may change the result. `shard`, if there is one, replaces that of
    the top-level queues.
    """
    queues: dict[str, QueueArgs] = {}
    for name, queue in tree.items():
        args = cast("QueueArgs", queue.model_dump(exclude_unset=True, exclude_none=True))
        if shard is not None:
            args["shard"] = shard
        queues[name] = args
    return queues
