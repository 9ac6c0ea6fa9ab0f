"""Bring a stack's state up to date: `pulumi refresh`, and `pulumi import` after a kill."""

from collections.abc import Callable, Mapping
from typing import Any

from pulumi import automation

from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.recovery.resume import Signals
from kai_fleet_cli.recovery.state import OF_VCLUSTER, exported, provider_of

Options = Callable[[Report], dict[str, Any]]  # of a run whose events go into the report


def refresh(stack: automation.Stack, signals: Signals, options: Options) -> None:
    """Refresh a stack as far as its clusters answer. Raises CommandError, Interrupted.

    Pulumi would refresh nothing where one vCluster does not answer: what is inside it is left as
    the state has it. Objects that a killed run had begun to create are imported where they exist;
    the update creates the others.
    """
    known = exported(stack)
    for resource in known.pending_objects():
        _import(stack, resource, options(Report())["on_output"])
        signals.check()
    silent: set[str] = set()
    while True:
        report = Report()
        unread = [item["urn"] for item in known.resources if not silent.isdisjoint(_clusters(item))]
        try:
            stack.refresh(
                exclude=unread or None,
                clear_pending_creates=True,
                suppress_outputs=True,
                **options(report),
            )
            return
        except automation.errors.CommandError as why:
            failed = set().union(*(_clusters(known.resource(urn)) for urn in report.own_errors()))
            # A provider that cannot use its cluster is named in the engine's error alone.
            error, providers = str(why), f"{OF_VCLUSTER}pulumi:"
            failed |= {urn for urn in known.urns() if providers in urn and urn in error}
            if failed <= silent:
                raise
            silent |= failed
            for urn in sorted(failed):
                say(f"vCluster {urn.rpartition('::')[2]} does not answer, and is not refreshed")


def _clusters(resource: Mapping[str, Any]) -> set[str]:
    """The vClusters, by the URNs of their providers, that a resource is in or is deleted with."""
    urns = {provider_of(resource), str(resource.get("deletedWith") or "")}
    return {urn for urn in urns if OF_VCLUSTER in urn}


def _import(
    stack: automation.Stack, resource: Mapping[str, Any], show: Callable[[str], None]
) -> None:
    """Import an object into the state, if it exists."""
    name = str(resource["urn"]).rpartition("::")[2]
    metadata = (resource.get("inputs") or {}).get("metadata") or {}
    # The Kubernetes provider's ID of an object: `namespace/name`, or its name.
    parts = filter(None, (metadata.get("namespace"), metadata.get("name")))
    entry: Any = {"type": resource["type"], "name": name, "id": "/".join(parts)}
    entry |= {"parent": "parent", "provider": "provider"}
    try:
        stack.import_resources(
            resources=[entry],
            name_table={"parent": str(resource["parent"]), "provider": provider_of(resource)},
            protect=False,
            generate_code=False,
            on_output=show,
        )
        say(f"{name}: an interrupted run made it; it is in the state now")
    except automation.errors.ConcurrentUpdateError:
        raise
    except automation.errors.CommandError:
        say(f"{name}: it was not made; it will be now")
