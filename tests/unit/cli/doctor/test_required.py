"""The objects that the doctor misses are those that the program makes."""

import pytest

from kai_fleet_cli.doctor.required import required_objects
from kai_fleet_cli.plan.offline import plan
from kai_fleet_cli.stack_file.reading import settings_of
from kai_fleet_stack.declared import host_of


@pytest.mark.parametrize("stack", ["sandbox", "prod", "sandbox-host"])
def test_what_the_doctor_requires_is_what_the_program_declares(stack):
    declared = set()
    for resource in plan(stack).resources:
        metadata = resource.inputs.get("metadata") or {}
        kind = resource.type.rpartition(":")[2]
        declared.add((kind, metadata.get("name"), metadata.get("namespace")))
    settings = settings_of(stack)
    host = host_of(settings)
    teams = {team.name: team for team in (*host.teams, *host.grants)}
    # Of providers of their own; the class may be of whoever installed the GPU stack.
    of_providers = ("queue", "SchedulingShard", "Topology", "RuntimeClass")
    required = [
        row for row in required_objects(settings, host, teams) if row.kind not in of_providers
    ]
    assert len(required) > 10
    assert [
        entry for entry in required if (entry.kind, entry.name, entry.namespace) not in declared
    ] == []
