"""The pack in front of somebody else's program, under the real engine and API server."""

import json
import runpy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pulumi import automation

from kai_fleet_cli.engine import operation
from kai_fleet_cli.stack_file.reading import ROOT
from tests.engine import planted
from tests.engine.bare_engine import new_stack

EXAMPLE = ROOT / "examples" / "other-program"

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]


@dataclass
class Preview:
    """What a preview did: whether it was stopped, and what the pack said of which resource."""

    stopped: bool = False
    printed: str = ""
    reported: list[tuple[str, str, str, str]] = field(default_factory=list)

    def rules(self, level: str) -> dict[str, set[str]]:
        """The rules that spoke at a level, by resource name."""
        found: dict[str, set[str]] = {}
        for rule, at, urn, _ in self.reported:
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
                found.reported.append(
                    (p.policy_name, p.enforcement_level, p.resource_urn or "", p.message)
                )

        options: dict[str, Any] = {}
        if config is not None:
            file = self.directory / "pack.json"
            file.write_text(json.dumps(config))
            options["policy_pack_configs"] = [str(file)]
        try:
            self.stack.preview(
                program=program,
                on_event=note,
                on_output=lines.append,
                policy_packs=[operation.POLICY_PACK],
                **options,
            )
        except automation.CommandError:
            found.stopped = True
        found.printed = "\n".join(lines)
        return found


@pytest.fixture(scope="module")
def previews(sandbox, tmp_path_factory):
    created = Previews(sandbox, tmp_path_factory.mktemp("pack"))
    yield created
    created.stack.workspace.remove_stack(created.stack.name)


@pytest.fixture(scope="module")
def charts(sandbox):
    return sandbox.env()["KAI_FLEET_CHARTS"]


@pytest.fixture(scope="module")
def wrong(previews, charts):
    return previews.run(planted.program(charts))


def test_the_preview_is_stopped_for_every_trap_and_for_nothing_else(wrong):
    assert wrong.stopped
    assert wrong.rules("mandatory") == planted.REFUSED, wrong.printed


def test_advice_is_given_beside_it(wrong):
    advised = wrong.rules("advisory") or wrong.rules("warning")
    for name, rule in planted.ADVISED.items():
        assert rule in advised[name]


def test_a_person_reads_the_rule_the_resource_and_what_to_write(wrong):
    assert "workload-leaf-queue" in wrong.printed
    message = next(m for r, _, urn, m in wrong.reported if urn.endswith("::w1-parent"))
    assert "names queue default, which has children and so takes no pods; write test" in message


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
