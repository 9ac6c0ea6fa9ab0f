"""What the SDK reads of the components' arguments, which is what other languages get."""

import pytest
from pulumi.provider.experimental.analyzer import Analyzer, PropertyDefinition, PropertyType

from kai_fleet.gpu_stack import GpuStackArgs
from kai_fleet.isolation.host_guards import HostGuardsArgs
from kai_fleet.isolation.team_namespace import TeamNamespaceArgs
from kai_fleet.kai.arguments import KaiArgs
from kai_fleet.queue_tree import TreeArgs
from kai_fleet.team import TeamArgs
from kai_fleet.vcluster.virtual_cluster import VirtualClusterArgs

ARGS = (
    GpuStackArgs,
    HostGuardsArgs,
    TeamNamespaceArgs,
    VirtualClusterArgs,
    KaiArgs,
    TreeArgs,
    TeamArgs,
)
# Keys below which everything is a chart's or Kubernetes' own.
OF_OTHERS = {"values", "vclusterValues", "affinity"}
ANY = "pulumi.json#/Any"


@pytest.fixture(scope="module")
def types() -> dict[str, dict[str, PropertyDefinition]]:
    """The properties of each Args, and of each type in them, by the type's name."""
    analyzer = Analyzer("kai-fleet")
    found = {
        args.__name__: analyzer.analyze_type(args, is_component_output=False)[0] for args in ARGS
    }
    assert not analyzer.unresolved_forward_refs
    return found | {
        name: found_type.properties for name, found_type in analyzer.type_definitions.items()
    }


def refs(field: PropertyDefinition) -> set[str]:
    inner = [part for part in (field.items, field.additional_properties) if part is not None]
    return {field.ref or ""}.union(*map(refs, inner))


# What holds of every field.
HOLDS = {
    "it is described": lambda field: (field.description or "").strip(),
    "its absence is described": lambda field: (
        not field.optional or {"Default:", "Required"} & {*field.description.split()}
    ),
    # The SDK turns a number that is not known yet into an int, and fails.
    "no Output is an integer": lambda field: field.type is not PropertyType.INTEGER or field.plain,
    # An Output in place of one arrives as {}.
    "objects are plain": lambda field: (
        field.plain or not any(ref.startswith("#/types/") for ref in refs(field))
    ),
}


@pytest.mark.parametrize("what", HOLDS)
def test_of_every_field(types, what):
    wrong = [
        f"{kind}.{name}"
        for kind, fields in types.items()
        for name, field in fields.items()
        if not HOLDS[what](field)
    ]
    assert wrong == []


def test_only_values_of_others_have_no_type(types):
    untyped = {
        name for fields in types.values() for name, field in fields.items() if ANY in refs(field)
    }
    assert untyped == OF_OTHERS
