"""The pack in front of somebody else's program, under the real engine and API server."""

import json
import runpy
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pulumi_kubernetes as k8s
import pytest
from google.protobuf import json_format, struct_pb2
from pulumi import automation
from pulumi.runtime import proto

from kai_fleet_cli.engine import runs
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies.pack.analyzer import Analyzer
from kai_fleet_policies.pack.policies import UNDECIDED
from tests.engine import planted
from tests.engine.bare_engine import new_stack

EXAMPLE = ROOT / "examples" / "other-program"

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


@dataclass
class Preview:
    """What a preview did: whether it was stopped, and what the pack said of which resource."""

    stopped: bool = False
    seconds: float = 0.0
    printed: str = ""
    said: list[tuple[str, str, str, str]] = field(default_factory=list)
    inputs: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)

    def rules(self, level: str) -> dict[str, set[str]]:
        """The rules that spoke at a level, by resource name."""
        found: dict[str, set[str]] = {}
        for rule, at, urn, _ in self.said:
            if at == level:
                found.setdefault(urn.rpartition("::")[2], set()).add(rule)
        return found


class Previews:
    """A stack of another project on the sandbox, previewed with the pack."""

    def __init__(self, sandbox: Any, directory: Any) -> None:
        self.directory = directory
        self.stack = new_stack(sandbox, directory, "somebody-elses")

    def run(self, program: Callable[[], None], config: dict[str, Any] | None = None) -> Preview:
        found, lines = Preview(), []

        def note(event: Any) -> None:
            if event.policy_event is not None:
                p = event.policy_event
                found.said.append(
                    (p.policy_name, p.enforcement_level, p.resource_urn or "", p.message)
                )
            if event.resource_pre_event is not None:
                new = event.resource_pre_event.metadata.new
                if new is not None and new.type.startswith("kubernetes:"):
                    found.inputs.append((new.urn, new.type, dict(new.inputs or {})))

        options: dict[str, Any] = {}
        if config is not None:
            file = self.directory / "pack.json"
            file.write_text(json.dumps(config))
            options["policy_pack_configs"] = [str(file)]
        begin = time.monotonic()
        try:
            self.stack.preview(
                program=program,
                on_event=note,
                on_output=lines.append,
                policy_packs=[runs.POLICY_PACK],
                **options,
            )
        except automation.CommandError:
            found.stopped = True
        found.seconds = time.monotonic() - begin
        found.printed = "\n".join(lines)
        return found


@pytest.fixture(scope="module")
def previews(sandbox, tmp_path_factory):
    made = Previews(sandbox, tmp_path_factory.mktemp("pack"))
    yield made
    made.stack.workspace.remove_stack(made.stack.name)


@pytest.fixture(scope="module")
def charts(sandbox):
    return sandbox.env()["KAI_FLEET_CHARTS"]


@pytest.fixture(scope="module")
def wrong(previews, charts):
    return previews.run(planted.program(charts))


def test_the_preview_is_stopped_for_every_trap_and_for_nothing_else(wrong):
    assert wrong.stopped
    assert wrong.rules("mandatory") == planted.REFUSED, wrong.printed


def test_a_number_in_a_pod_is_told_in_words_beside_the_api_servers(previews):
    def program() -> None:
        opts = planted._cluster("main")
        planted._pod("a-number", opts, annotations={"gpu-fraction": 0.5})

    run = previews.run(program)
    assert run.stopped
    assert run.rules("mandatory") == {"a-number": {"workload-known-keys"}}
    assert 'write gpu-fraction: "0.5"' in run.printed


def test_advice_is_given_beside_it(wrong):
    advised = wrong.rules("advisory") or wrong.rules("warning")
    for name, rule in planted.ADVISED.items():
        assert rule in advised[name]


def test_a_person_reads_the_rule_the_resource_and_what_to_write(wrong):
    assert "workload-leaf-queue" in wrong.printed
    message = next(m for r, _, urn, m in wrong.said if urn.endswith("::w1-parent"))
    assert "names queue default, which has children and so takes no pods; write test" in message


def test_a_stack_sets_levels_namespaces_and_queues(previews):
    def program() -> None:
        opts = planted._cluster("main")
        planted._queue("default", opts)
        planted._queue("test", opts, "default")
        planted._queue("other", opts, "default")
        planted._pod("lowered", opts, annotations={"gpu-fraction": "2"})
        planted._pod("exempt", opts, {"kai.scheduler/queue": "default"}, namespace="lab")
        planted._pod("platform", opts, namespace="platform")
        planted._pod("not-its-queue", opts, {"kai.scheduler/queue": "other"}, namespace="team-b")

    run = previews.run(
        program,
        {
            "workload-gpu-request": "advisory",
            "workload-leaf-queue": {
                "exemptNamespaces": ["lab"],
                "queuesByNamespace": {"team-b": ["test"]},
            },
            "namespace-reserved": {"reservedNamespaces": ["platform"]},
        },
    )
    assert run.stopped
    assert run.rules("mandatory") == {
        "platform": {"namespace-reserved"},
        "not-its-queue": {"workload-leaf-queue"},
    }, run.printed
    advised = run.rules("advisory") or run.rules("warning")
    assert "workload-gpu-request" in advised["lowered"]


def test_a_mistake_in_the_configuration_stops_the_preview_with_the_key(previews):
    run = previews.run(lambda: None, {"workload-leaf-queue": {"exemptNamespaces": "lab"}})
    assert run.stopped
    assert "exemptNamespaces" in run.printed


def test_what_is_unknown_at_preview_is_told_and_stops_nothing(previews):
    def program() -> None:
        made = k8s.core.v1.Namespace("made-later", metadata={"name": "made-later"})
        opts = planted._cluster("main")
        planted._queue("default", opts)
        planted._queue("test", opts, "default")
        queue = made.id.apply(lambda known: f"q-{known}")
        planted._pod("waits", opts, {"kai.scheduler/queue": queue})

    run = previews.run(program)
    assert not run.stopped, run.printed
    advised = run.rules("advisory") or run.rules("warning")
    assert UNDECIDED in advised["waits"]


def test_the_example_passes_and_a_newcomers_mistake_in_it_does_not(previews):
    def program() -> None:
        runpy.run_path(str(EXAMPLE / "__main__.py"), run_name="__main__")

    config = json.loads((EXAMPLE / "rules.json").read_text())
    right = previews.run(program, config)
    assert not right.stopped, right.printed
    assert right.rules("mandatory") == {}
    previews.stack.set_config("fraction", automation.ConfigValue("1.5"))
    try:
        wrong = previews.run(program, config)
    finally:
        previews.stack.remove_config("fraction")
    assert wrong.stopped
    assert wrong.rules("mandatory") == {"serve": {"workload-gpu-request"}}


@pytest.mark.slow
def test_all_rules_take_less_than_a_tenth_of_the_preview(previews):
    def program() -> None:
        opts = planted._cluster("main")
        planted._queue("top", opts)
        for number in range(100):
            planted._queue(f"q{number}", opts, "top")
        for number in range(200):
            labels = {"kai.scheduler/queue": f"q{number % 100}"}
            planted._pod(f"p{number}", opts, labels, {"gpu-fraction": "0.5"})

    run = previews.run(program)
    assert not run.stopped, run.printed
    assert len(run.inputs) > 300
    analyzer = Analyzer()
    sent = proto.AnalyzeStackRequest(
        resources=[
            proto.AnalyzerResource(
                urn=urn,
                type=type_,
                name=urn.rpartition("::")[2],
                properties=json_format.ParseDict(inputs, struct_pb2.Struct()),
            )
            for urn, type_, inputs in run.inputs
        ]
    )
    begin = time.monotonic()
    analyzer.AnalyzeStack(sent, None)
    assert time.monotonic() - begin < 0.1 * run.seconds
