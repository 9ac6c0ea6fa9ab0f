"""What a state says of where a resource is declared: the line, and not the whole way there."""

import pytest

from kai_fleet.names import STACK
from kai_fleet_cli.plan import recorder
from tests.unit.cli.plan.test_recorder import LAB


@pytest.fixture
def requests(monkeypatch):
    """What the program sends, as to an engine: a plan alone would leave out all positions."""
    found, answer = [], recorder._Recorder.RegisterResource

    def note(self, request):
        found.append(request)
        return answer(self, request)

    monkeypatch.setattr(recorder._Recorder, "RegisterResource", note)
    recorder.record("lab", LAB)
    # The stack itself is declared by the SDK, before the program.
    return [item for item in found if item.type != STACK]


def test_each_resource_names_the_file_that_declares_it(requests):
    files = {item.name: item.sourcePosition.uri.rpartition("/")[2] for item in requests}
    assert files["ml-kai-release"] == "kai_scheduler.py"
    assert files["ml-namespace"] == "team_namespace.py"
    assert not [name for name, file in files.items() if not file.endswith(".py")]


def test_no_resource_has_the_whole_call_stack(requests):
    assert max(len(item.stackTrace.frames) for item in requests) <= 2
