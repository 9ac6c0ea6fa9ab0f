"""A stack of the last minor, updated by this version: what goes, the changelog names.

Compared are URNs, and of each object and release the name and the namespace, and the role of a
binding: a change of one of these deletes and creates. Whether the cluster takes all other changes
in place is seen only where an update runs.
"""

import json
import re

import pytest

from kai_fleet_cli.plan import offline, recorder
from kai_fleet_cli.stack_file.reading import ROOT

LAST = json.loads((ROOT / "tests/facts/plans/v0.4.0.json").read_text())
CHANGELOG = (ROOT / "CHANGELOG.md").read_text().partition("\n## 0.4.0")[0]


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """The resources of that stack file by their URN, and by their URNs of before (aliases)."""
    file = tmp_path_factory.mktemp("last") / "Pulumi.sandbox.yaml"
    file.write_text(LAST["stackFile"])
    earlier = {}
    register = recorder._Recorder.RegisterResource

    def noted(self, request):
        answer = register(self, request)
        for alias in request.aliases:
            name = alias.spec.name or request.name
            earlier[self.make_urn(request.parent, request.type, name)] = answer.urn
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder._Recorder, "RegisterResource", noted)
        plan = offline.plan("sandbox", file)
    assert plan.ok, plan.problems
    by_urn = {resource.urn: resource for resource in plan.resources}
    return by_urn | {old: by_urn[new] for old, new in earlier.items()}


@pytest.mark.parametrize("urn", LAST["resources"])
def test_what_the_last_minor_declared_is_the_same_object(planned, urn):
    name = urn.rpartition("::")[2]
    found = planned.get(f"urn:pulumi:sandbox::kai-fleet::{urn}")
    if found is None:
        assert re.search(rf"`{re.escape(name)}`", CHANGELOG), f"{name} goes, and no line says so"
        return
    inputs = found.inputs
    place = inputs if found.type.endswith(":Release") else inputs.get("metadata") or {}
    now = {key: place[key] for key in ("name", "namespace") if key in place}
    if "roleRef" in inputs:
        now["roleRef"] = inputs["roleRef"]["name"]
    assert now == LAST["resources"][urn]
