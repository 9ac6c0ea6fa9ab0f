"""The Command stand-in over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.rpc import UNKNOWN

from sandbox.providers.command import CommandStandIn
from tests.unit.standin_harness import Driver, Secret, driven


@pytest.fixture
def driver() -> Iterator[Driver]:
    with driven(CommandStandIn) as found:
        found.token = "command:local:Command"
        yield found


def test_both_streams_are_outputs_and_shown(driver: Driver) -> None:
    inputs = {"create": "printf 'a\\nb\\n'; echo err >&2"}
    resource_id, state = driver.create(inputs)
    assert resource_id.startswith("it")
    assert state == {**inputs, "stdout": "a\nb", "stderr": "err"}
    assert sorted(driver.engine.messages) == ["a", "b", "err"]


@pytest.mark.parametrize(
    ("logging", "shown"),
    [("none", []), ("stdout", ["out"]), ("stderr", ["err"]), ("stdoutAndStderr", ["err", "out"])],
)
def test_logging_decides_what_is_shown(driver: Driver, logging: str, shown: list[str]) -> None:
    _, state = driver.create({"create": "echo out; echo err >&2", "logging": logging})
    assert (state["stdout"], state["stderr"]) == ("out", "err")
    assert sorted(driver.engine.messages) == shown


def test_outputs_are_no_secrets_even_when_an_input_is(driver: Driver) -> None:
    """As those of the official plugin: so no command of the program prints a secret."""
    inputs = {"create": "echo $A", "environment": {"A": Secret("x")}, "logging": "none"}
    _, state = driver.create(inputs)
    assert state == {**inputs, "stdout": "x", "stderr": ""}


def test_a_preview_runs_nothing(driver: Driver, tmp_path: Path) -> None:
    inputs = {"create": f"touch {tmp_path}/ran"}
    assert driver.create(inputs, preview=True)[1] == {
        **inputs,
        "stdout": UNKNOWN,
        "stderr": UNKNOWN,
    }
    state = {**inputs, "stdout": "", "stderr": ""}
    assert driver.update("i", state, inputs, preview=True)["stdout"] == UNKNOWN
    assert list(tmp_path.iterdir()) == []


def test_update_and_delete_know_what_came_before(driver: Driver, tmp_path: Path) -> None:
    inputs = {
        "create": "echo one",
        "update": "echo $PULUMI_COMMAND_STDOUT-two",
        "delete": f"echo $PULUMI_COMMAND_STDOUT > {tmp_path}/deleted",
    }
    _, state = driver.create(inputs)
    state = driver.update("i", state, inputs)
    assert state["stdout"] == "one-two"
    driver.delete("i", state)
    assert (tmp_path / "deleted").read_text() == "one-two\n"


def test_an_update_without_a_command_of_its_own_creates_again(driver: Driver) -> None:
    assert driver.update("i", {"stdout": "x"}, {"create": "echo again"})["stdout"] == "again"


def test_a_failure_has_code_command_and_output(driver: Driver) -> None:
    command = "echo said; sleep 0.2; echo why >&2; exit 4"
    text = driver.fails(driver.create, {"create": command})
    assert text == f'exit status 4: running "{command}":\nsaid\nwhy\n'


def test_triggers_replace_and_other_inputs_update(driver: Driver) -> None:
    state = {"create": "a", "triggers": [1], "stdout": "x", "stderr": ""}
    same = driver.diff(state, {"create": "a", "triggers": [1]})
    assert same.changes == provider_pb2.DiffResponse.DIFF_NONE
    assert list(driver.diff(state, {"create": "a", "triggers": [2]}).replaces) == ["triggers[0]"]
    updated = driver.diff(state, {"create": "b", "triggers": [1]})
    assert list(updated.detailedDiff) == ["create"]
    assert not updated.replaces


def test_what_is_not_served_names_the_official_plugin(driver: Driver) -> None:
    text = driver.fails(driver.check, {"create": "x", "assetPaths": ["*"]})
    assert "The input assetPaths of a command is not served" in text
    assert "`pulumi plugin install resource command 1.2.1`" in text
