"""The stand-in for Pulumi's Command plugin over gRPC, as the engine drives it."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime.proto import engine_pb2_grpc, provider_pb2
from pulumi.runtime.rpc import UNKNOWN

from kai_fleet.provider.values import python_values, struct
from tests.unit.components.provider.plugin_process import running, secret

Json = dict[str, Any]
URN = "urn:pulumi:stack::project::command:local:Command::it"


class Engine(engine_pb2_grpc.EngineServicer):
    """The engine's side: what plugins log."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def Log(self, request: Any, context: Any) -> Any:  # noqa: N802
        assert request.ephemeral  # shown as it comes, and not once more at the end
        self.messages.append(request.message)
        return Empty()


class Driver:
    """Calls the plugin with plain values."""

    def __init__(self, stub: Any, engine: Engine) -> None:
        self._stub, self.engine = stub, engine

    def check(self, news: Json) -> Any:
        return self._stub.Check(provider_pb2.CheckRequest(urn=URN, news=struct(news)))

    def diff(self, olds: Json, news: Json) -> Any:
        request = provider_pb2.DiffRequest(urn=URN, olds=struct(olds), news=struct(news))
        return self._stub.Diff(request)

    def create(self, inputs: Json, preview: bool = False) -> Any:
        request = provider_pb2.CreateRequest(urn=URN, properties=struct(inputs), preview=preview)
        return self._stub.Create(request)

    def update(self, olds: Json, news: Json, preview: bool = False) -> Json:
        request = provider_pb2.UpdateRequest(
            urn=URN, olds=struct(olds), news=struct(news), preview=preview
        )
        return python_values(self._stub.Update(request).properties)

    def delete(self, state: Json) -> None:
        self._stub.Delete(provider_pb2.DeleteRequest(urn=URN, properties=struct(state)))


@pytest.fixture
def driver() -> Iterator[Driver]:
    engine = Engine()
    host = grpc.server(ThreadPoolExecutor(max_workers=8))
    engine_pb2_grpc.add_EngineServicer_to_server(engine, host)
    address = f"127.0.0.1:{host.add_insecure_port('127.0.0.1:0')}"
    host.start()
    try:
        with running([sys.executable, "-m", "sandbox.command_plugin", address]) as (stub, _):
            yield Driver(stub, engine)
    finally:
        host.stop(None).wait()


def state_of(answer: Any) -> Json:
    return python_values(answer.properties)


@pytest.mark.parametrize(
    ("logging", "shown"), [("none", []), ("stderr", ["err"]), ("stdoutAndStderr", ["err", "out"])]
)
def test_logging_decides_what_is_shown(driver, logging, shown):
    state = state_of(driver.create({"create": "echo out; echo err >&2", "logging": logging}))
    assert (state["stdout"], state["stderr"]) == ("out", "err")
    assert sorted(driver.engine.messages) == shown


def test_outputs_are_no_secrets_even_when_an_input_is(driver):
    """As those of the official plugin: so no command of the program prints a secret."""
    inputs = {"create": "echo $A", "environment": {"A": secret("x")}, "logging": "none"}
    state = driver.create(inputs).properties.fields
    assert state["stdout"].string_value == "x"
    assert state["environment"].struct_value.fields["A"] == struct({"": secret("x")}).fields[""]


def test_a_preview_runs_nothing(driver, tmp_path):
    inputs = {"create": f"touch {tmp_path}/ran"}
    unknown = {"stdout": UNKNOWN, "stderr": UNKNOWN}
    assert state_of(driver.create(inputs, preview=True)) == {**inputs, **unknown}
    state = {**inputs, "stdout": "", "stderr": ""}
    assert driver.update(state, inputs, preview=True)["stdout"] == UNKNOWN
    assert list(tmp_path.iterdir()) == []


def test_update_and_delete_know_what_came_before(driver, tmp_path: Path):
    inputs = {
        "create": "echo one",
        "update": "echo $PULUMI_COMMAND_STDOUT-two",
        "delete": f"echo $PULUMI_COMMAND_STDOUT > {tmp_path}/deleted",
    }
    state = driver.update(state_of(driver.create(inputs)), inputs)
    assert state["stdout"] == "one-two"
    driver.delete(state)
    assert (tmp_path / "deleted").read_text() == "one-two\n"


def test_a_failure_has_code_command_and_output(driver):
    command = "echo said; sleep 0.2; echo why >&2; exit 4"
    with pytest.raises(grpc.RpcError) as failed:
        driver.create({"create": command})
    assert failed.value.details() == f'exit status 4: running "{command}":\nsaid\nwhy\n'


def test_triggers_replace_and_other_inputs_update(driver):
    state = {"create": "a", "triggers": [1], "stdout": "x", "stderr": ""}
    same = driver.diff(state, {"create": "a", "triggers": [1]})
    assert same.changes == provider_pb2.DiffResponse.DIFF_NONE
    assert list(driver.diff(state, {"create": "a", "triggers": [2]}).replaces) == ["triggers"]
    updated = driver.diff(state, {"create": "b", "triggers": [1]})
    assert list(updated.diffs) == ["create"]
    assert not updated.replaces


def test_what_is_not_served_names_the_official_plugin(driver):
    with pytest.raises(grpc.RpcError) as failed:
        driver.check({"create": "x", "assetPaths": ["*"]})
    text = failed.value.details()
    assert "The input assetPaths of a command is not served" in text
    assert "`pulumi plugin install resource command 1.2.1`" in text
