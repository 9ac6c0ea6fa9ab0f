"""Refresh a stack's state from its clusters, and repair what a killed run left in it."""

import re

from pulumi import automation

from kai_fleet.names import IDENTITY, NAMESPACE_PATCH, PROVIDERS, RELEASE, VIRTUAL_CLUSTER
from kai_fleet.urns import read_urn
from kai_fleet.values import get, pairs
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.engine.operation import Operation
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.engine.workspace import last_state
from kai_fleet_cli.recovery import state as stack_state
from kai_fleet_cli.recovery.state import PendingOperation, Resource, State

# Types whose interrupted creation needs no import: Helm records its releases, and a patch is
# applied again.
_NOT_IMPORTED = (RELEASE, NAMESPACE_PATCH)


def refresh(operation: Operation, state: State) -> None:
    """Refresh the state as far as the stack's clusters answer; `state` is the state before.

    Print on stderr what is imported, and each vCluster that does not answer.

    Objects that a killed run had begun to create are imported if they exist: the update creates the
    others. What is in a vCluster that does not answer stays in the state as it is, because Pulumi
    would refresh nothing otherwise. Removals of Helm releases that were cut off are finished.

    Raises:
        CommandError: The refresh failed, and not for a vCluster that does not answer; or an
            uninstall did; or another run holds the stack's lock; or the state cannot be read.
        Interrupted: A signal came during the imports, or while no engine ran.
    """
    for pending in state.pending:
        if _may_be_imported(pending, state):
            _import(operation, pending.resource)
            operation.signals.check()
    silent: set[str] = set()
    while True:
        report = Report()
        try:
            operation.stack.refresh(
                exclude=stack_state.urns_within(silent, state.resources) or None,
                clear_pending_creates=True,
                suppress_outputs=True,
                **operation.engine_options(report),
            )
        except automation.errors.CommandError as error:
            failed = _silent_clusters(error, report, state)
            if failed <= silent:
                raise
            silent |= failed
            for name in sorted({read_urn(urn).name.removesuffix(IDENTITY) for urn in failed}):
                say(f"vCluster {name} does not answer, and is not refreshed")
            state = last_state(operation.stack)  # the refresh has removed what is gone
        else:
            _finish_uninstalls(operation)
            return


def _may_be_imported(pending: PendingOperation, state: State) -> bool:
    """Whether a run was cut off while it created this Kubernetes object, which the state lacks.

    False for what needs no import, _NOT_IMPORTED.
    """
    resource_type = pending.resource["type"]
    return (
        pending.operation == "creating"
        and resource_type.startswith("kubernetes:")
        and resource_type not in _NOT_IMPORTED
        and pending.resource["urn"] not in state.resources
    )


def _silent_clusters(
    error: automation.errors.CommandError, report: Report, state: State
) -> set[str]:
    """The vClusters in which a refresh failed, each by the URN of a resource that stands for it, as
    `clusters_of` has them. Empty if nothing failed that `state` has in a vCluster.
    """
    silent: set[str] = set()
    for urn in report.causes():
        silent |= stack_state.clusters_of(state.resources.get(urn, {}))
    # A provider that cannot use its cluster is named only in the error of the CLI.
    for urn in state.resources:
        if _is_vcluster_provider(urn) and _names_urn(str(error), urn):
            silent.add(urn)
    return silent


def _is_vcluster_provider(urn: str) -> bool:
    """Whether this is the URN of a provider for what is in a vCluster."""
    read = read_urn(urn)
    return read.type.startswith(PROVIDERS) and read.above[-1:] == (VIRTUAL_CLUSTER,)


def _names_urn(text: str, urn: str) -> bool:
    """Whether a text has this URN in it, and not only a longer one that begins with it."""
    return re.search(rf"{re.escape(urn)}(?![-\w])", text) is not None


def _finish_uninstalls(operation: Operation) -> None:
    """Have Helm finish the uninstalls that a kill cut off; the update installs what is declared.

    Helm upgrades no release that is `uninstalling`, and how many of its objects are left is
    unknown. A release that others depend on is skipped: the engine deletes those first, so this
    uninstall was not the engine's. Raises CommandError if the state cannot be read, or an uninstall
    fails.
    """
    stack = operation.stack
    resources = stack_state.exported(stack.workspace, stack.name).resources
    dependencies: set[str] = set()
    for resource in resources.values():
        dependencies.update(resource.get("dependencies") or ())
    for urn, resource in resources.items():
        status = get(resource, "outputs", "status", "status")
        is_uninstalling = resource["type"] == RELEASE and status == "uninstalling"
        if is_uninstalling and urn not in dependencies:
            unread = Report()  # what fails here is in the CommandError
            stack.destroy(target=[urn], show_secrets=False, **operation.engine_options(unread))


def _import(operation: Operation, resource: Resource) -> None:
    """Import an object into the state, and print on stderr whether it existed.

    Any failure of Pulumi's CLI counts as that it did not exist, but for one: raises
    ConcurrentUpdateError, a CommandError, if another run holds the stack's lock.
    """
    name = read_urn(str(resource["urn"])).name
    metadata = pairs(get(resource, "inputs", "metadata"))
    # The ID of an object in the Kubernetes provider: `namespace/name`, or its name.
    id_parts = [metadata.get("namespace"), metadata.get("name")]
    try:
        operation.stack.import_resources(
            resources=[
                {
                    "type": resource["type"],
                    "name": name,
                    "id": "/".join(str(part) for part in id_parts if part),
                    "parent": "parent",
                    "provider": "provider",
                }
            ],
            name_table={
                "parent": str(resource["parent"]),
                "provider": stack_state.provider_of(resource),
            },
            protect=False,
            generate_code=False,
            on_output=operation.engine_options(Report())["on_output"],
        )
    except automation.errors.ConcurrentUpdateError:
        raise
    except automation.errors.CommandError:
        say(f"{name}: it was not made; it will be now")
    else:
        say(f"{name}: an interrupted run made it; it is in the state now")
