"""Construct components for programs in other languages.

The SDK's own ComponentProvider drops arguments that a component does not have, reads any value in
place of an object as an empty object, and adds a traceback to each error. This one leaves the check
of arguments to the components.
"""

import typing
from collections.abc import Mapping, Sequence

import pulumi
from pulumi.provider import ConstructResult
from pulumi.provider.experimental.analyzer import ComponentDefinition
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError

from kai_fleet.backup.virtual_cluster_backup import VirtualClusterBackup, VirtualClusterBackupArgs
from kai_fleet.declaring.argument_check import camel, fields_of, other_language
from kai_fleet.gpu_stack import GpuStack, GpuStackArgs
from kai_fleet.isolation.host_guards import HostGuards, HostGuardsArgs
from kai_fleet.isolation.team_namespace import TeamNamespace, TeamNamespaceArgs
from kai_fleet.kai.arguments import KaiArgs
from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.names import PACKAGE
from kai_fleet.provider import version
from kai_fleet.queue_tree import QueueTree, TreeArgs
from kai_fleet.team import Team, TeamArgs
from kai_fleet.vcluster.virtual_cluster import VirtualCluster, VirtualClusterArgs

# The components, with the arguments that programs in other languages have: no components.
SERVED: Mapping[type[pulumi.ComponentResource], type] = {
    GpuStack: GpuStackArgs,
    HostGuards: HostGuardsArgs,
    KaiScheduler: KaiArgs,
    QueueTree: TreeArgs,
    Team: TeamArgs,
    TeamNamespace: TeamNamespaceArgs,
    VirtualCluster: VirtualClusterArgs,
    VirtualClusterBackup: VirtualClusterBackupArgs,
}


class Components(ComponentProvider):
    """All components of this package; each checks its own arguments."""

    def __init__(self) -> None:
        self._args_by_name = {component.__name__: args for component, args in SERVED.items()}
        for component, args in SERVED.items():
            # The SDK derives the schema from this annotation.
            component.__init__.__annotations__["args"] = args
        super().__init__(list(SERVED), PACKAGE, version=version())

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        """Construct a component. Raises what its constructor raises."""
        try:
            with other_language():
                return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            cause = error.inner
        raise cause

    def map_inputs(
        self, inputs: pulumi.Inputs, component_def: ComponentDefinition
    ) -> dict[str, object]:
        """The arguments under Python's names; an unknown one keeps its name, to be refused."""
        return _in_python_fields(self._args_by_name[component_def.name], inputs)


def in_python(hint: object, value: object) -> object:
    """A value from another language as a type hint of Python describes it, at any depth.

    That is below hints of a TypedDict, a Mapping and a Sequence. Keys of a TypedDict get Python's
    spelling; unknown keys keep theirs, and keys with a null are dropped. A whole number becomes an
    int if the hint is int. Any other value is returned as it is, also one of another type than the
    hint's, and one with a hint of several types such as an Input.
    """
    container = typing.get_origin(hint) or hint
    arguments = typing.get_args(hint)
    if typing.is_typeddict(hint) and isinstance(value, Mapping):
        return _in_python_fields(hint, value)
    if container is Mapping and isinstance(value, Mapping):
        return {key: in_python(arguments[1], entry) for key, entry in value.items()}
    if container is Sequence and isinstance(value, list):
        return [in_python(arguments[0], entry) for entry in value]
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _in_python_fields(typed_dict: object, value: Mapping[str, object]) -> dict[str, object]:
    """The fields of a TypedDict under Python's names, without those that are null."""
    hints = fields_of(typed_dict)
    python_names = {camel(name): name for name in hints}
    fields = {}
    for key, entry in value.items():
        if entry is not None:
            name = python_names.get(key, key)
            fields[name] = in_python(hints.get(name), entry)
    return fields
